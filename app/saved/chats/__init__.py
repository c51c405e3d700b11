"""Saved chats: their texts, and the trace of every answer. No Qt, no models.

A chat's file contains the text; traces contain the tokens and their fates. A question is written to
`chat.jsonl` before the engine is asked, and removed if the engine refuses it. Every change of a chat touches
`.changed` beside the chats, which each window checks once a second. The trash's clock advances by at most a
day from start to start (`trash.py`), so a wrong computer clock deletes nothing. A measured baseline
(`saved/measured.py`) is two more traces beside an answer's. The chat template's options (`template_options`)
belong to the chat, like the system prompt. A question with a `suffix` fills the gap between its two texts, in
any mode of its chat. Unsent text (`recorder.py`) is written within a second, without the lock: of two
windows, the last one wins.
"""

from app.saved.chats.conversation import Answer, ChatHead, Conversation, Question, Turn
from app.saved.chats.recorder import AnswerRecorder
from app.saved.chats.store import ChatStore

__all__ = ["Answer", "AnswerRecorder", "ChatHead", "ChatStore", "Conversation", "Question", "Turn"]
