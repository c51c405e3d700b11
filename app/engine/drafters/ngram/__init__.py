"""Drafters that look for the latest tokens in earlier text."""
