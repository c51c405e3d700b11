"""The Chat place: the list of chats, the transcript and its prompt box, running answers and their
baselines."""
