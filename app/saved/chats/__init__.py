"""Saved chats: what was said, and the trace of every answer."""

from app.saved.chats.conversation import Answer, ChatHead, Conversation, Question, Turn
from app.saved.chats.recorder import AnswerRecorder
from app.saved.chats.store import ChatStore

__all__ = [
    "Answer",
    "AnswerRecorder",
    "ChatHead",
    "ChatStore",
    "Conversation",
    "Question",
    "Turn",
]
