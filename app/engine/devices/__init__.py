"""Where layers live: devices, workers, memory."""
