"""Drafters: everything that can propose the next tokens. One file a strategy, one line in the registry."""
