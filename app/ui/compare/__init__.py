"""The Compare place: lanes side by side, measured, raced, drawn and exported.

A Runner or a Tuner runs on a thread (`ui/state/lab_work.py`), which also folds reports between two runs
(`lab_session.py`). The chat's engine is lent meanwhile (`EngineSession.lend`, `take_back`), so weights are in
memory only once. `SetupBar` is the set-up, and `Measurements` the measurements, one at a time. `EarlierRuns`
offers journals that can continue, `MeasurementPages` has a page for each measurement, and `ComparePlace` is
their layout.
"""
