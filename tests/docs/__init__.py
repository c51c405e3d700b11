"""README and docs: their commands run, their scripts print what they say, their links lead somewhere."""
