"""What a log says about speculation: which strategies draft, how well, or why none does.

It reads the messages of the built-in llama.cpp (common/speculative.cpp, common/arg.cpp,
tools/server/server-context.cpp), most of which need `--verbosity 4`. It also reads older forms of its
statistics, Draftscope's statistics, and the counts of llama-speculative and vLLM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.params import params_of
from app.engine.strategy import NONE, StrategySpec, quote

_STRATEGY = re.compile(r"adding speculative implementation '([\w-]+)'")
# Each pair ends at a comma or the line: two ways to cut the same text would take exponential time.
_SETTINGS = re.compile(r"\s- (?!gpu_layers|mod size)((?:\w+=[^,\s]+(?:, |(?=\s*$)))+)\s*$")
_ACCEPTANCE = re.compile(
    r"draft acceptance(?: rate)? = +[\d.]+ \( *(\d{1,15}) accepted / +(\d{1,15}) generated\)"
)
_STATISTICS = re.compile(
    r" *([\w-]{1,40}): #calls(?:\(b,g,a\))? = *(\d{1,15})(?: +(\d{1,15}) +(\d{1,15}))?"
    r", #gen drafts = *(\d{1,15}), #acc drafts = *(\d{1,15})"
    r", #gen tokens = *(\d{1,15}), #acc tokens = *(\d{1,15})"
)
_DURATIONS = re.compile(r", dur\(b,g,a\) = *(N), *(N), *(N) ms".replace("N", r"\d{1,15}(?:\.\d{1,15})?"))
_VLLM = re.compile(r"Accepted: (\d{1,15}) tokens, Drafted: (\d{1,15}) tokens")  # of some seconds
_N_DRAFTED, _N_ACCEPT = re.compile(r"\bn_drafted += +(\d{1,15})"), re.compile(r"\bn_accept += +(\d{1,15})")
_OUR_ANSWER = re.compile(r"answer (\d[\d,]{0,18}) tokens? in (\d{1,15}(?:\.\d+)?) s")
_DECODED = re.compile(r"\bdecoded +(\d{1,15}) tokens in +(\d{1,15}(?:\.\d+)?) seconds")
_SPEED = re.compile(r"(?<!prompt) eval time = +(\d{1,15}(?:\.\d+)?) ms / +(\d{1,15}) tokens")
_RESTORED = re.compile(r"accepted +(\d+)/ *(\d+) draft tokens \(restore checkpoint\)")
_SENTENCES = {
    r'handling argument "(.+?)": the argument has been removed\. (.+?)\.?$': (
        "It did not start: {0} has been removed; {1}."
    ),
    "draft model vocab type must match target model to use speculation but (.+)": (
        "The draft cannot be used: its tokenizer is of a different type ({0})."
    ),
    "draft model (bos|eos) tokens must match target model": (
        "The draft cannot be used: its {0} token differs from the target's."
    ),
    r"target vocab size (\d+) does not match draft vocab size (\d+)": (
        "The draft cannot be used: the target has {0} tokens, the draft {1}; at most 128 may differ."
    ),
    "draft model vocab must match target model .*token (.+)": (
        "The draft cannot be used: a token has a different text in its vocabulary ({0})."
    ),
    "the target and draft vocabs are not compatible": (
        "The draft cannot be used: its vocabulary differs from the target's."
    ),
    "failed to initialize speculative decoding context: (.+)": "It answers without drafting: {0}.",
    "speculative decoding not supported by this context": (
        "It answers without drafting: this model's memory cannot be rewound."
    ),
    "failed to load draft model, '(.+)'": "The draft model {0} could not be loaded.",
    "no implementations specified for speculative decoding": (
        "It answers without drafting: --spec-type is missing."
    ),
    r"process\(\) did not run on every prefill ubatch": (
        "A part of the prompt did not reach the draft: drafts may be poor."
    ),
    r"ngram_mod n_match=(\d+) is too small": "ngram-mod's n_match of {0} is too small: drafts may be poor.",
    r"requested draft size \(n_max=(\d+).*clamping to (\d+)": (
        "Drafts have {1} tokens instead of {0}: the draft model was trained for no more."
    ),
    "synthetic speculative acceptance is enabled": "Acceptance is synthetic: the text is not the model's.",
}
"""What a line of the log means, by a pattern that it has."""
_PROBLEMS = [(re.compile(pattern), sentence) for pattern, sentence in _SENTENCES.items()]
_CHECKPOINTS = "speculative decoding will use checkpoints"


class StrategyCounts(NamedTuple):
    """One strategy's line of statistics; llama-server counts from its start. Unknown counts are None."""

    begun: int | None  # prompts
    calls: int  # for a draft
    learned: int | None  # calls that told it what was accepted
    drafts: int
    accepted_drafts: int  # with an accepted token
    drafted: int
    accepted: int
    begin_ms: float | None
    draft_ms: float | None
    learn_ms: float | None

    def follows(self, other: StrategyCounts) -> bool:
        """Whether these counts continue `other`."""
        return (self.begun or self.calls) > (other.begun or other.calls) and self.drafted >= other.drafted

    def plus(self, other: StrategyCounts) -> StrategyCounts:
        """The sums of both; unknown where one of them does not report it."""
        return StrategyCounts._make(
            None if one is None or more is None else one + more for one, more in zip(self, other, strict=True)
        )


@dataclass(slots=True)
class ServerLog:
    """What a log contains. Counts are sums over its requests."""

    counts: dict[str, StrategyCounts] = field(default_factory=dict)
    """Type -> its statistics."""
    strategies: dict[str, str] = field(default_factory=dict)
    """Type -> its settings in the log's words; in order of precedence."""
    problems: list[str] = field(default_factory=list)
    requests: int = 0  # finished
    tokens: int = 0  # generated
    seconds: float = 0.0  # generating
    drafting: int = 0  # requests with a draft
    drafted: int = 0
    accepted: int = 0
    restored: int = 0  # rounds that were computed twice, because the memory goes back by checkpoints
    checkpoints: bool = False

    @property
    def known(self) -> bool:
        """Whether it says anything about speculation or speed."""
        found = self.strategies or self.problems or self.requests or self.counts
        return bool(found or self.drafted or self.checkpoints)

    @property
    def strategy(self) -> str:
        """The drafting strategies in our grammar; none if unknown."""
        names = [name for name in KINDS if name in self.strategies or name in self.counts]
        specs = []
        for name in names:
            known = {param.name for param in params_of(KINDS[name].params)}
            pairs = [pair.split("=", 1) for pair in self.strategies.get(name, "").split(", ") if pair]
            specs.append(":".join([name, *(f"{key}={quote(value)}" for key, value in pairs if key in known)]))
        try:
            return str(StrategySpec.parse("+".join(specs) or NONE))
        except SettingError:
            return "+".join(names)


def read_log(lines: Iterable[str]) -> ServerLog:
    """Read a log line by line."""
    log = ServerLog()
    reader = _CountSums()
    last = ""
    for line in lines:
        if found := _STRATEGY.search(line):
            last = found[1]
            log.strategies.setdefault(last, "")
        elif last and (found := _SETTINGS.search(line)):
            log.strategies[last], last = found[1].rstrip(", "), ""
        elif _counted(log, reader, line):
            continue
        elif _RESTORED.search(line):
            log.restored += 1
        elif _CHECKPOINTS in line:
            log.checkpoints = True
        else:
            for sentence in _problem(line):
                if sentence not in log.problems:
                    log.problems.append(sentence)
    log.counts = reader.totals()
    if not log.drafted:
        log.drafted = sum(counts.drafted for counts in log.counts.values())
        log.accepted = sum(counts.accepted for counts in log.counts.values())
    return log


def _counted(log: ServerLog, reader: _CountSums, line: str) -> bool:
    """Take the counts of a line, or of several whose line breaks were lost; False if it has none."""
    any_counts = False
    for part in line.split("statistics "):
        if found := _STATISTICS.match(part):
            reader.add(found, part)
        elif found := _SPEED.search(part):
            _answered(log, found[2], float(found[1]) / 1000)
        elif found := _OUR_ANSWER.search(part) or _DECODED.search(part):
            _answered(log, found[1].replace(",", ""), float(found[2]))
        if drafted := _ACCEPTANCE.search(part) or _VLLM.search(part):
            log.drafting += 1
            log.accepted += int(drafted[1])
            log.drafted += int(drafted[2])
        if n_drafted := _N_DRAFTED.search(part):
            log.drafting += 1
            log.drafted += int(n_drafted[1])
        if n_accept := _N_ACCEPT.search(part):
            log.accepted += int(n_accept[1])
        any_counts = any_counts or bool(found or drafted or n_drafted or n_accept)
    return any_counts


def _answered(log: ServerLog, tokens: str, seconds: float) -> None:
    log.requests += 1
    log.tokens += int(tokens)
    log.seconds += seconds


class _CountSums:
    """Adds up the lines of statistics: if a count continues from an earlier line, the last one counts."""

    def __init__(self) -> None:
        self._before: dict[str, StrategyCounts] = {}
        self._last: dict[str, StrategyCounts] = {}

    def add(self, found: re.Match[str], line: str) -> None:
        name = found[1].replace("_", "-")  # as older versions wrote it
        name = "draft-simple" if name == "draft" else name
        begun, asked, *others = (None if count is None else int(count) for count in found.groups()[1:])
        if asked is None:  # #calls alone
            begun, asked = None, begun
        times = _DURATIONS.search(line, found.end())
        durations = map(float, times.groups()) if times else (None,) * 3
        counts = StrategyCounts._make((begun, asked, *others, *durations))
        if name in self._last and not counts.follows(self._last[name]):
            self._before[name] = self.totals()[name]
        self._last[name] = counts

    def totals(self) -> dict[str, StrategyCounts]:
        return {
            name: self._before[name].plus(counts) if name in self._before else counts
            for name, counts in self._last.items()
        }


def _problem(line: str) -> Iterator[str]:
    for pattern, sentence in _PROBLEMS:
        if found := pattern.search(line.rstrip()):
            yield sentence.format(*found.groups())
            return
