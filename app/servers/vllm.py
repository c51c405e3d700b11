"""vLLM: `/v1/completions` and `/v1/chat/completions`, streamed with usage and token ids in every chunk."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from app.engine import types
from app.engine.errors import SettingError
from app.engine.process.messages import Judge
from app.engine.rules.base import Rule
from app.engine.rules.registry import GREEDY, SPECULATIVE
from app.engine.sampling.logits import TOP
from app.servers import answer as answers
from app.servers.http import Asker, ServerError, strange

KIND = "vLLM"
_SAME = ("temperature", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty")
_ELSEWHERE = ("dry_multiplier", "top_n_sigma", "typical_p", "xtc_probability")
_COUNTER = re.compile(
    r"^vllm:spec_decode_num_(draft|accepted)_tokens(?:_total)?(?:\{.*\})? ([0-9.eE+]+)$", re.M
)
_DRAFTS = "an unknown method"
"""Replaces a strategy's name: vLLM does not report it."""


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None


class _CompletionChoice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    token_ids: list[answers.Id] | None = None
    finish_reason: str | None = None

    @property
    def written(self) -> str:
        if self.delta is not None:
            return (self.delta.reasoning or "") + (self.delta.content or "")
        return self.text or ""


class _Details(msgspec.Struct):
    cached_tokens: answers.Count = 0


class _Usage(msgspec.Struct):
    prompt_tokens: answers.Count = 0
    completion_tokens: answers.Count = 0
    prompt_tokens_details: _Details | None = None


class _StepCounts(msgspec.Struct):
    per_step_accepted: list[answers.Count] | None = None
    per_step_drafted: list[answers.Count] | None = None


class _Metrics(msgspec.Struct):
    speculative_decoding: _StepCounts | None = None


class _CompletionChunk(msgspec.Struct):
    choices: list[_CompletionChoice] = []
    usage: _Usage | None = None
    metrics: _Metrics | None = None


class _LogprobToken(msgspec.Struct):
    token: answers.Name
    logprob: float


class _LogprobRow(msgspec.Struct):
    top_logprobs: list[_LogprobToken] = []


class _Logprobs(msgspec.Struct):
    top_logprobs: list[dict[answers.Name, float]] = []  # of a text
    content: list[_LogprobRow] = []  # of a chat


class _ToldChoice(msgspec.Struct):
    logprobs: _Logprobs | None = None


class _ToldText(msgspec.Struct):
    choices: list[_ToldChoice] = []


class _ServedModel(msgspec.Struct):
    id: answers.Name
    max_model_len: answers.Count | None = None


class _ServedModels(msgspec.Struct):
    data: list[_ServedModel]


class Vllm:
    """A running vLLM, or a server that answers as it does."""

    def __init__(self, asker: Asker) -> None:
        """Raises ServerError if it lists no model."""
        self._asker = asker
        cards = self._as(asker.ask("/v1/models"), _ServedModels).data
        if not cards:
            raise strange(asker.address, "has no model")
        self._card = cards[0]
        self._detailed = False  # whether it reports its counts by step

    def describe(self) -> types.PairInfo:
        steps = self._steps_of_a_request()
        self._detailed = steps is not None and steps.per_step_drafted is not None
        drafts = steps is not None or self._counted() is not None
        server = types.ServerInfo(
            address=self._asker.address,
            kind=KIND,
            model=self._card.id.rsplit("/", 1)[-1],
            version=self._version(),
            speculation=(_DRAFTS,) if drafts else (),
            tells_fates=self._detailed or not drafts,
        )
        return answers.served(server, n_ctx=self._card.max_model_len or 0, has_chat_template=True)

    def prepare(self, request: types.GenerationRequest, seed: int) -> answers.Asked:
        sampling = request.sampling
        for name in _ELSEWHERE:
            if getattr(sampling, name) != getattr(type(sampling)(), name):
                raise SettingError(f"vLLM has no {name}.", "Leave it at its default.")
        body: dict[str, Any] = {
            "model": self._card.id,
            "max_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_token_ids": True,
            "stop": list(request.stop),
            "ignore_eos": request.ignore_eos,
            "seed": seed % 2**63,
            "repetition_penalty": sampling.repeat_penalty,
            **{name: getattr(sampling, name) for name in _SAME},
        }
        if request.cold:  # its cache of prompts is shared by those with the same salt
            body["cache_salt"] = secrets.token_hex(8)
        if request.messages:
            body["messages"] = list(request.messages)
            if request.template_options:
                body["chat_template_kwargs"] = request.template_options
            text = "\n".join(message.content for message in request.messages)
        else:
            body["prompt"] = list(request.prompt_ids) or request.prompt
            text = request.prompt or ""
        return answers.Asked(body, text, 0, seed, request.max_tokens)

    def pieces(self, asked: answers.Asked) -> Iterator[answers.Piece]:
        held: list[answers.Piece] = []  # with counts by step, which come last
        seen, finish = 0, None
        for piece, chunk in self._chunks(asked):
            if piece.tokens and self._detailed and seen:  # the first comes out of the prompt's pass
                held.append(piece)
            elif piece.tokens:
                yield piece
            seen += len(piece.tokens)
            finish = piece.finish or finish
            if finish is not None and not chunk.choices:  # the chunk behind the last: usage and metrics
                steps = self._checked(chunk.metrics.speculative_decoding if chunk.metrics else None)
                last = piece
                for last in _by_step(held, steps):
                    yield last
                yield replace(piece, finish=finish, drafted=last.drafted, accepted=last.accepted)
                return

    def _chunks(self, asked: answers.Asked) -> Iterator[tuple[answers.Piece, _CompletionChunk]]:
        """The chunks of an answer, with their reports."""
        path = "/v1/chat/completions" if "messages" in asked.body else "/v1/completions"
        heard, usage = answers.TokensHeard(self._asker.address, asked.max_tokens), _Usage()
        for at, event in self._asker.stream(path, asked.body):
            chunk = self._as(event, _CompletionChunk)
            usage = chunk.usage or usage
            choice = chunk.choices[0] if chunk.choices else _CompletionChoice()
            told = heard.more(usage.completion_tokens, choice.token_ids or [], choice.written)
            cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
            finish = _finish(choice.finish_reason)
            yield answers.Piece(at, told, 0, 0, usage.prompt_tokens, cached, finish), chunk

    def judge(self, asked: Judge) -> types.Alternatives:
        request = asked.request
        body: dict[str, Any] = {"model": self._card.id, "max_tokens": 1, "temperature": 0}
        if request.messages:
            path = "/v1/chat/completions"
            body["messages"] = [*request.messages, types.Message("assistant", asked.text)]
            body |= {"continue_final_message": True, "add_generation_prompt": False}
            body |= {"chat_template_kwargs": request.template_options} if request.template_options else {}
            body |= {"logprobs": True, "top_logprobs": TOP}
        else:
            path = "/v1/completions"
            ids = [*request.prompt_ids, *asked.answer]
            body |= {
                "prompt": ids if request.prompt_ids else (request.prompt or "") + asked.text,
                "logprobs": TOP,
            }
        choices = self._as(self._asker.ask(path, body), _ToldText).choices
        told = (choices[0].logprobs if choices else None) or _Logprobs()
        rows = [[(one.token, one.logprob) for one in row.top_logprobs] for row in told.content]
        rows += [list(row.items()) for row in told.top_logprobs]
        return answers.alternatives([(types.UNTOLD, text, p) for text, p in rows[0]] if rows else [])

    def rule(self, temperature: float) -> Rule:
        return SPECULATIVE if temperature > 0 else GREEDY

    def whole(self) -> types.WholeServer | None:
        return self._counted()

    def _checked(self, told: _StepCounts | None) -> list[tuple[int, int]]:
        """Drafted and accepted tokens of every step that had a draft. Raises ServerError."""
        drafted = (told.per_step_drafted if told else None) or []
        accepted = (told.per_step_accepted if told else None) or []
        steps = list(zip(drafted, accepted, strict=False))
        if len(drafted) != len(accepted) or any(not 0 <= taken <= sent for sent, taken in steps):
            raise ServerError(
                "The server's counts by step contradict each other.", "Its numbers cannot be used."
            )
        return steps

    def _steps_of_a_request(self) -> _StepCounts | None:
        """Its report on the drafts of a request for one token; None if there is none."""
        body = {"model": self._card.id, "prompt": "Hello", "max_tokens": 1}
        chunk = self._as(self._asker.ask("/v1/completions", body), _CompletionChunk)
        return chunk.metrics.speculative_decoding if chunk.metrics else None

    def _counted(self) -> types.WholeServer | None:
        try:
            text = self._asker.text("/metrics")
        except ServerError as error:
            if error.status != 404:
                raise
            return None
        counts = {"draft": 0, "accepted": 0}
        found = _COUNTER.findall(text)
        for name, number in found:
            try:
                counts[name] += self._as(int(float(number)), answers.Size)
            except (ValueError, OverflowError):
                raise strange(self._asker.address, "sends a counter that is not a number") from None
        return types.WholeServer(counts["draft"], counts["accepted"]) if found else None

    def _version(self) -> str:
        try:
            return self._as(self._asker.ask("/version"), dict[str, answers.Name]).get("version", "")
        except ServerError as error:
            if error.status != 404:
                raise
            return ""

    def _as(self, answer: object, shape: type[answers.T]) -> answers.T:
        return answers.shaped(answer, shape, self._asker.address, "vLLM")


def _finish(reason: str | None) -> types.FinishReason | None:
    if reason is None:
        return None
    return types.FinishReason.LENGTH if reason == "length" else types.FinishReason.END


def _by_step(pieces: list[answers.Piece], steps: list[tuple[int, int]]) -> Iterator[answers.Piece]:
    """The tokens after the first with running counters, as llama-server would send them. Usually a piece is a
    step. Steps without a draft are not listed: a piece of one token counts as such a step while there are
    more tokens than the steps with a draft explain. (It is unknown which of several single tokens followed a
    wholly rejected draft.)
    """
    undrafted = sum(len(piece.tokens) for piece in pieces) - sum(taken + 1 for _, taken in steps)
    rest, drafted, accepted, open = list(steps), 0, 0, 0
    for piece in pieces:
        for place, token in enumerate(piece.tokens):
            if not open and rest and not (undrafted > 0 and len(piece.tokens) == 1 and place == 0):
                sent, taken = rest.pop(0)
                drafted, accepted, open = drafted + sent, accepted + taken, taken + 1
            elif not open:
                undrafted -= 1
            open = max(open - 1, 0)
            yield replace(piece, tokens=[token], drafted=drafted, accepted=accepted)
