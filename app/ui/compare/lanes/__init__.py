"""The lanes of a measurement: their answers, their plots, and the race."""
