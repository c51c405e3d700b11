"""Labels and texts: elided, giving way to others, in a fixed pitch, as tooltips."""
