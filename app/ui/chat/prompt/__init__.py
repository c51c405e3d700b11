"""The prompt box: what is asked next, the system prompt, the gap of infill, and the choice to think."""
