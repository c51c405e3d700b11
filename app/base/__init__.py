"""Helpers for every room: files, locks, paths, numbers as words, bugs in words, starting threads."""
