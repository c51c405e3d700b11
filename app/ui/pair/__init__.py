"""The choice of target and draft: their panels, placement of layers, and memory. Also the form of a running
server, which Compare's lanes use too."""
