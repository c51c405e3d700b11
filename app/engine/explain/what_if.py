"""What if: the rounds that a recorded answer would have had with other draft settings.

Copying strategies are asked again (see `walk`). A draft model's proposal is known if a recorded draft covers
the place. It is never recorded for a bonus token (the draft had ended before it), a plain token, or a token
below the recorded p_min.

So the counts are exact if all of this is true:

- the verification is `greedy` or `match`: the text then does not depend on drafts;
- a sampled draft (`sample`) draws with the target's luck (`match`): its tokens then depend on the text before
  them alone;
- no near tie decides. (Passes of a different width round differently. That may swap two nearly equal tokens,
  or a draft's probability and p_min.)
- the length rule is `fixed` or `ewma`, which use no clock, and the answer was cold;
- no round needs an open place. Rounds that begin at the recorded places and draft no more never do; others
  may, if recorded drafts were accepted whole. A record with a large n_max has few open places.

Otherwise the counts are an estimate with a range. Open places are filled many times with recorded places that
follow an accepted token, and the counts are means of the outcomes. (For a token below the recorded p_min only
a probability is drawn, which is also its chance to agree.) If the text may differ, the range covers that. If
rounds have m tokens on average, with variance v, the number of rounds of n tokens has variance n v / m^3. The
factor is always predicted by the cost model, because times depend on the setting.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, sqrt

from app.base.numbers import count
from app.engine.compat import DSPARK, HEAD_STRATEGIES
from app.engine.drafters.base import ALIKE
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.explain.cost import CostModel
from app.engine.explain.walk import TIE, Text, Walked, lead, pools_of, recorded_places, walk, walks
from app.engine.lengths.base import Fixed
from app.engine.record.trace import Trace
from app.engine.rules.registry import rule_of
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import CACHE_STEP, FinishReason

FILLINGS = 24
"""How often open places are filled; fewer times in a long answer."""
_WORK = 24_000  # places that the walks of an answer may have in all


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcome of other settings. Counts are whole numbers if it is exact, else means."""

    strategy: str
    tokens: int
    rounds: float
    drafted: float
    accepted: float
    factor: float | None
    """Predicted: the time of a target pass for every token / the time of these rounds. None if the recorded
    times are too few."""
    reasons: tuple[str, ...] = ()
    """Why the counts are an estimate, a sentence each; none if they are exact."""
    fewest: int = 0  # rounds, at the least
    most: int = 0  # and at the most, in 19 of 20 cases

    @property
    def exact(self) -> bool:
        """Whether the record decides the counts."""
        return not self.reasons


def what_if(trace: Trace, spec: StrategySpec, cost: CostModel | None = None) -> WhatIf:
    """The outcome of `spec` for a recorded answer: the answer's strategy with other settings. `cost` is by
    default the answer's own. Raises SettingError."""
    recorded = StrategySpec.parse(trace.header.strategy)
    check_what_if(recorded, spec)
    cost = cost if cost is not None else CostModel.of(trace.rounds)
    if spec.length.by_clock and (cost.single_pass is None or cost.c is None):
        raise SettingError(
            f"length={spec.length.name} decides by times, and the answer has no pass without a draft to "
            "compare with.",
            "Measure the baseline first.",
        )
    text = _text(trace, recorded.parts[0])
    first = walk(text, spec, cost, random.Random(0))
    fillings = [first]
    if first.open_places:
        often = min(FILLINGS, max(2, _WORK // len(text.ids)))
        fillings += [walk(text, spec, cost, random.Random(filling)) for filling in range(1, often)]
    n, whole = len(fillings), Walked.of_all(fillings)
    reasons, parts_at = _reasons(trace, recorded, spec, whole, n, text.most)
    fewest, most = _range(
        fillings, whole, parts_at, 0 if spec == recorded else max(counts.close for counts in fillings)
    )
    return WhatIf(
        strategy=str(spec),
        tokens=len(text.ids),
        rounds=whole.rounds / n,
        drafted=whole.drafted / n,
        accepted=whole.accepted / n,
        factor=cost.factor(whole.tokens, whole.lengths),
        reasons=reasons,
        fewest=fewest,
        most=most,
    )


def _text(trace: Trace, part: StrategyPart) -> Text:
    """The recorded text, with its places as known from the drafts. Raises SettingError if drafts were copied
    from a prompt whose tokens are not recorded."""
    header, ids = trace.header, trace.token_ids
    if not KINDS[part.name].by_model and not header.context_ids:
        raise SettingError(
            "The tokens of this answer's prompt were not recorded.", "Ask again: traces have them now."
        )
    kept = (len(round.drafted) for round in trace.rounds if ALIKE in round.draft_end.split("; "))
    places = recorded_places(trace.rounds, len(ids), header.sampling.temperature)
    return Text(
        header.context_ids or (0,) * header.prompt_tokens,
        ids,
        header.max_tokens,
        header.pair.target.n_ctx,
        header.pair.target.n_vocab,
        header.pair.draft.size / header.pair.target.size if header.pair.draft is not None else 0.0,
        places,
        pools_of(places),
        getattr(part.params, "p_min", 0.0) if KINDS[part.name].by_model else 0.0,
        min(kept, default=sys.maxsize),
    )


def check_what_if(recorded: StrategySpec, spec: StrategySpec) -> StrategyPart:
    """The part of `spec` whose settings differ; raises SettingError if the record says nothing about
    it."""
    names = [part.name for part in recorded.parts]
    if len(names) != 1:
        what = "drafted nothing" if not names else "comes from a mix of strategies"
        raise SettingError(f"This answer {what}.", "What if needs an answer of a single strategy.")
    if not walks(recorded):
        raise SettingError(f"{recorded} cannot be replayed.", "What if works for built-in strategies.")
    if [part.name for part in spec.parts] != names or spec.verification is not recorded.verification:
        raise SettingError(f"This answer was made with {recorded}.", "What if changes its settings only.")
    return spec.parts[0]


def with_settings(
    recorded: StrategySpec, longest: int | None = None, p_min: float | None = None, length: str | None = None
) -> StrategySpec:
    """The recorded spec with a different n_max, p_min or length rule, if its strategy has them."""
    part = check_what_if(recorded, recorded)
    changed: dict[str, object] = {}
    if longest is not None and part.length_key is not None:
        changed[part.length_key] = longest
        least = KINDS[part.name].least
        if least != part.length_key and getattr(part.params, least, 0) > longest:
            changed[least] = longest
    if p_min is not None and hasattr(part.params, "p_min"):
        changed["p_min"] = p_min
    part = replace(part, params=replace(part.params, **changed))
    return replace(recorded.with_length(length or recorded.length.name), parts=(part,))


def _range(fillings: Sequence[Walked], whole: Walked, parts_at: int | None, close: int) -> tuple[int, int]:
    """The least and the most rounds. `whole`: the sum of the fillings; `parts_at`: the token from which the
    text may differ; `close`: places where the draft may differ, each worth one round."""
    rounds = [counts.rounds for counts in fillings]
    tokens = fillings[0].tokens
    if parts_at is None or not tokens:
        return max(1, min(rounds) - close), min(tokens, max(rounds) + close)
    mean = whole.tokens / whole.rounds
    variance = whole.squares / whole.rounds - mean**2
    # Two standard deviations of the difference between two texts.
    spread = 2 * sqrt(2 * (tokens - parts_at) * variance / mean**3) + close + 1
    return max(1, floor(min(rounds) - spread)), min(tokens, ceil(max(rounds) + spread))


def _reasons(
    trace: Trace, recorded: StrategySpec, spec: StrategySpec, whole: Walked, n: int, most: int
) -> tuple[tuple[str, ...], int | None]:
    """Why the counts are an estimate, and the token from which the text may differ. `whole` is the sum of `n`
    fillings; `most` is the longest draft with equal rounding, if the record shows it."""
    header, part = trace.header, spec.parts[0]
    by_model, warm = KINDS[part.name].by_model, not trace.header.cold
    reasons, parts_at = [], None
    keeps_text = rule_of(header.verification).keeps_text
    drawn = getattr(part.params, "sample", False) and header.sampling.temperature > 0
    if not keeps_text:
        reasons.append(
            "At this temperature different drafts lead to different draws, and so to a different text."
        )
        parts_at = 0
    if drawn and not keeps_text:
        reasons.append("The draft samples its tokens too: started elsewhere, it would draw different ones.")
    elif (drawn or part.name == HEAD_STRATEGIES[DSPARK]) and part.params.p_min != recorded.parts[
        0
    ].params.p_min:
        reasons.append(f"The trace does not say how sure the draft was of a {'sampled ' * drawn}token.")
    verified = max((len(round.drafted) for round in trace.rounds), default=0)
    longer = max(whole.lengths, default=0) > verified and most == sys.maxsize
    if longer and keeps_text and rule_of(header.verification).draws:
        reasons.append("Drafts may have been kept short so that rounding could not change the text.")
    read = header.prompt_tokens - 1
    if (
        keeps_text
        and rule_of(header.verification).draws
        and ((read + len(trace.token_ids)) // CACHE_STEP > read // CACHE_STEP)
    ):
        reasons.append(
            f"Drafts may have been kept short where the text reaches a multiple of {CACHE_STEP} tokens."
        )
    if spec.length.by_clock:
        reasons.append(f"length={spec.length.name} decides by the clock: recorded times replace it.")
    if warm and not by_model:
        reasons.append("The answer was warm: what its strategy had learned before is not recorded.")
    elif warm and not spec.length.by_clock and spec.length != Fixed():
        reasons.append("The answer was warm: what the length rule had learned before is not recorded.")
    if trace.totals is None or trace.totals.finish_reason in (FinishReason.CANCELLED, FinishReason.FAILED):
        reasons.append("The answer was interrupted: its last round is incomplete.")
    ties = near_ties(trace) if keeps_text and spec != recorded else []
    if ties:
        parts_at = ties[0]
        reasons.append(
            f"At {_about(len(ties), 'token')} the target's best two were nearly tied: rounding in different "
            "passes may change the text."
        )
    if spec != recorded and (close := whole.close / n):
        reasons.append(
            f"At {_about(close, 'place')} the draft's best two were nearly tied, or its distance to p_min "
            "was not recorded: rounding may change it."
        )
    if places := whole.open_places / n:
        reasons.append(
            f"At {_about(places, 'place')} no draft was recorded: drafts from other places are used."
        )
    if tails := whole.open_tails / n:
        reasons.append(
            f"{_about(tails, 'draft')} would continue after a rejected token for longer than recorded: the "
            "drafted count assumes that none ends early."
        )
    return tuple(reasons), parts_at


def near_ties(trace: Trace) -> list[int]:
    """The tokens that the target chose so narrowly that rounding in a different pass may decide otherwise."""
    temperature, found = trace.header.sampling.temperature, []
    for round in trace.rounds:
        for place, token in enumerate(round.emitted):
            if temperature == 0:
                gap = lead(round.target_top[place]) if place < len(round.target_top) else 0.0
            else:
                gap = token.race.gap * temperature if token.race is not None else 0.0
            if gap < TIE:
                found.append(round.position + place)
    return found


def _about(number: float, noun: str) -> str:
    return count(max(1, round(number)), noun)
