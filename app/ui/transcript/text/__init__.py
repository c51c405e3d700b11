"""What the transcript says, without a layout: turns, spans, paragraphs, reasoning, Markdown."""
