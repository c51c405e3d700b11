"""Widgets in or over the text: the first prompts, notes, the editor, small controls, the find bar, a token's
card. `../furniture.py` places them, and `../hovering.py` the card."""
