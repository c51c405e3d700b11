"""Saved chats: what was said, and the trace of every answer. No Qt, no models.

The chat's file contains the text; the trace, as far as it can be read, holds the tokens and their fates. A
question is written to `chat.jsonl` before the engine is asked, and removed if the engine refuses it. Every
change of a chat touches `.changed` beside the chats, which each window checks once a second. The trash has a
clock that advances by a day at most from start to start (`trash.py`), so that a wrong computer clock empties
nothing. A measured baseline (`saved/measured.py`) is two more traces beside an answer's. The options of the
chat template (`template_options`) belong to the chat, as the system prompt does. A question with a `suffix`
asks to fill the gap between its two texts, whatever the mode of its chat is when it is answered again. What
is typed and not sent (`recorder.py`) is written within a second, without the lock: of two windows, the last
one wins.
"""

from app.saved.chats.conversation import Answer, ChatHead, Conversation, Question, Turn
from app.saved.chats.recorder import AnswerRecorder
from app.saved.chats.store import ChatStore

__all__ = ["Answer", "AnswerRecorder", "ChatHead", "ChatStore", "Conversation", "Question", "Turn"]
