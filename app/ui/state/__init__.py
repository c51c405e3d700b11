"""What is known in the window (answers, the engine, servers, settings). Views observe it; it knows no
widget."""
