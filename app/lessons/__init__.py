"""Lessons: recorded answers, with a few sentences beside their rounds and a question before a verdict.

A lesson is a text file in `resources/lessons/` (`lesson.py`) beside the trace of a real answer; both are
opened without a model. Its sentences state numbers only as fields, such as `{round.accepted}`, which
`facts.py` computes from the trace. What a sentence says beside its numbers is below it as conditions,
such as `round.accepted == round.drafted` (`lesson.py`); the step's round, and which answer to a question
is right, are found by such conditions too. So an answer that is recorded again (`make lessons`) either fits
its lesson, or the recorder and the tests name the sentence that is no longer true.

`ToldLesson` puts a lesson and its trace together: that is what the window and the command line show.
"""
