"""The command line's options for the chat template, and whether the template reads them."""

from __future__ import annotations

import argparse

from app.base.numbers import listed
from app.cli.terminal.arguments import UsageError, add_options, plain_text
from app.engine.errors import PromptError, SettingError
from app.engine.templates.options import (
    EFFORT,
    SWITCHES,
    TemplateOptions,
    TemplateValue,
    option_text,
    read_option,
    switched,
)
from app.engine.types import TraceHeader

NO_THINKING = "--no-thinking"
OPTION = "--template-option"
_OPTIONS = f"""
{NO_THINKING}  Set the chat template so that the model does not think
{OPTION} KEY=VALUE ...  Give the chat template a variable, such as reasoning_effort=low. VALUE is read as JSON
    if it is valid JSON, else as text; may be given several times
"""


def add_template_options(group: argparse._ArgumentGroup) -> None:
    add_options(group, _OPTIONS, template_option=_option)


def _option(argument: str) -> tuple[str, TemplateValue]:
    try:
        return read_option(plain_text(argument))
    except SettingError as error:
        raise argparse.ArgumentTypeError(f"{error.message} {error.hint}") from None


def asked_options(arguments: argparse.Namespace, *, chat: bool) -> TemplateOptions:
    """The options for the chat template; raises UsageError. `chat`: whether a template is used."""
    given: list[tuple[str, TemplateValue]] = arguments.template_option
    if not chat and (arguments.no_thinking or given):
        flag = NO_THINKING if arguments.no_thinking else OPTION
        raise UsageError(f"{flag} needs --chat.", "Without --chat no chat template is used.")
    options = dict(given)
    if len(options) < len(given):
        raise UsageError(f"{OPTION} names a variable twice.", "Give each once.")
    if not arguments.no_thinking:
        return options
    for name in SWITCHES:
        if options.get(name, False) is not False:
            raise UsageError(f"{NO_THINKING} and {option_text(name, options[name])} contradict each other.")
    return options | switched(False)


def unread(asked: TemplateOptions, header: TraceHeader) -> str:
    """A sentence on options that the template does not read; "" if it reads all of them.

    Raises PromptError if thinking should be off and the template has no switch for it.
    """
    missing = [name for name in asked if name not in header.template_options]
    if asked.items() >= switched(False).items():  # under either name
        if all(name in missing for name in SWITCHES):
            raise _no_switch(header)
        missing = [name for name in missing if name not in SWITCHES]
    return f"The chat template does not read {listed(missing)}: no effect." if missing else ""


def _no_switch(header: TraceHeader) -> PromptError:
    thinking = header.pair.thinking
    hint = f"Leave {NO_THINKING} out."
    if thinking is not None and thinking.efforts:
        hint = f"The lowest setting it has is {OPTION} {option_text(EFFORT, thinking.efforts[0])}."
    return PromptError("This model's chat template has no switch for thinking.", hint)
