"""Commands that measure: bench, sweep, tune."""
