"""Blocks of a turn: paragraphs laid out and painted, rendered Markdown, lines of folds."""
