"""What a llama-server log says about speculation: what drafts, how well, and why not.

The messages are those of the built-in version's common/speculative.cpp, common/arg.cpp and
tools/server/server-context.cpp. Most of them are printed from `--verbosity 4` on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_STRATEGY = re.compile(r"adding speculative implementation '([\w-]+)'")
# Each pair ends at a comma or the line: two ways to cut the same text would take exponential time.
_SETTINGS = re.compile(r"\s- (?!gpu_layers|mod size)((?:\w+=[^,\s]+(?:, |(?=\s*$)))+)\s*$")
_ACCEPTANCE = re.compile(
    r"draft acceptance(?: rate)? = +[\d.]+ \( *(\d{1,15}) accepted / +(\d{1,15}) generated\)"
)
_SPEED = re.compile(r"(?<!prompt) eval time = +(\d{1,15}(?:\.\d+)?) ms / +(\d{1,15}) tokens")
_RESTORED = re.compile(r"accepted +(\d+)/ *(\d+) draft tokens \(restore checkpoint\)")
_PROBLEMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (
            r'handling argument "(.+?)": the argument has been removed\. (.+?)\.?$',
            "It did not start: {0} has been removed; {1}.",
        ),
        (
            r"draft model vocab type must match target model to use speculation but (.+)",
            "The draft cannot be used: its tokenizer is of another type ({0}).",
        ),
        (
            r"draft model (bos|eos) tokens must match target model",
            "The draft cannot be used: its {0} token differs from the target's.",
        ),
        (
            r"target vocab size (\d+) does not match draft vocab size (\d+)",
            "The draft cannot be used: the target has {0} tokens, the draft {1}; up to 128 may differ.",
        ),
        (
            r"draft model vocab must match target model .*token (.+)",
            "The draft cannot be used: a token has another text in its vocabulary ({0}).",
        ),
        (
            r"the target and draft vocabs are not compatible",
            "The draft cannot be used: its vocabulary is not the target's.",
        ),
        (
            r"failed to initialize speculative decoding context: (.+)",
            "It answers without drafting: {0}.",
        ),
        (
            r"speculative decoding not supported by this context",
            "It answers without drafting: this model's memory cannot go back.",
        ),
        (r"failed to load draft model, '(.+)'", "The draft model {0} could not be loaded."),
        (
            r"no implementations specified for speculative decoding",
            "It answers without drafting: --spec-type is missing.",
        ),
        (
            r"process\(\) did not run on every prefill ubatch",
            "A part of the prompt did not reach the draft: drafts may be poor.",
        ),
        (
            r"ngram_mod n_match=(\d+) is too small",
            "ngram-mod's n_match of {0} is too small: drafts may be poor.",
        ),
        (
            r"requested draft size \(n_max=(\d+).*clamping to (\d+)",
            "Drafts are shorter than asked for: {1} tokens instead of {0}, as the draft was trained.",
        ),
        (
            r"synthetic speculative acceptance is enabled",
            "Acceptance is synthetic: the text is not the model's.",
        ),
    )
)
_CHECKPOINTS = "speculative decoding will use checkpoints"


@dataclass(slots=True)
class ServerLog:
    """What a log holds. Counts are sums over its requests."""

    strategies: dict[str, str] = field(default_factory=dict)
    """Type -> its settings as the log has them; in order of precedence."""
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
        """Whether it holds anything of llama-server's on speculation or speed."""
        return bool(self.strategies or self.problems or self.requests or self.checkpoints)


def read_log(lines: Iterable[str]) -> ServerLog:
    """Read a log line by line."""
    log = ServerLog()
    last = ""
    for line in lines:
        if found := _STRATEGY.search(line):
            last = found[1]
            log.strategies.setdefault(last, "")
        elif last and (found := _SETTINGS.search(line)):
            log.strategies[last], last = found[1].rstrip(", "), ""
        elif found := _SPEED.search(line):
            log.requests += 1
            log.tokens += int(found[2])
            log.seconds += float(found[1]) / 1000
        elif found := _ACCEPTANCE.search(line):
            log.drafting += 1
            log.accepted += int(found[1])
            log.drafted += int(found[2])
        elif _RESTORED.search(line):
            log.restored += 1
        elif _CHECKPOINTS in line:
            log.checkpoints = True
        else:
            for sentence in _problem(line):
                if sentence not in log.problems:
                    log.problems.append(sentence)
    return log


def _problem(line: str) -> Iterator[str]:
    for pattern, sentence in _PROBLEMS:
        if found := pattern.search(line.rstrip()):
            yield sentence.format(*found.groups())
            return
