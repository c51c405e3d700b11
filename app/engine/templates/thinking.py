"""Thinking: by which variables a chat template can be told whether and how much, and what it does untold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from app.engine.templates.options import TemplateOptions, TemplateValue

SWITCHES = ("enable_thinking", "thinking")
EFFORT = "reasoning_effort"
_NONE = ("none", "no_think")  # words for not thinking at all
_EFFORTS = ("low", "medium", "high")
_NO_EFFORT = "no such effort"

Render = Callable[[TemplateOptions], str | None]
"""What a template makes of a short chat under options; None where it refuses them."""


class Thinking(msgspec.Struct, frozen=True):
    """What a chat template lets people say about thinking."""

    names: tuple[str, ...]  # of SWITCHES and EFFORT, those that it reads
    on: bool | None = None  # whether it lets the model think where it is not told; None without a switch
    efforts: tuple[str, ...] = ()  # without one: words for an effort that differ in effect, least first
    effort: str = ""  # the one of them that it takes where it is not told

    def is_on(self, options: Mapping[str, TemplateValue]) -> bool:
        """Whether it lets the model think under these options."""
        told = [bool(options[name]) for name in self.names if name in SWITCHES and name in options]
        return any(told) if told else bool(self.on)

    def effort_of(self, options: Mapping[str, TemplateValue]) -> str:
        """The effort under these options; what was told another template may be none of `efforts`."""
        return str(options.get(EFFORT, self.effort))


def switched(on: bool) -> TemplateOptions:
    """Thinking on or off, whichever name the template has for it."""
    return dict.fromkeys(SWITCHES, on)


def find_thinking(names: Collection[str], render: Render) -> Thinking | None:
    """What a template that reads the variables `names` can be told about thinking; None where it is nothing.

    What it does untold is in its text only: templates test a switch for being true, for being false or for
    being there at all.
    """
    known = tuple(name for name in (*SWITCHES, EFFORT) if name in names)
    if not known:
        return None
    untold = render({})
    if known != (EFFORT,):
        # One that does something else again, untold, leaves it to the model.
        return Thinking(known, untold != render(switched(False)) or untold == render(switched(True)))
    efforts = _find_efforts(render)
    alike = [word for word, text in efforts.items() if text == untold]
    return Thinking(known, None, tuple(efforts), alike[0] if alike else next(reversed(efforts), ""))


def _find_efforts(render: Render) -> dict[str, str]:
    """Word -> the text that it makes, least effort first; empty where there is nothing to choose."""
    texts = {word: render({EFFORT: word}) for word in (*_NONE, *_EFFORTS)}
    other = render({EFFORT: _NO_EFFORT})
    if other is not None and other != render({}):
        # It writes down any word: which ones its model knows it does not say, and these all models do.
        texts = {word: texts[word] for word in _EFFORTS}
    found: dict[str, str] = {}  # text -> the highest word for it
    for word, text in reversed(texts.items()):
        if text is not None:
            found.setdefault(text, word)
    return {word: text for text, word in reversed(found.items())} if len(found) > 1 else {}
