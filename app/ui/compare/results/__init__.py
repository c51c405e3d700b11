"""The results of a measurement: tables, plots, where texts part, and their export."""
