"""Devices that can hold layers: ggml's list of them, those of workers, and a worker that serves its own."""
