"""Addresses in one spelling, and where keys come from."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from app.engine.errors import SettingError, UserError
from app.servers.address import can_keep, find_key, is_address, keep_key, kept_key, server_address

ADDRESS = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("127.0.0.1:8080", ADDRESS),
        ("http://127.0.0.1:8080/", ADDRESS),
        (" http://127.0.0.1:8080/v1/ ", ADDRESS),
        ("https://Models.example/team", "https://models.example/team"),
        ("http://[::1]:80", "http://[::1]:80"),
    ],
)
def test_an_address_has_one_spelling(written: str, address: str):
    assert server_address(written) == address and is_address(address)


@pytest.mark.parametrize(
    "written",
    ["", "ftp://host", "http://", "http://host:port", "http://host/?key=a", "http://me:secret@host"],
)
def test_what_is_no_address_is_refused_without_its_password(written: str):
    with pytest.raises(SettingError) as caught:
        server_address(written)
    assert "secret" not in str(caught.value)


def test_a_file_is_no_address():
    assert not is_address("/models/http.gguf") and not is_address("owner/name")


def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_KEY", " abc \n")
    assert find_key(ADDRESS, "MY_KEY") == "abc"


def test_a_missing_variable_and_a_broken_key_are_said_without_the_key(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UserError, match="MY_MISSING_KEY is not set"):
        find_key(ADDRESS, "MY_MISSING_KEY")
    monkeypatch.setenv("MY_KEY", "sec\u00fcret two")
    with pytest.raises(UserError) as caught:
        find_key(ADDRESS, "MY_KEY")
    assert "two" not in str(caught.value)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """What the system's keyring holds; the library is put in its place."""
    kept: dict[tuple[str, str], str] = {}
    library: Any = ModuleType("keyring")
    errors: Any = ModuleType("keyring.errors")
    errors.KeyringError = type("KeyringError", (Exception,), {})
    library.errors = errors
    library.get_keyring = lambda: SimpleNamespace(priority=5)
    library.get_password = lambda service, name: kept.get((service, name))
    library.set_password = lambda service, name, key: kept.__setitem__((service, name), key)
    library.delete_password = lambda service, name: kept.pop((service, name))
    monkeypatch.setitem(sys.modules, "keyring", library)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return kept


def test_the_keyring_keeps_finds_and_forgets_a_key(keyring: dict[tuple[str, str], str]):
    assert can_keep() and find_key(ADDRESS) == ""

    keep_key(ADDRESS, "abc")
    assert find_key(ADDRESS) == "abc" and kept_key("http://other") == ""
    assert keyring == {("draftscope", ADDRESS): "abc"}

    keep_key(ADDRESS, "")
    assert not keyring and find_key(ADDRESS) == ""


def test_without_the_library_only_variables_serve(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert not can_keep() and find_key(ADDRESS) == ""
    with pytest.raises(UserError, match="has no keyring"):
        keep_key(ADDRESS, "abc")


@pytest.mark.usefixtures("keyring")
def test_a_locked_keyring_is_no_key_and_never_shows_it():
    library: Any = sys.modules["keyring"]

    def locked(*arguments: str) -> None:
        raise library.errors.KeyringError(f"locked: {arguments}")

    library.get_password = library.set_password = locked
    assert find_key(ADDRESS) == ""
    with pytest.raises(UserError) as caught:
        keep_key(ADDRESS, "abc")
    assert "abc" not in str(caught.value)
