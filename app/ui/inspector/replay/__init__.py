"""Replay: an answer's cursor moved by hand or by a clock, and what other settings would have given.

`Player` moves `AnswerModel.cursor`, so that every view of the answer follows. Behind the last round of an
answer that is being written it holds the engine instead (`EngineSession.set_pace`): rounds then come one at
a time, or slowly. `TransportBar` has its buttons; `WhatIfPanel` opens from it. `SlowMotion` shows the
coming round of a slowed replay token by token, with less motion state by state.
"""
