"""What is known in the window: answers, the engine, settings. Views observe it; it knows no widget."""
