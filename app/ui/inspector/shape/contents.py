"""What each figure shows and says about an answer. No Qt here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, zip_longest

from app.base import numbers
from app.engine.fates import UNTOLD_DRAFT
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.engine.types import Verification
from app.ui.state.answer import AnswerModel
from app.ui.widgets.words.numbers import count, percent, significant

_PLACES = 16  # of a draft that are shown
_CHOICES = 10  # recorded
_DRAWN = (Verification.SPECULATIVE, Verification.BLOCK)


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled bar. Its parts stand side by side, or one before the other."""

    label: str
    parts: tuple[float | None, ...]
    text: str  # above it
    told: str  # for tooltips and screen readers


@dataclass(frozen=True, slots=True)
class Content:
    """A figure's bars, the note beside its title and the words below."""

    bars: tuple[Bar, ...]
    note: str
    words: str
    top: float | None = None  # value of the whole height; None: the highest bar


def scope(answer: AnswerModel) -> str:
    """Which rounds the figures cover."""
    statistics = answer.statistics
    words = [] if statistics.untold else [_several(statistics.rounds, "round")]
    words.append(_several(statistics.emitted, "token"))
    if answer.start:
        words.insert(0, f"since round {count(answer.start)}")
    if answer.cursor < len(answer.rounds):
        words.append(f"up to round {count(answer.last)}")
    return " · ".join(words)


def acceptance_by_place(answer: AnswerModel) -> Content:
    statistics = answer.statistics
    places = zip(
        statistics.acc_per_pos,
        statistics.acceptance_by_place,
        statistics.judged_acceptance_by_place,
        strict=True,
    )
    bars = tuple(
        Bar(
            str(place),
            (rounds, drafted, judged),
            f"{rounds * 100:.0f}",
            f"place {place}: acc per pos {percent(rounds)}, {percent(drafted)} of drafted there, "
            f"{percent(judged)} of judged there",
        )
        for place, (rounds, drafted, judged) in enumerate(islice(places, _PLACES), 1)
    )
    words = (
        "Accepted in percent. Left: acc per pos, of all rounds with a draft, as in llama.cpp and vLLM. "
        "Middle: of drafted there. "
    )
    words += (
        "Blocks are judged as a whole, so no token is judged alone."
        if statistics.blocks
        else "Right: of judged there."
    )
    if statistics.longest_draft > _PLACES:
        words += f" The first {_PLACES} of {statistics.longest_draft} places."
    return Content(bars, _rounds(statistics), words if bars else _nothing(answer), top=1.0)


def accepted_per_round(answer: AnswerModel) -> Content:
    statistics = answer.statistics
    bars = tuple(
        Bar(str(tokens), (rounds,), count(rounds), f"{tokens} accepted in {_several(rounds, 'round')}")
        for tokens, rounds in enumerate(statistics.accepted_per_round)
    )
    words = _nothing(answer)
    if statistics.tau is not None:
        words = (
            f"Mean {significant(statistics.tau - 1)} of {significant(statistics.draft_length)} drafted. "
            f"τ {significant(statistics.tau)} · {significant(statistics.tokens_per_pass)} tokens per pass."
        )
    return Content(bars, _rounds(statistics), words)


def strategy_shares(answer: AnswerModel) -> Content:
    statistics = answer.statistics
    bars = []
    for name in dict.fromkeys((*statistics.calls, *statistics.strategies)):
        part, calls = statistics.strategies.get(name), statistics.calls.get(name)
        accepted, drafted = (part.accepted, part.drafted) if part is not None else (0, 0)
        share = accepted / statistics.emitted if statistics.emitted else 0.0
        asked = f"asked {_several(calls, 'time')}, " if calls is not None else ""
        told = (
            f"{name}: {asked}{count(accepted)} of {count(drafted)} accepted, {percent(share)} of the answer"
        )
        bars.append(Bar(name, (share,), percent(share), told))
    words = f"{'. '.join(bar.told for bar in bars)}. The target alone gave the rest."
    return Content(tuple(bars), _several(statistics.emitted, "token"), words, top=1.0)


def draft_choices(answer: AnswerModel, folded: AlternativeStatistics) -> Content:
    """Which choice of the draft the emitted tokens were: whether a wider draft would pay."""
    if not folded.ranked:
        why = "No draft model drafted. Strategies that look up propose one token a place, without others."
        if answer.header is not None and answer.header.pair.server is not None:
            why = "A server does not tell which tokens its draft had to choose from."
        return Content((), "", why if answer.statistics.drafted else _nothing(answer))
    places = [*folded.ranks, *[0] * (_CHOICES - len(folded.ranks)), folded.unranked]
    names = [*(str(choice) for choice in range(1, _CHOICES + 1)), "…"]
    bars = tuple(
        Bar(
            name,
            (each,),
            f"{each / folded.ranked * 100:.0f}",
            f"{'none of the ten' if name == '…' else f'choice {name}'}: {_several(each, 'place')}",
        )
        for name, each in zip(names, places, strict=True)
    )
    words = (
        "How high the draft ranked the token that came, in percent of the places. Drafts of 2 tokens a place "
        f"would have held {percent(folded.held_by(2))} of them, of 4 tokens {percent(folded.held_by(4))}. "
        "Ten are recorded."
    )
    if answer.header is not None and answer.header.verification in _DRAWN:
        words += " An estimate: what replaces a rejected token is drawn from the residual."
    return Content(bars, f"% of {_several(folded.ranked, 'place')}", words)


def target_entropy(folded: AlternativeStatistics) -> Content:
    """How sure the target was, and what it accepted then."""
    if not folded.rows:
        return Content((), "", "No alternatives are recorded.")
    histograms = folded.entropies, folded.judged_by_entropy, folded.accepted_by_entropy
    bars = tuple(
        Bar(
            f"{at / 2:g}",
            (rows, judged, accepted),
            count(rows),
            f"{at / 2:g} bit on: {_several(rows, 'row')}, {count(judged)} judged, {count(accepted)} accepted",
        )
        for at, (rows, judged, accepted) in enumerate(zip_longest(*histograms, fillvalue=0))
    )
    recorded = numbers.percent(1 - (folded.target_rest or 0.0))
    words = (
        "Rows of the target by bits. Full colour: the drafted token was accepted. Pale: it was rejected. "
        f"Grey: no token was judged alone. The recorded tokens hold {recorded}; all others count as one."
    )
    return Content(bars, f"mean at least {significant(folded.target_entropy)} bit", words)


def _several(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def _rounds(statistics: Statistics) -> str:
    return f"{_several(statistics.drafted_rounds, 'round')} with a draft" if statistics.drafted else ""


def _nothing(answer: AnswerModel) -> str:
    if not answer.drafts:
        return "Strategy none drafts nothing."
    if answer.statistics.untold:
        return UNTOLD_DRAFT
    return "Nothing was drafted yet." if answer.live else "Nothing was drafted."
