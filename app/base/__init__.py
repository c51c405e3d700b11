"""What every room may use: files, locks, paths, numbers as words, bugs in words, starts of threads."""
