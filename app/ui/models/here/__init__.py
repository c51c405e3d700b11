"""What is on this machine or on its way to it: the library and the downloads."""
