"""Small parts for any room: rows, columns, labels and buttons as expressions (`kit.py`), fields, texts, words
for numbers, tables, plots, background work."""
