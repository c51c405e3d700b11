"""Offline mode by the client's own variable; the switch in the window is a setting of Draftscope."""

from __future__ import annotations

import huggingface_hub


def is_forced_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids the use of the network, whatever the switch says. Quick."""
    return huggingface_hub.is_offline_mode()
