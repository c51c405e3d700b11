"""The switch for offline mode, in Settings and in Models."""

from __future__ import annotations

from app.ui.theme import Theme
from app.ui.widgets.fields.switch import Switch

OFFLINE = "No network use. Models already here still work."
FORCED = "HF_HUB_OFFLINE is set: the network is not used until it is unset."


class OfflineSwitch(Switch):
    """It cannot be switched off while the environment forbids the network."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Offline mode")

    def show_mode(self, offline: bool, *, forced: bool) -> str:
        """Show whether offline mode is on or forced, without a signal; returns that in words."""
        self.blockSignals(True)
        self.setChecked(offline or forced)
        self.blockSignals(False)
        self.setEnabled(not forced)
        return FORCED if forced else OFFLINE
