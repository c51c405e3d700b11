"""Draftscope: watch speculative decoding happen, token by token."""

__version__ = "0.2.0"
