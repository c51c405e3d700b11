"""The measurements themselves: running, broken off, kept."""
