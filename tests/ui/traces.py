"""Traces made without a model, for tests and benchmarks of the window.

`make_round` writes one round by hand, `simulate` speculates over a given text with a random acceptance,
`drawing` is the answer in the design drawings.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence

from app.engine.fates import Origin, Verdict
from app.engine.record.trace import FORMAT, Trace
from app.engine.types import (
    Alternatives,
    DraftedToken,
    Draw,
    EmittedToken,
    FinishReason,
    ModelInfo,
    PairInfo,
    Round,
    Sampling,
    Totals,
    TraceHeader,
)

_TOKEN = re.compile(r"\n+ *| ?[A-Za-z]{1,7}|[a-z]+|\d| +(?= )| ?[^\sA-Za-z\d]|\s", re.ASCII)
_WRONG = (" the", " of", " value", " list", " =", "\n", " average", " a", "(", " not")


def token_id(piece: bytes) -> int:
    """The same id for the same bytes, in every run."""
    return zlib.crc32(piece) % 32_000


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def model(name: str = "demo 32M", n_params: int = 32_000_000) -> ModelInfo:
    return ModelInfo(
        path=f"models/{name}.gguf", name=name, architecture="llama", quantisation="Q8_0",
        size=n_params, n_params=n_params, n_layers=6, n_vocab=32_000, n_ctx_train=4096,
        n_ctx=4096, threads=1, has_chat_template=True,
    )  # fmt: skip


def make_header(
    strategy: str = "draft-simple:n_max=4",
    verification: str = "greedy",
    temperature: float = 0.0,
    stop: tuple[str, ...] = (),
) -> TraceHeader:
    pair = PairInfo(model(), model("demo 1.4M", 1_400_000), "same vocabulary")
    return TraceHeader(
        format=FORMAT, app_version="0.1.0", strategy=strategy, verification=verification,
        sampling=Sampling(temperature=temperature), seed=7, max_tokens=512, pair=pair,
        prompt="Hello", prompt_tokens=5, cached_tokens=0, cold=True,
        started_at="2025-01-01T00:00:00Z", stop=stop,
    )  # fmt: skip


def make_round(
    index: int,
    accepted: Sequence[str | bytes] = (),
    emitted: str | bytes | None = None,
    rejected: str | bytes | None = None,
    ignored: Sequence[str | bytes] = (),
    *,
    label: str = "",
    **changes: object,
) -> Round:
    """A greedy round: `accepted` drafts, then `rejected` and `ignored` ones, then `emitted`.

    `label` makes the last emitted token a control token. None emits nothing after the drafts.
    """
    target = token_id(as_bytes(emitted or b""))
    drafts = [_drafted(piece, Verdict.ACCEPTED, 0.9, token_id(as_bytes(piece))) for piece in accepted]
    if rejected is not None:
        drafts.append(_drafted(rejected, Verdict.REJECTED, 0.118, target))
    drafts += [_drafted(piece, Verdict.IGNORED, None, None) for piece in ignored]
    out = [_emitted(piece, Origin.ACCEPTED, 0.9) for piece in accepted]
    if emitted is not None or label:
        origin = Origin.RESAMPLED if rejected is not None else Origin.BONUS
        out.append(_emitted(emitted or b"", origin if drafts else Origin.PLAIN, 0.724, label))
    return raw_round(index, drafts, out, **changes)


def raw_round(
    index: int, drafted: Sequence[DraftedToken], emitted: Sequence[EmittedToken], **changes: object
) -> Round:
    """A round of these tokens; `changes` are further fields of Round."""
    fields: dict[str, object] = {
        "position": 0, "offset": index * 0.01, "seconds": 0.0112, "draft_seconds": 0.0011,
        "verify_seconds": 0.0096, "sample_seconds": 0.0004, "native_seconds": 0.0105,
        "strategy": "draft-simple" if drafted else None,
    }  # fmt: skip
    fields.update(changes)
    return Round(index=index, drafted=tuple(drafted), emitted=tuple(emitted), **fields)  # type: ignore[arg-type]


def make_totals(text: str, reason: FinishReason = FinishReason.END, error: str = "") -> Totals:
    return Totals(
        finish_reason=reason, text=text, seconds=1.5, prompt_seconds=0.02,
        draft_prompt_seconds=0.01, first_token_seconds=0.03, error=error,
    )  # fmt: skip


def make_trace(rounds: Iterable[Round], finish: FinishReason | None = FinishReason.END) -> Trace:
    """A greedy trace of these rounds; `finish` None leaves it unfinished."""
    trace = Trace(make_header(), list(rounds))
    if finish is not None:
        trace.totals = make_totals(emitted_text(trace.rounds), finish)
    return trace


def emitted_text(rounds: Iterable[Round]) -> str:
    pieces = b"".join(token.piece for round in rounds for token in round.emitted)
    return pieces.decode(errors="replace")


def drawing() -> Trace:
    """The answer that the design drawings show, with the code in a fence."""
    rows: list[tuple[list[str], str, str | None, list[str]]] = [
        ([], "```", None, []),
        (["python", "\n"], "def", None, []),
        ([" mean", "(", "values", "):"], '\n    """', None, []),
        (["Return", " the"], " arithmetic", " average", [" of", " a"]),
        ([" mean", " of", " a", " non"], "-", None, []),
        (["empty", " sequence", ".", '"""\n'], "    if", None, []),
        ([" not", " values", ":"], "\n        raise", None, []),
        ([" Value", "Error", '("'], "mean", "empty", [" list"]),
        ([" of", " an", " empty", " sequence"], '")', None, []),
        (["\n    "], "return", "total", [" ="]),
        ([" sum", "(", "values", ")"], " /", None, []),
        ([" len", "(values", ")"], "\n```", None, []),
        ([], "\n\nIt", None, []),
        ([" adds", " the", " numbers"], " up", "\n", [" and"]),
        ([" and", " divides", " by", " how"], " many", None, []),
        ([" there", " are", ",", " and"], " refuses", " it", []),
        ([" an", " empty"], " sequence", " list", []),
        ([" because", " its", " mean", " is"], " not", None, []),
        ([" defined", "."], "", None, []),
    ]
    rounds = [
        make_round(index, accepted, end, rejected, ignored)
        for index, (accepted, end, rejected, ignored) in enumerate(rows[:-1])
    ]
    rounds.append(make_round(len(rounds), rows[-1][0], label="<|end|>"))
    rounds[3] = _with_alternatives(rounds[3])
    return make_trace(rounds)


def _with_alternatives(round: Round) -> Round:
    def top(*rows: tuple[str, float]) -> Alternatives:
        pieces = tuple(text.encode() for text, _ in rows)
        return Alternatives(tuple(map(token_id, pieces)), pieces, tuple(p for _, p in rows))

    target = (
        top(("Return", 0.97), ("The", 0.02), ("A", 0.004)),
        top((" the", 0.91), (" a", 0.05), (" an", 0.03)),
        top((" arithmetic", 0.724), (" average", 0.118), (" mean", 0.1), (" sum", 0.02), ("\n", 0.01)),
    )
    draft = (
        top(("Return", 0.93), ("Returns", 0.03), ("Compute", 0.02)),
        top((" the", 0.88), (" a", 0.1), (" an", 0.01)),
        top((" average", 0.61), (" arithmetic", 0.17), (" sum", 0.08), (" mean", 0.07), (" total", 0.02)),
        top((" of", 0.7), (",", 0.1), (".", 0.05)),
        top((" a", 0.66), (" the", 0.2), (" all", 0.05)),
    )
    return make_round(
        round.index, ["Return", " the"], " arithmetic", " average", [" of", " a"],
        target_top=target, draft_top=draft,
    )  # fmt: skip


def simulate(text: str, k: int = 4, rate: float = 0.8, seed: int = 1) -> Trace:
    """Speculate over `text` with `k` drafts a round, each right with probability `rate`, sampled."""
    header = make_header(verification="speculative", temperature=0.8)
    trace = Trace(header, list(_simulated(_TOKEN.findall(text), k, rate, random.Random(seed))))
    trace.totals = make_totals(emitted_text(trace.rounds), FinishReason.LENGTH)
    return trace


def _simulated(pieces: list[str], k: int, rate: float, luck: random.Random) -> Iterator[Round]:
    at = index = 0
    while at < len(pieces):
        wanted = pieces[at : at + k + 1]
        good = 0
        while good < len(wanted) - 1 and luck.random() < rate:
            good += 1
        wrong: list[str] = []
        if good < len(wanted) - 1:
            choices = [piece for piece in _WRONG if piece != wanted[good]]
            wrong = [luck.choice(choices) for _ in range(min(k, len(wanted) - 1) - good)]
        yield _sampled_round(index, at, wanted[: good + 1], wrong, luck)
        at += good + 1
        index += 1


def _sampled_round(
    index: int, position: int, emitted: list[str], wrong: list[str], luck: random.Random
) -> Round:
    *accepted, end = emitted
    drafts = []
    for piece in accepted:
        p = luck.uniform(0.3, 1)
        drafts.append(_drafted(piece, Verdict.ACCEPTED, p, None, u=luck.random() * p))
    for place, piece in enumerate(wrong):
        verdict = Verdict.IGNORED if place else Verdict.REJECTED
        p = None if place else luck.uniform(0, 0.3)
        drafts.append(_drafted(piece, verdict, p, None, u=None if p is None else luck.uniform(p, 1)))
    low = luck.uniform(0, 0.5)
    draw = Draw(luck.uniform(low, low + 0.4), low, low + 0.4)
    origin = Origin.RESAMPLED if wrong else Origin.BONUS if accepted else Origin.PLAIN
    out = [
        _emitted(piece, Origin.ACCEPTED, draft.p or 0.0)
        for piece, draft in zip(accepted, drafts, strict=False)
    ]
    out.append(EmittedToken(token_id(end.encode()), end.encode(), origin, 0.4, draw))
    everything = [*accepted, *wrong]
    return raw_round(
        index, drafts, out, position=position,
        target_top=tuple(_alternatives(piece, luck) for piece in emitted),
        draft_top=tuple(_alternatives(piece, luck) for piece in everything),
    )  # fmt: skip


def _alternatives(first: str, luck: random.Random) -> Alternatives:
    pieces = [first, *luck.sample([piece for piece in _WRONG if piece != first], 4)]
    shares = sorted((luck.random() for _ in pieces), reverse=True)
    encoded = tuple(piece.encode() for piece in pieces)
    return Alternatives(
        tuple(map(token_id, encoded)), encoded, tuple(share / sum(shares) for share in shares)
    )


def _drafted(
    piece: str | bytes, verdict: Verdict, p: float | None, target: int | None, u: float | None = None
) -> DraftedToken:
    raw = as_bytes(piece)
    return DraftedToken(token_id(raw), raw, verdict, 1.0, 0.61, p, u, target)


def _emitted(piece: str | bytes, origin: Origin, p: float, label: str = "") -> EmittedToken:
    raw = as_bytes(piece)
    return EmittedToken(token_id(raw), raw, origin, p, None, label)
