"""Commands about model files: models, search, pull."""
