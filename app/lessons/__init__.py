"""Lessons: recorded answers, with a few sentences beside their rounds and a question before a verdict.

A lesson is a text file in `resources/lessons/` (`lesson.py`) beside the trace of a real answer; neither needs
a model. Its text is completed when the answer is recorded (`packaging/lessons`, `make lessons`). There, every
number in a sentence is a field, and every other claim is a condition on the trace. If a new recording makes a
sentence untrue, the recorder and the tests name it.
"""
