"""The Hugging Face Hub and the local library: search, catalogue, downloads, models on this machine. No Qt."""
