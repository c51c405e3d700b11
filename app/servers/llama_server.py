"""llama-server: `/completion`, streamed with `timings_per_token`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from app.engine import types as engine_types
from app.engine.errors import PromptError
from app.engine.process.messages import Judge
from app.engine.rules.base import Rule
from app.engine.rules.registry import GREEDY, MATCH
from app.engine.sampling.dry import breaker_texts
from app.engine.sampling.logits import TOP
from app.engine.strategy import NONE
from app.servers import answer as answers
from app.servers.http import Asker, ServerError, strange

KIND = "llama-server"
_OFF = {"speculative.n_max": 0}
"""Asks a llama-server not to draft. The built-in version ignores it; the settings that a server accepted are
in its answer's `generation_settings`."""
_TOLD = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty")
_SAME = (
    "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "frequency_penalty",
    "presence_penalty", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n",
    "top_n_sigma", "typical_p", "xtc_probability", "xtc_threshold",
)  # fmt: skip
_SEEDS = 2**32 - 1  # the largest stands for a new seed


class _Timings(msgspec.Struct):
    cache_n: answers.Count = 0
    draft_n: answers.Count = 0
    draft_n_accepted: answers.Count = 0


class _Chunk(msgspec.Struct):
    content: str = ""
    tokens: list[answers.Id] = []
    tokens_predicted: answers.Count = 0
    tokens_evaluated: answers.Count = 0
    timings: _Timings | None = None
    stop: bool = False
    stop_type: str = ""
    truncated: bool = False


class _Meta(msgspec.Struct):
    n_vocab: answers.Count = 0
    n_ctx_train: answers.Count = 0
    n_params: answers.Size = 0
    size: answers.Size = 0


class _ModelEntry(msgspec.Struct):
    meta: _Meta | None = None


class _Models(msgspec.Struct):
    data: list[_ModelEntry] = []


class _Defaults(msgspec.Struct):
    params: dict[str, Any] = {}
    n_ctx: answers.Count = 0


class _ProbableToken(msgspec.Struct):
    id: answers.Id
    token: answers.Name
    logprob: float


class _ProbabilityRow(msgspec.Struct):
    top_logprobs: list[_ProbableToken] = []


class _ToldCompletion(msgspec.Struct):
    completion_probabilities: list[_ProbabilityRow] = []


class _ServerProps(msgspec.Struct):
    default_generation_settings: _Defaults
    total_slots: answers.Count = 0
    model_path: answers.Name = ""
    model_ftype: answers.Name = ""
    build_info: answers.Name = ""
    chat_template: str = ""


class LlamaServer:
    """A running llama-server."""

    def __init__(self, asker: Asker, props: object) -> None:
        """`props` is the answer of /props. Raises ServerError if it is not a llama-server's."""
        self._asker = asker
        self._props = self._as(props, _ServerProps)

    def describe(self) -> engine_types.PairInfo:
        props = self._props
        models = self._as(self._asker.ask("/v1/models"), _Models).data
        meta = (models[0].meta if models else None) or _Meta()
        took = self._settings_of_a_request()
        model = props.model_path.replace("\\", "/").rsplit("/", 1)[-1]
        defaults = props.default_generation_settings
        settings = {name: defaults.params[name] for name in _TOLD if _is_number(defaults.params.get(name))}
        server = engine_types.ServerInfo(
            address=self._asker.address,
            kind=KIND,
            model=model,
            version=props.build_info,
            speculation=self._speculation(took),
            switches_off=took.get("speculative.n_max") == 0,
            slots=props.total_slots,
            settings=settings,
        )
        return answers.served(
            server,
            quantisation=props.model_ftype,
            n_ctx=defaults.n_ctx,
            has_chat_template=bool(props.chat_template),
            **msgspec.structs.asdict(meta),
        )

    def prepare(self, request: engine_types.GenerationRequest, seed: int) -> answers.Asked:
        prompt, ids = self._prompt(request)
        sampling = request.sampling
        body = {
            "prompt": ids,
            "n_predict": request.max_tokens,
            "stream": True,
            "timings_per_token": True,
            "return_tokens": True,
            "cache_prompt": not request.cold,
            "stop": list(request.stop),
            "ignore_eos": request.ignore_eos,
            "seed": seed % _SEEDS,
            **{name: getattr(sampling, name) for name in _SAME},
            "dry_sequence_breakers": [
                text.decode(errors="replace") for text in breaker_texts(sampling.dry_sequence_breaker)
            ],
            **(_OFF if request.strategy == NONE else {}),
        }
        return answers.Asked(body, prompt, len(ids), seed, request.max_tokens)

    def pieces(self, asked: answers.Asked) -> Iterator[answers.Piece]:
        heard = answers.TokensHeard(self._asker.address, asked.max_tokens)
        for at, event in self._asker.stream("/completion", asked.body):
            chunk = self._as(event, _Chunk)
            if chunk.timings is None:
                raise strange(
                    self._asker.address, "does not send its counters with every token: it may be old"
                )
            # Tokens that do not complete a character are counted, and sent with none of their own.
            tokens = heard.up_to(chunk.tokens_predicted, chunk.tokens, chunk.content)
            drafts = chunk.timings.draft_n, chunk.timings.draft_n_accepted
            prompt = chunk.tokens_evaluated, chunk.timings.cache_n
            yield answers.Piece(at, tokens, *drafts, *prompt, _finish(chunk) if chunk.stop else None)

    def rule(self, temperature: float) -> Rule:
        # It draws the target's token at every place, and keeps the draft as far as it agrees.
        return MATCH if temperature > 0 else GREEDY

    def whole(self) -> engine_types.WholeServer | None:
        return None  # it reports every answer's own counts

    def judge(self, asked: Judge) -> engine_types.Alternatives:
        text, ids = self._prompt(asked.request)
        known = engine_types.UNTOLD not in asked.answer
        body = {
            "prompt": [*ids, *asked.answer] if known else text + asked.text,
            "n_predict": 1,
            "n_probs": TOP,
            "temperature": 0,
            "cache_prompt": False,
            **_OFF,
        }
        rows = self._as(self._asker.ask("/completion", body), _ToldCompletion).completion_probabilities
        return answers.alternatives(
            [(one.id, one.token, one.logprob) for row in rows[:1] for one in row.top_logprobs]
        )

    def _prompt(self, request: engine_types.GenerationRequest) -> tuple[str, list[int]]:
        """(the prompt's text, its tokens by the server's vocabulary)"""
        if request.prompt_ids:
            answer = self._asker.ask("/detokenize", {"tokens": list(request.prompt_ids)})
            return self._as(answer, dict[str, str]).get("content", ""), list(request.prompt_ids)
        text, is_chat = request.prompt or "", bool(request.messages)
        if is_chat:
            options = {"chat_template_kwargs": request.template_options} if request.template_options else {}
            answer = self._asker.ask("/apply-template", {"messages": list(request.messages), **options})
            text = self._as(answer, dict[str, str]).get("prompt", "")
        # Control text within a raw prompt is plain text, as in our own engine.
        body = {"content": text, "add_special": True, "parse_special": is_chat}
        ids = self._as(self._asker.ask("/tokenize", body), dict[str, list[answers.Id]]).get("tokens", [])
        if not ids:
            raise PromptError("The prompt is empty.", "Give a text.")
        return text, ids

    def _settings_of_a_request(self) -> dict[str, Any]:
        """The settings that the server accepted of a request for one token without drafts."""
        body = {"prompt": "Hello", "n_predict": 1, "cache_prompt": False, **_OFF}
        answer = self._as(self._asker.ask("/completion", body), dict[str, Any])
        return self._as(answer.get("generation_settings", {}), dict[str, Any])

    def _speculation(self, took: dict[str, Any]) -> tuple[str, ...]:
        """Its drafting strategies, by its own names."""
        types = self._as(took.get("speculative.types", "draft-simple"), answers.Name).split(",")
        try:
            slots = self._as(self._asker.ask("/slots"), list[dict[str, Any]])
        except ServerError as error:
            if error.status not in (404, 501):
                raise
            slots = []  # it is started without them
        if any(slot.get("speculative") is False for slot in slots):
            return ()  # nothing was given, or its context cannot go back
        return tuple(name for name in types if name and name != NONE)

    def _as(self, answer: object, shape: type[answers.T]) -> answers.T:
        return answers.shaped(answer, shape, self._asker.address, "a llama-server")


def _finish(chunk: _Chunk) -> engine_types.FinishReason:
    if chunk.stop_type == "eos":
        return engine_types.FinishReason.END
    if chunk.stop_type == "word":
        return engine_types.FinishReason.STOP
    return engine_types.FinishReason.CONTEXT if chunk.truncated else engine_types.FinishReason.LENGTH


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 2**63
