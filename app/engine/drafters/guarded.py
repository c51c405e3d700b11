"""The guard around a plug-in drafter: an error costs a draft, never the answer, and is reported in one line.

The guard checks each proposed id and makes a new proposal from them. It is one-hot: a wrong q would bend the
target's law, and the guard could not detect it. Python code cannot be interrupted safely, so time is measured
and not limited. A late draft is dropped, and a drafter that was late several times rests until the next
answer. If no round could report an error, because a different strategy drafted in all of them, `finish`
reports it."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from app.base import numbers
from app.engine.drafters.base import Drafter, Proposal, RunContext
from app.engine.errors import DrafterError, UserError
from app.engine.fates import Origin
from app.engine.lengths.base import DraftLength, Outset, RoundCost
from app.engine.rules.base import Drafted, Outcome, Rule, TokenTest
from app.engine.types import Round

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_OURS = (str(Path(__file__).resolve().parents[2]), str(Path(importlib.__file__).parent), "<")
"""Prefixes of files that are not plug-in code; generated code has a name in angle brackets."""
_LONGEST = 200


def error_words(error: BaseException) -> str:
    """The error, its text, and its deepest line in the first foreign file."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return (
            f"{type(error).__name__}: {plain(error.msg)} ({_file_name(error.filename)}, line {error.lineno})"
        )
    try:
        text = str(error)
    except Exception:  # an error whose own text is broken
        text = ""
    words = plain(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    steps = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = list(dropwhile(lambda step: step[0].startswith(_OURS), steps))
    if not theirs:
        return words
    file = theirs[0][0]
    line = [line for name, line in theirs if name == file][-1]
    return f"{words} ({_file_name(file)}, line {line})"


FAULTS = ("raised", "gave", "took", "rests")
"""Begins the guard's report of a fault, after the drafter's name."""


def fault_words(name: str, ends: Mapping[str, int], rounds: int, answers: int = 1) -> str:
    """A sentence on the drafts lost by a drafter's faults, "" without any. `ends` counts why drafts ended in
    answers of this many rounds."""
    heads = tuple(f"{name} {verb} " for verb in FAULTS)
    found: dict[str, int] = {}
    for end, count in ends.items():
        if fault := next((part for part in end.split("; ") if part.startswith(heads)), ""):
            found[fault] = found.get(fault, 0) + count
    if not found:
        return ""
    first, lost = next(iter(found)), sum(found.values())
    others = f", and {numbers.count(len(found) - 1, 'other fault')}" if len(found) > 1 else ""
    cost = f"That cost {lost:,} of {numbers.count(rounds, 'round')} a draft"
    whole = "the answer is complete" if answers == 1 else "the answers are complete"
    return f"{first}{others}. {cost}; {whole}."


def plain(text: str) -> str:
    """Plug-in text as one short printable line."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _file_name(path: str | None) -> str:
    return (path or "?").replace("\\", "/").rsplit("/", 1)[-1]


SLOW_SECONDS = 0.1
"""The most that a round's `observe` and `propose` may take together."""
SLOW_BEGIN_SECONDS = 1.0
"""The most that `begin` may take, which has a whole prompt to read."""
LATE_TIMES = 3
"""The number of late calls after which the drafter rests for the answer."""


class GuardedDrafter(Drafter):
    """Forwards calls to a plug-in drafter, and reports its errors as the end of a draft.

    - raised in `propose`, or an invalid proposal: this draft is lost;
    - raised in `observe`: the next draft is lost;
    - raised when it was made or in `begin`: it rests for this answer, and is created again for the next;
    - raised in `finish`, `reset` or `adjust`: it is made anew for the next answer;
    - late in `propose`: this draft is lost; in `begin` or `observe`: the next one; for the third time: it
      rests for this answer.

    If making the drafter raises a UserError, the request is refused: so a drafter can say what it needs.
    """

    def __init__(self, name: str, make: Callable[[Any], Any], params: Any, n_vocab: int) -> None:
        """`make` is called with `params`; `n_vocab` is the target's. Raises the UserErrors of `make`."""
        self._name = name
        self._make = make
        self._params = params
        self._n_vocab = n_vocab
        self.drafter: Drafter | None = None
        self._fault = ""  # the first error not reported yet: it costs the next draft
        self._rests = ""  # the reason why the drafter is not called again in this answer
        self._late = 0
        self._observing = 0.0  # seconds of the last `observe`
        self._attempt(self._build, (UserError,))

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        self._fault, self._late, self._observing = "", 0, 0.0
        self._rests = self._attempt(self._build) if self.drafter is None else ""
        if self.drafter is not None:
            began = time.perf_counter()
            self._rests = self._attempt(partial(self.drafter.begin, _read_only(context), surroundings))
            seconds = time.perf_counter() - began
            if self._rests:
                self.drafter = None
            elif seconds > SLOW_BEGIN_SECONDS:
                self._fault = self._was_late(seconds, SLOW_BEGIN_SECONDS, " to begin")
        self._fault = self._fault or self._rests

    def propose(self, context: TokenIds, k: int) -> Proposal:
        if self._fault:
            fault, self._fault = self._fault, ""
            return _lost(fault)
        if self.drafter is None or self._rests:
            return Proposal(end=self._rests)
        given: list[Proposal] = []
        began = time.perf_counter()
        fault = self._attempt(lambda: given.append(self._asked(context, k)))
        seconds = self._observing + time.perf_counter() - began
        if fault:
            return _lost(fault)
        if seconds > SLOW_SECONDS:
            return _lost(self._was_late(seconds, SLOW_SECONDS))
        return given[0]

    def observe(self, context: TokenIds, proposal: Proposal, accepted: int) -> None:
        if self.drafter is None or self._rests:
            return
        # A copy: the round is recorded later.
        own = Proposal(ids=list(proposal.ids), match=proposal.match, end=proposal.end)
        began = time.perf_counter()
        fault = self._attempt(partial(self.drafter.observe, _read_only(context), own, accepted))
        self._observing = time.perf_counter() - began
        if self._observing > SLOW_SECONDS:
            # Checked here: the next draft may be asked for much later.
            late = self._was_late(self._observing, SLOW_SECONDS, " to observe")
            fault = fault or late
            self._observing = 0.0
        self._fault = self._fault or fault

    def finish(self, context: TokenIds) -> None:
        """Raises DrafterError for an error that no round could report."""
        if self.drafter is not None and self._attempt(partial(self.drafter.finish, _read_only(context))):
            self.drafter = None
        fault, self._fault = self._fault, ""
        if fault:
            words = fault if self._rests in ("", fault) else f"{fault}; {self._rests}"
            raise DrafterError(f"{words}.")

    def reset(self) -> None:
        if self.drafter is not None and self._attempt(self.drafter.reset):
            self.drafter = None

    def adjust(self, params: Any) -> None:
        self._params = params
        if self.drafter is not None and self._attempt(partial(self.drafter.adjust, params)):
            self.drafter = None

    def _build(self) -> None:
        drafter = self._make(self._params)
        if not isinstance(drafter, Drafter):
            raise TypeError(f"a {type(drafter).__name__} is not derived from Drafter")
        self.drafter = drafter

    def _asked(self, context: TokenIds, k: int) -> Proposal:
        """The drafter's proposal, rebuilt from its checked parts; raises _Rubbish if one is invalid."""
        assert self.drafter is not None
        ask: Callable[..., Any] = self.drafter.propose  # whatever its type says
        proposal = ask(_read_only(context), k)
        if not isinstance(proposal, Proposal):
            raise _Rubbish(f"gave {_kind(proposal)} instead of a Proposal")
        if len(proposal.q) or len(proposal.races):
            raise _Rubbish("gave a q, but plug-in drafts are one-hot")
        return Proposal(
            ids=_sound_ids(proposal.ids, k, self._n_vocab),
            match=_sound_match(proposal.match, len(context)),
            end=_sound_end(proposal.end),
        )

    def _was_late(self, seconds: float, limit: float, at: str = "") -> str:
        self._late += 1
        if self._late >= LATE_TIMES:
            self._rests = f"{self._name} rests for this answer: it was late {self._late} times"
        return f"{self._name} took {seconds * 1000:,.0f} ms{at}, more than {limit * 1000:,.0f} ms"

    def _attempt(self, act: Callable[[], object], through: tuple[type[Exception], ...] = ()) -> str:
        """Call the drafter; returns its error in words, or "". Errors of the types in `through` are
        raised."""
        try:
            act()
        except through:
            raise
        except _Rubbish as rubbish:
            return f"{self._name} {rubbish}"
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # also SystemExit and asyncio.CancelledError, raised by the drafter
            return f"{self._name} raised {error_words(error)}"
        return ""


class _Rubbish(Exception):  # noqa: N818 - its text goes on behind the drafter's name
    """An invalid proposal."""


def _sound_ids(given: Any, k: int, n_vocab: int) -> list[int]:
    ids = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(ids, list | tuple):
        raise _Rubbish(f"gave {_kind(ids)} instead of a list of ids")
    if len(ids) > k:
        raise _Rubbish(f"gave {len(ids):,} tokens, but at most {k:,} were asked for")
    for id in ids:
        if not isinstance(id, int | np.integer) or isinstance(id, bool):
            raise _Rubbish(f"gave {_kind(id)} instead of a token id")
        if not 0 <= id < n_vocab:
            raise _Rubbish(f"gave the id {id:,}, but the vocabulary has {n_vocab:,}")
    return [int(id) for id in ids]


def _sound_match(given: Any, length: int) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int | np.integer) or not 0 <= given < length:
        raise _Rubbish("gave a match that is not in the text")
    return int(given)


def _sound_end(given: Any) -> str:
    if not isinstance(given, str):
        raise _Rubbish(f"gave {_kind(given)} as the end of its draft")
    return plain(given)


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _lost(fault: str) -> Proposal:
    return Proposal(end=fault, fault=fault)


def _read_only(context: TokenIds) -> TokenIds:
    """A read-only view of the context: writing into it raises."""
    view = context.view()
    view.flags.writeable = False
    return view


class GuardedLength(DraftLength):
    """Forwards calls to a plug-in's draft length. After its first error nothing is drafted until the next
    answer, and every round says why."""

    def __init__(self, name: str, make: Callable[[], DraftLength]) -> None:
        """Raises DrafterError for an error of `make`."""
        self._name, self._fault = name, ""
        try:
            self._length = make()
        except Exception as error:  # foreign code
            raise DrafterError(f"{name} raised {error_words(error)}.") from error
        self.lazy, self.reason = self._length.lazy, self._length.reason

    def _call(self, method: str, default: Any, *arguments: Any) -> Any:
        if self._fault:
            return default
        try:
            return getattr(self._length, method)(*arguments)
        except Exception as error:  # foreign code
            self._fault = self.rest_reason = f"{self._name} raised {error_words(error)}"
            return default

    def _count(self, method: str, name: str, room: int, *arguments: Any) -> int:
        k = self._call(method, 0, name, room, *arguments)
        if not isinstance(k, int) or not 0 <= k <= room:
            self._fault = self.rest_reason = f"{self._name} gave {k!r} instead of 0 to {room} tokens"
            return 0
        self.rest_reason = self._fault or self._length.rest_reason
        return k

    def begin(self, outset: Outset) -> None:
        self._fault = ""
        self._call("begin", None, outset)

    def sit_out(self, truth: TokenIds) -> bool:
        return bool(self._call("sit_out", False, _read_only(truth)))

    def choose(self, name: str, room: int, unread: Callable[[], int]) -> int:
        return self._count("choose", name, room, unread)

    def look(self, name: str, room: int) -> int:
        return self._count("look", name, room)

    def observe(self, cost: RoundCost) -> None:
        self._call("observe", None, cost)

    def k(self, name: str) -> int | None:
        k = self._call("k", None, name)
        return k if isinstance(k, int) else None

    def know(self, name: str, k: int) -> None:
        self._call("know", None, name, k)

    def acceptance(self, name: str) -> float | None:
        acceptance = self._call("acceptance", None, name)
        return float(acceptance) if isinstance(acceptance, int | float) else None

    def reset(self) -> None:
        self._call("reset", None)


def guarded_rule(owner: type[Rule], **attributes: Any) -> Rule:
    """Guard a plug-in's rule. An error in its verdict ends the answer with a sentence, because no other
    verdict would follow the rule. `recheck` reports an error in its checks as a disagreement."""

    class Guarded(owner):  # type: ignore[misc, valid-type] # mypy takes no variable for a base
        def judge(self, draft: Drafted) -> Outcome:
            try:
                return _sound_outcome(super().judge(draft), draft)
            except _Rubbish as rubbish:
                raise DrafterError(f"verify={owner.name} {rubbish}.") from rubbish
            except Exception as error:  # foreign code
                raise DrafterError(f"verify={owner.name} raised {error_words(error)}.") from error

        def test(self, round: Round, place: int) -> TokenTest | None:
            try:
                test: TokenTest | None = super().test(round, place)
                if test is not None:  # each of its answers once, so that none raises later
                    _ = test.passed, test.chance, test.target_draw, test.sums(str)
                    test.notes(round.drafted[place])
            except Exception:  # foreign code: its formula is not there
                return None
            return test

    for name in ("recheck", "recheck_draft", "recheck_own"):
        setattr(Guarded, name, _told(owner.name, getattr(owner, name)))
    for name, value in attributes.items():
        setattr(Guarded, name, value)
    return Guarded()


def _sound_outcome(given: Any, draft: Drafted) -> Outcome:
    """The outcome in Python's own numbers; raises _Rubbish if it is impossible."""
    if not isinstance(given, Outcome):
        raise _Rubbish(f"gave {_kind(given)} instead of an Outcome")
    try:  # numpy's numbers become Python's
        plain_values = msgspec.to_builtins(given, enc_hook=lambda value: value.item())
        outcome = msgspec.convert(plain_values, Outcome)
    except (msgspec.ValidationError, AttributeError, ValueError) as error:
        raise _Rubbish(f"gave an invalid outcome: {plain(str(error))}") from error
    many, passed = len(draft.ids), outcome.accepted
    if [judgement.accepted for judgement in outcome.judged] != [True] * passed + [False] * (
        len(outcome.judged) - passed
    ):
        raise _Rubbish("accepted a token after one that it rejected")
    if not min(passed + 1, many) <= len(outcome.judged) <= many:
        raise _Rubbish(f"judged {len(outcome.judged)} of {many} tokens, and accepted {passed}")
    if outcome.origin is not (draft.origin_behind if passed == many else Origin.RESAMPLED):
        raise _Rubbish(f"calls the token after {passed} of {many} accepted ones {outcome.origin}")
    races = (outcome.race, *(judgement.race for judgement in outcome.judged))
    named = (judgement.target_id for judgement in outcome.judged)
    ids = (outcome.token, *named, *(race.rival for race in races if race is not None))
    _sound_ids([id for id in ids if id is not None], 3 * many + 2, draft.rows.n_vocab)
    return outcome


def _told(name: str, check: Callable[..., Iterator[str]]) -> Callable[..., Iterator[str]]:
    def told(*arguments: Any) -> Iterator[str]:
        try:
            yield from check(*arguments)
        except Exception as error:  # foreign code
            yield f"its check by {name} raised {error_words(error)}"

    return told
