"""The choice of target and draft: their panels, where layers live, what fits into memory; and the form of a
running server, which Compare's lanes use too."""
