"""What is to be measured: lanes, prompts, pair, sweep and search."""
