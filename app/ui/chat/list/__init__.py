"""The list of chats, and finding words in them."""
