"""The place "Lessons": recorded answers, step by step, alone or in front of an audience.

`Course` is where one is: the lesson, the step, and what was answered to its question. Everything else draws
it and moves it, so that the place and the stage are always at the same step.

- `place.py`: the list of the lessons, and the tour: some steps, then the parts of the window, each framed.
- `player.py`: the step in the place; text, cards and slow motion are the Inspector's and the transcript's.
- `stage.py`: the step on a screen of its own, in large type, for an audience; keys alone move it.
- `course.py`: where one is, and the sentences of the step and its question, in both.
- `toy.py`: the law with two or three letters, judged by the engine's own rules.
"""
