"""The Inspector: an answer taken apart, round by round and place by place.

`InspectorPlace` shows the answer of an `Inspection` (`ui/state/chat_side.py`): the chat's, or one opened from
a different place. Every part is an `InspectorPart` and draws that `AnswerModel` up to its cursor. The
detailed round is `AnswerModel.inspected`, so parts need not know each other: to choose a round, pin it.

- `round_view.py`: the inspected round, with a card for each drafted token and for the target's own token
  (`card.py`). `contents.py` makes a card's contents, `painting.py` draws its parts. `draft_block.py` draws a
  draft that was made in one pass, or judged as a block.
- `round_time.py`: the round in time, above its cards: its draft and one pass, against passes one by one.
- `timeline.py`: all rounds on one axis; a click inspects a round.
- `shape_view.py`: the whole answer in figures, such as acceptance by place; it is below the round.
- `transport.py`: the bar at the foot that steps, plays and scrubs. Its `Player` moves `AnswerModel.cursor`,
  so that every view of the answer follows. After the last round of a running answer it holds the engine
  instead (`EngineSession.set_pace`): rounds then come one at a time. `WhatIfPanel` opens from the bar.
  `slow_motion.py` shows a round in human time: guess, check, verdict.
"""
