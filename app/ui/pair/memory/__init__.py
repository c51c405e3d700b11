"""The memory that a pair takes or would take, and what would take less."""
