"""The suffix drafter and its suffix automata."""
