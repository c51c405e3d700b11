"""Small parts that any room may use: fields, texts, words for numbers, tables and plots, work in the
background."""
