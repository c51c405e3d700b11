"""The contents of the transcript without a layout: turns, spans, paragraphs, reasoning, Markdown."""
