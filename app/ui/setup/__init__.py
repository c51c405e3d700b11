"""The choice of strategy, sampling and presets."""
