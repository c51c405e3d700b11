"""Presets: a pair, a strategy and a sampling under a name."""
