"""A draft model with another vocabulary: drafts go through text."""
