"""What is said above the cards of a round. No Qt here."""

from __future__ import annotations

from collections import Counter

from app.base.numbers import listed, percent
from app.engine.explain.copied import Copied
from app.engine.explain.decision import q_follows
from app.engine.fates import UNTOLD_DRAFT, Origin, Verdict
from app.engine.rules.registry import rule_of
from app.engine.types import HeadInput, Round, TraceHeader
from app.ui.widgets.words import count, duration, end_words


def round_facts(round: Round, header: TraceHeader) -> str:
    """How many tokens of each fate, how long it took, and the rule."""
    verdicts = Counter(token.verdict for token in round.drafted)
    own = [token for token in round.emitted if token.origin is not Origin.ACCEPTED]
    facts = [f"{count(len(round.drafted))} drafted"]
    if not round.drafted:
        facts = ["draft untold" if round.untold else "no draft"]
    facts += [f"{count(verdicts[verdict])} {verdict}" for verdict in Verdict if verdicts[verdict]]
    facts += [f"1 {round.fate_word(token)}" for token in own]
    times = (
        ()
        if header.pair.server is not None
        else (
            ("draft", round.draft_seconds),
            ("verify", round.verify_seconds),
            ("sampling", round.sample_seconds),
        )
    )
    facts.append(
        ", ".join(f"{name} {duration(seconds)}" for name, seconds in times) or duration(round.seconds)
    )
    if round.drafted:
        facts.append(f"{header.verification} verification")
    return " · ".join(facts)


def source_words(round: Round, header: TraceHeader) -> str:
    """Who was asked for the draft, who gave it, and what q is, in a few sentences."""
    if header.pair.server is not None:
        kind = header.pair.server.kind
        if round.untold:
            return UNTOLD_DRAFT
        return (
            f"{kind} drafted. It tells neither p nor q, nor which tokens it rejected."
            if round.drafted
            else ""
        )
    said = [_asked(round), _read(round.head, header), _drawn(round, header)]
    at_zero = header.sampling.temperature == 0 and rule_of(header.verification).draws
    if at_zero:
        said.append(
            "At temperature 0 p is 1 for the most probable token; the bars are the model's own probabilities."
        )
    return " ".join(filter(None, said))


def _asked(round: Round) -> str:
    if not round.drafted:
        asked = listed(round.asked or ())
        return f"{asked} had no draft: {end_words(round.draft_end)}." if asked and round.draft_end else ""
    name = round.strategy or "A strategy"
    before = [asked for asked in round.asked or () if asked != round.strategy]
    were = "were" if before[1:] else "was"
    silent = f"{listed(before)} {were} asked first and had no draft. " if before else ""
    why = round.draft_end and end_words(round.draft_end)
    if why and why.startswith("the draft ended"):  # a sentence of its own: the draft model ended the answer
        return f"{silent}{name} drafted; {why}."
    ended = f"; the draft ended: {why}" if why else ""
    return f"{silent}{name} drafted{ended}."


def _read(head: HeadInput | None, header: TraceHeader) -> str:
    """Which of the target's rows a head read, and how much of each."""
    if head is None:
        return ""
    inner = [f"{layer}" for layer in head.layers if layer != header.pair.target.n_layers]
    named = [f"before layer{'s' if inner[1:] else ''} {listed(inner)}"] if inner else []
    named += ["behind the last layer"] if len(inner) < len(head.layers) else []
    sizes = listed([f"{norm:,.1f}" for norm in head.norms])
    said = f"It read the target's rows {listed(named)}, of length {sizes}"
    if not head.shares:
        return f"{said}."
    return f"{said}; they make up {listed([percent(share, 0) for share in head.shares])} of its input."


def _drawn(round: Round, header: TraceHeader) -> str:
    """What q is in this round."""
    if not round.drafted:
        return ""
    first = round.drafted[0]
    if first.draft_drawn is not None and q_follows(header.sampling):
        return (
            "The tokens were drawn from q, which is recorded for the drafted token. For the others it is "
            "derived, if the drafted token was one of the draft's ten best."
        )
    if first.draft_drawn is not None:
        return "The tokens were drawn from q. The trace does not hold q of the others."
    if first.draft_p is not None:
        taken = "The draft's best token was taken, not drawn, so q is 1 there and 0 elsewhere"
        return f"{taken}; the line across a bar is draft_p." if not _by_law(header) else f"{taken}."
    return "The tokens were copied, not drawn, so q is 1 there and 0 elsewhere."


def _by_law(header: TraceHeader) -> bool:
    """Whether p and q decide."""
    rule = rule_of(header.verification)
    return rule.from_residual and not rule.whole and header.sampling.temperature > 0


def copied_words(copied: Copied, round: Round) -> str:
    """Where the copied text stands, and what the trace does not determine."""
    name = round.strategy or "The strategy"
    places = f"{count(copied.places)} places" if copied.places > 1 else ""
    if round.match is None:
        if not copied.places:
            return f"{name} records no place, and the text stands nowhere before in this conversation."
        where = places or "one place"
        shown = ", the last of which is shown" if places else ""
        return f"{name} records no place. The text stands at {where} before{shown}."
    if not copied.in_prompt:
        if copied.source is None:
            return (
                f"Copied from token {count(round.match)} of the conversation, which the trace does not hold."
            )
        return f"Copied from the answer, from round {count(copied.source[0])} on, dashed in the text above."
    begin = f"Copied from token {count(round.match)} of the prompt"
    if not copied.places:
        return f"{begin}. The trace does not hold where that is, and the text is not found."
    if places:
        return f"{begin}. Its text stands at {places} that fit; the last one is shown."
    return f"{begin}."
