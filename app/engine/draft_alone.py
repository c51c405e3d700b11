"""A strategy's draft after a prompt, without a target: its vocabulary is read, its weights are not."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from app.engine.drafters.base import Resources, RunContext
from app.engine.drafters.lookup_caches import LookupCaches
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.native import Vocabulary
from app.engine.native.header import FileHeader
from app.engine.process.messages import AloneToken, DraftedAlone
from app.engine.sampling.draws import Draws
from app.engine.sampling.dry import breakers_of
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategySpec
from app.engine.templates.chat import ChatTemplate
from app.engine.templates.completion import tokenized
from app.engine.templates.process import Templates
from app.engine.types import GenerationRequest


def draft_alone(
    target: str,
    request: GenerationRequest,
    templates: Templates,
    run: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> DraftedAlone:
    """The first draft that a strategy finds after the prompt, in order of precedence; empty if none does.

    Raises UserError if the file, the prompt or the strategy cannot be used.
    """
    spec = StrategySpec.parse(request.strategy)
    if any(part.name.startswith("draft-") for part in spec.parts) or spec.is_synthetic or not spec.parts:
        raise SettingError(
            f"{spec} cannot draft without a target.", "Choose strategies without a draft model."
        )
    header = FileHeader(Path(target))
    try:
        vocabulary = header.vocabulary
        template = ChatTemplate(header.metadata("tokenizer.chat_template"), vocabulary, templates)
        ids = tokenized(request, vocabulary, template, stopped).ids
        resources = Resources(vocabulary, lookup_caches=LookupCaches())
        sampling = request.sampling
        around = RunContext(
            Sampler(sampling, (), breakers_of(vocabulary, sampling)),
            Draws(secrets.randbits(63) if sampling.seed < 0 else sampling.seed),
            len(ids),
            frozenset() if request.ignore_eos else vocabulary.end_ids,
            is_stopped=stopped,
        )
        ends: list[str] = []
        for part in spec.parts:
            drafter = KINDS[part.name].make(part.params, resources)
            drafter.begin(ids, around)
            found = drafter.propose(ids, min(part.longest, request.max_tokens))
            end = found.fault or found.end
            if found.ids:
                tokens = tuple(_token(id, vocabulary) for id in found.ids)
                return DraftedAlone(run, part.name, len(ids), tokens, found.match, end)
            ends.append(f"{part.name}: {end}")
        return DraftedAlone(run, "", len(ids), end="; ".join(ends))
    finally:
        header.close()


def _token(id: int, vocabulary: Vocabulary) -> AloneToken:
    piece = vocabulary.piece(id)
    return AloneToken(id, piece, "" if piece else vocabulary.label(id))
