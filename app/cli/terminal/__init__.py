"""The terminal: arguments, output, tables, Ctrl+C."""
