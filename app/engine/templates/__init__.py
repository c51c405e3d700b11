"""Chat templates: strangers' programs, rendered in a process of their own."""
