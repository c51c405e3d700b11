"""The look: colours, fonts and the style sheet made of them."""

from app.ui.theme.palette import DARK, LIGHT, LOOKS, PALETTES, Palette
from app.ui.theme.theme import Theme

__all__ = ["DARK", "LIGHT", "LOOKS", "PALETTES", "Palette", "Theme"]
