"""Small parts that any room may use: rows, columns, labels and buttons as expressions (`kit.py`), fields,
texts, words for numbers, tables and plots, work in the background."""
