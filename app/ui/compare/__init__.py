"""The Compare place: lanes side by side, measured, raced, drawn and exported.

A Runner or a Tuner runs on a thread (`ui/state/lab_work.py`), which folds reports too, between two runs
(`lab_session.py`). The chat's engine is lent for that time (`EngineSession.lend`, `take_back`): weights
are in memory once, and nothing competes. `SetupBar` is what is to be measured, `Measurements` what is
measured, one at a time, `EarlierRuns` the journals that can go on, `MeasurementPages` a page for each
measurement, `ComparePlace` their layout.
"""
