"""The Chat place: chats (`list/`), the prompt box (`prompt/`), answers on their way (`answers/`)."""
