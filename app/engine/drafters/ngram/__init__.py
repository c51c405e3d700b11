"""Drafters that look up the latest tokens in earlier text."""
