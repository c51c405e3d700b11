"""Saved chats: what was said, and the trace of every answer."""

from app.chats.conversation import Answer, ChatHead, Conversation, Question, Turn
from app.chats.recorder import AnswerRecorder
from app.chats.store import ChatStore

__all__ = [
    "Answer",
    "AnswerRecorder",
    "ChatHead",
    "ChatStore",
    "Conversation",
    "Question",
    "Turn",
]
