"""Small parts that any room may use: fields, texts, words for numbers, work in the background."""
