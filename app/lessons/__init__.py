"""Lessons: recorded answers, with a few sentences beside their rounds and a question before a verdict.

A lesson is a text file in `resources/lessons/` (`lesson.py`) beside the trace of a real answer; neither needs
a model. Numbers in its sentences are fields, such as `{round.accepted}`, which `facts.py` computes from the
trace. Every other claim of a sentence is written below it as a condition, such as `round.accepted ==
round.drafted`. Conditions also find the step's round and the right answer to a question. So a new recording
(`make lessons`) either fits its lesson, or the recorder and the tests name the sentence that is no longer
true.

`ToldLesson` combines a lesson with its trace, for the window and the command line.
"""
