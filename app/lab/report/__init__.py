"""What came out: folded, compared, exported."""
