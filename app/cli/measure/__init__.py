"""Commands that measure or compare: bench, sweep, tune, drafts, compare."""
