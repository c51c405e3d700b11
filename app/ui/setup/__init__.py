"""The choice of strategy (`strategy/`), sampling and presets (`presets/`)."""
