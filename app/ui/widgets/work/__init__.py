"""Work beside painting: on another thread, seldom enough, after a question, and collecting garbage."""
