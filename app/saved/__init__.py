"""What is kept for people: settings, presets, chats. No Qt."""
