"""Lessons: recorded answers, with a few sentences beside their rounds and a question before a verdict.

A lesson is a text file in `resources/lessons/` (`lesson.py`) beside the trace of a real answer; neither needs
a model. Its text is told of that answer when it is recorded (`packaging/lessons`, `make lessons`). There,
every number of a sentence is a field, and every other claim a condition on the trace. So a new recording fits
its lesson, or the recorder and the tests name the sentence that is no longer true.
"""
