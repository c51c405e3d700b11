"""Plug-in drafters: loaded with checks, run behind a guard."""
