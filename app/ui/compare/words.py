"""Short texts of the Compare place about runs."""

from __future__ import annotations

from app.base import numbers
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.strategy import NONE, StrategySpec
from app.lab.experiment import Experiment, Lane
from app.lab.runs.compare import keeps_text
from app.lab.runs.record import Divergence, RunRecord
from app.ui.widgets.words import duration

NO_BASELINE = (
    "no baseline",
    "The server cannot turn drafting off. Add a server with the same model and without drafts as the "
    "baseline.",
)
"""The badge of a server's lane without a baseline."""
THIS_RUN = "this run: "
PLACES = {1: "1st", 2: "2nd", 3: "3rd"}


def place_words(place: int) -> str:
    """A place in a race: 1st, 2nd, 3rd, 4th; there are at most eight."""
    return PLACES.get(place, f"{place}th")


def amount_words(lanes: int, prompts: int, repeats: int, depths: int = 0) -> str:
    """How much will be measured, at this many `depths`; without them, how much Run will measure."""
    runs = lanes * prompts * repeats * (depths or 1)
    factors = [numbers.count(lanes, "lane"), numbers.count(prompts, "prompt")]
    factors += [numbers.count(depths, "depth")] if depths else []
    factors.append(numbers.count(repeats, "repeat"))
    return f"{' × '.join(factors)} = {numbers.count(runs, 'cold run')}"


def badge(record: RunRecord, strategy: str, temperature: float) -> tuple[str, str]:
    """Whether an answer is identical to its baseline's, and the meaning of that."""
    parting = record.first_divergence
    if record.baseline_lane is None or record.lane == record.baseline_lane:
        return "", ""
    if record.identical_to_baseline:
        return "identical", "The same tokens as the baseline, one for one."
    if not keeps_text(strategy, temperature):
        return "same distribution, different text", (
            "At this temperature the rule samples its own tokens. The distribution is the target's, but the "
            "text differs. Use verify=match to keep the text."
        )
    if parting is None:
        return "", ""
    where = f"differs from token {parting.index + 1}"
    if parting.near_tie:
        return f"equal but for rounding, {where}", _parting_words(parting)
    return where, _parting_words(parting)


def _parting_words(parting: Divergence) -> str:
    lines = [
        f"Token {parting.index + 1}: {token_words(parting, own=True)} instead of "
        f"{token_words(parting, own=False)}."
    ]
    if parting.logit_gap is not None:
        lines.append(f"In the baseline, the two logits are {numbers.digits(parting.logit_gap)} apart.")
    if parting.difference is not None:
        lines.append(f"In this lane's own pass, that gap differs by {numbers.digits(parting.difference)}.")
    if parting.near_tie:
        lines.append("Rounding in batches of a different size explains the difference.")
    elif parting.perhaps_tie:
        lines.append("This may be rounding. Audit text, in Chat, finds out.")
    return "\n".join(lines)


def token_words(parting: Divergence, *, own: bool) -> str:
    """A token at a divergence, in quotation marks; words for the end of an answer that has no token there."""
    token, text = (
        (parting.token, parting.token_text) if own else (parting.baseline_token, parting.baseline_text)
    )
    return "the end" if token is None else f"“{shown_text(text)}”"


def lane_words(lane: Lane) -> str:
    """A description of a lane's strategy, shown before its first answer; or what is wrong with it."""
    if lane.pair is not None and lane.pair.is_server:
        drafts = "without drafts" if lane.strategy == NONE else "with drafts as the server is set"
        return f"The server at {lane.pair.target.path} answers {drafts}."
    try:
        parts = StrategySpec.parse(lane.strategy).parts
    except SettingError as error:  # its drafter was removed
        return str(error)
    if not parts:
        return "The target alone: the baseline of its other lanes."
    return "\n\n".join(KINDS[part.name].summary for part in parts)


def left_words(seconds: float | None) -> str:
    """The time that is left; "" while it is unknown."""
    return "" if seconds is None else f"about {numbers.duration(max(1.0, seconds))} left"


def ahead_words(seconds: float) -> str:
    """How many seconds a lane is ahead of the baseline in the race, or behind it."""
    if abs(seconds) < 0.0005:
        return "level with the baseline"
    return f"{duration(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'} the baseline"


def short(caption: str) -> str:
    """The caption of a lane in the race for a narrow card, whose tooltip has the whole."""
    shorter = caption.removeprefix(THIS_RUN)
    return shorter.replace("ahead of the baseline", "ahead").replace("behind the baseline", "behind")


def prompt_words(experiment: Experiment, prompt: int) -> str:
    """A line that distinguishes a prompt from the others."""
    asked = experiment.prompts[prompt]
    text = " ".join(asked.prompt.split())
    category = f"{asked.category} · " if asked.category else ""
    turn = f"turn {asked.turn} · " if asked.before else ""
    return f"{prompt + 1} · {category}{turn}{text[:80]}{'…' if len(text) > 80 else ''}"


def shown_text(text: str) -> str:
    """A token's text in one line: characters without a glyph are escaped."""
    return text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
