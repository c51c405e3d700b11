"""Engines of experiments share a process for chat templates."""

import pytest


@pytest.fixture(autouse=True)
def own_templates(kept_templates: None) -> None:
    pass
