"""Where a model's layers live, on which devices."""
