"""The Hugging Face cache, shared with other programs: its layout, the place of one file, and what is here."""

from app.hub.cache.cache import Cache

__all__ = ["Cache"]
