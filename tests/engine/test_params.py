"""Parameters: their written form, their ranges, and the errors for values outside."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.params import check_params, param, params_of
from app.engine.types import ModelOptions, Sampling

OWNERS = [Sampling, ModelOptions, *(kind.params for kind in KINDS.values())]


@dataclasses.dataclass(frozen=True)
class Example:
    """One parameter of each kind."""

    count: int = param(3, "A count.", low=1, high=10)
    share: float = param(0.5, "A share.", low=0, high=1)
    limit: int = param(-1, "Open above.", low=-1)
    switch: bool = param(False, "A switch.")
    choice: str = param("a", "A choice.", choices=("a", "b"))
    text: str = param("", "Any text.")
    note: str = "not a parameter"


def described() -> dict[str, Any]:
    return {param.name: param for param in params_of(Example)}


def test_parameters_describe_themselves() -> None:
    assert list(described()) == ["count", "share", "limit", "switch", "choice", "text"]
    assert {name: param.range_text() for name, param in described().items()} == {
        "count": "a whole number from 1 to 10",
        "share": "a number from 0 to 1",
        "limit": "a whole number, -1 or more",
        "switch": "0 or 1",
        "choice": "a, b",
        "text": "text",
    }


def test_a_long_help_is_in_the_docstring_of_the_class_or_its_base() -> None:
    @dataclasses.dataclass(frozen=True)
    class Base:
        """Settings.

        first: A help that is longer
            than a line.
        second: The base's help.
        """

        first: int = param(1)
        second: int = param(2)
        third: int = param(3, "Beside its field.")

    @dataclasses.dataclass(frozen=True)
    class Derived(Base):
        """Other settings.

        second: Its own help.
        """

    told = {param.name: param.doc for param in params_of(Derived)}
    assert told == {
        "first": "A help that is longer than a line.",
        "second": "Its own help.",
        "third": "Beside its field.",
    }


@given(
    st.builds(
        Example,
        count=st.integers(1, 10),
        share=st.floats(0, 1),
        limit=st.integers(-1, 10**30),
        switch=st.booleans(),
        choice=st.sampled_from("ab"),
        text=st.text(),
    )
)
def test_the_written_form_is_read_back_exactly(example: Example) -> None:
    check_params(example)
    for parameter in params_of(Example):
        value = getattr(example, parameter.name)
        assert parameter.parse(parameter.format(value)) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("count", "0"),
        ("count", "11"),
        ("count", "2.0"),
        ("count", "two"),
        ("share", "-0.1"),
        ("share", "1.1"),
        ("share", "nan"),
        ("share", "inf"),
        ("limit", "-2"),
        ("switch", "true"),
        ("choice", "c"),
    ],
)
def test_wrong_values_are_refused_with_what_is_allowed(name: str, text: str) -> None:
    parameter = described()[name]
    with pytest.raises(SettingError) as refused:
        parameter.parse(text)
    assert name in refused.value.message
    assert text in refused.value.message
    assert parameter.range_text() in refused.value.hint


@pytest.mark.parametrize(
    "wrong",
    [
        Example(count=0),
        Example(count=2.5),  # type: ignore[arg-type]
        Example(count="3"),  # type: ignore[arg-type]
        Example(share=float("nan")),
        Example(share="hot"),  # type: ignore[arg-type]
        Example(share=None),
        Example(choice="c"),
        Example(text=3),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_wrong_value_from_a_script_is_refused(wrong: Example) -> None:
    with pytest.raises(SettingError, match="cannot be"):
        check_params(wrong)


def test_whole_numbers_pass_for_numbers() -> None:
    check_params(Example(share=1))
    check_params(Sampling(temperature=1, seed=2**63 - 1))
    with pytest.raises(SettingError):
        check_params(Sampling(seed=2**63))


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_every_parameter_of_the_engine_has_help_and_an_allowed_default(owner: type) -> None:
    seen = list(params_of(owner))
    assert seen
    for parameter in seen:
        assert parameter.doc.endswith(".")
        parameter.check(parameter.default)
        assert parameter.parse(parameter.format(parameter.default)) == parameter.default
