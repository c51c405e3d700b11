"""Where models run: layers, devices, workers elsewhere, and the memory that they take."""
