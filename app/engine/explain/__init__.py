"""What the numbers mean: the cost model, advice, llama.cpp's own command line."""
