"""The pictures of the documents, taken from the running window."""
