"""The Hugging Face Hub and the local library: search, catalogue, downloads, local models. No Qt."""
