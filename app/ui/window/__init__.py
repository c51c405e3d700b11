"""The window around the places: rail, header, status bar, its look, and how it starts and ends."""
