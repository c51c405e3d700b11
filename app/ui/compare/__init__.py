"""The Compare place: lanes side by side, measured, raced, drawn and exported."""
