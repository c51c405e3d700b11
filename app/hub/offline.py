"""Offline mode by the client's own variable; the switch in the window is a setting of ours."""

from __future__ import annotations

import huggingface_hub


def is_forced_offline() -> bool:
    """Whether HF_HUB_OFFLINE keeps the network from being used, whatever the switch says. Quick."""
    return huggingface_hub.is_offline_mode()
