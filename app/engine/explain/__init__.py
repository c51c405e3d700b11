"""What the numbers mean: the cost model, advice, llama.cpp's own command line.

`cost.py` is the glossary's cost model from measured values, with break-even and best k. `advice.py` says in a
sentence what to change and why; each change carries the strategy or load options that a button needs
(`Remedy`). `draft_size.py` judges a draft by its share of the target's size. `llama_command.py` writes a
setting as llama.cpp's command line and names what has no flag there.
"""
