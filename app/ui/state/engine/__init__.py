"""The window's side of the engine."""
