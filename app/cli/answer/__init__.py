"""Commands about one answer: run, replay."""
