"""The window: a room for each place, and below them the rooms that places share.

A room uses only rooms below it. From top to bottom: `window` (frame, header, status bar) and `models` ·
`settings`, `compare`, `lessons` (whose steps show the Inspector's cards) · `inspector`, `chat` · `setup`
(what an answer is made with), `pair` (which models, where their layers are), `transcript`, `instruments` ·
`widgets` (small parts) · `theme`, `state` (answers, engine, settings; no widget).

- A place is a folder and one line in `wiring.py`; rail, stack and shortcuts come from `MainWindow.places`.
- `state/answer.py: AnswerModel` is all that is known of an answer. Transcript, instruments, status bar,
  the lanes of Compare and the parts of the Inspector are given a model and draw its trace up to its cursor.
- `state/chat_side.py: Inspection` is which answer the Inspector shows; any place opens a round there.
- `EngineSession` tells one frozen `EngineState` once it is settled; `SettingsInUse` tells the names of
  changed settings.
- `state/lab_work.py: LabWork` is a measurement on a thread while the chat's engine is lent, in Compare and in
  Models.
- Other threads reach the window's thread through `state/mailbox.py`: in order, in batches, at most every 33
  ms.
- Qt's main thread alone collects Python's garbage (`widgets/background.py`): no other thread may destroy
  Qt objects.
- Typed values act as a whole (`widgets/keys.py`); what opens gives the keyboard back (`FocusBefore`
  in `theme/rings.py`); keys that nothing else takes go into the prompt box.
- A question is withdrawn when its subject changes: `widgets/ask_first.py` looks again before an answer
  counts.
"""
