"""The Hugging Face Hub and the library of files: search, catalogue, downloads, what is here. No Qt."""
