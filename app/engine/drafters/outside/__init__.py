"""Drafters from people's own files: read with care, run with a guard."""
