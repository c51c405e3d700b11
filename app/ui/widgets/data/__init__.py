"""Tables and plots, which are copied and saved as files."""
