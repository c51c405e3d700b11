"""The Chat place: the list of chats, the transcript and its prompt box, answers on their way and what they
are measured against."""
