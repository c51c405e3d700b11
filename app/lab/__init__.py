"""Experiments: what is measured in runs, and the files they are reported in."""
