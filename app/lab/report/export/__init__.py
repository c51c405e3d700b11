"""Reports as files: tables, text, the formats of other tools."""
