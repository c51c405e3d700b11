"""A home folder of their own for the commands of the documents."""

from tests.hub.conftest import home

__all__ = ["home"]
