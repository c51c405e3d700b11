"""The choice of target and draft: their panels, where layers live (`placement/`), what fits (`memory/`)."""
