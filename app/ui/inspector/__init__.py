"""The Inspector: an answer taken apart, round by round and place by place.

`InspectorPlace` shows the answer of an `Inspection` (`ui/state/chat_side.py`): the chat's, or one that
another place opened. Every part is an `InspectorPart` and draws that `AnswerModel` up to its cursor; the
round in detail is `AnswerModel.inspected`, so parts need not know each other: to choose a round, pin it.

- `round/`: the inspected round, a card for each drafted token and for the token that the target gave itself.
- `timeline/`: all rounds on one axis; a click inspects a round.
- `shape/`: the whole answer in figures, such as acceptance by place; it stands below the round.
- `replay/`: the bar at the foot that steps, plays and scrubs by moving the cursor, holds the engine while it
  writes the answer, and asks what if. `trace_files.py`: traces opened and saved.
"""
