"""The window: a room for each place, and below them the rooms that places share.

A room uses only rooms below it. From top to bottom: `window` (frame, header, status bar), `models` |
`settings`, `compare`, `lessons` (with the Inspector's cards) | `inspector`, `chat` | `setup` (settings of an
answer), `pair` (models, placement of layers), `transcript`, `instruments` | `widgets` (small parts) |
`theme`, `state` (answers, engine, settings; no widget).

- A place is a folder and one line in `wiring.py`; rail, stack and shortcuts come from `MainWindow.places`.
- `state/answer.py: AnswerModel` has all facts of an answer. Transcript, instruments, status bar, Compare's
  lanes and the Inspector's parts get a model and draw its trace up to its cursor.
- `state/chat_side.py: Inspection` is the answer that the Inspector shows; any place can open a round there.
- `EngineSession` signals a frozen `EngineState` once it is settled; `SettingsInUse` signals the names of
  changed settings.
- `state/lab_work.py: LabWork` is a measurement on a thread, in Compare or Models, while the chat's engine is
  lent.
- Other threads reach the window's thread through `state/mailbox.py`: in order, in batches, at most every 33
  ms.
- Only Qt's main thread collects Python's garbage (`widgets/background.py`), because no other thread may
  destroy Qt objects.
- Typed values take effect as a whole (`widgets/keys.py`). Panels return the keyboard focus when they close
  (`FocusBefore` in `theme/rings.py`). Unused keys go into the prompt box.
- A question is withdrawn when its subject changes: `widgets/ask_first.py` checks again before an answer
  counts.
"""
