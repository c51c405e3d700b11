"""The report of a search, as `tune --json` and its page hold it: what was tried, and on what machine."""

from __future__ import annotations

import msgspec

from app.engine.types import PairInfo
from app.lab.experiment import Experiment
from app.lab.facts import Digest, PairFacts, SystemFacts, no_digest, pair_facts, system_facts
from app.lab.report.report import ReportPrompt, ReportSettings, now, report_prompts
from app.lab.tune.tuned import Tuned


class TuneReport(Tuned, frozen=True, kw_only=True):
    """The search's result, with machine, models, settings and prompts."""

    format: str = "1.0"
    title: str
    created_at: str  # ISO 8601, UTC
    system: SystemFacts
    pairs: tuple[PairFacts, ...]  # the loaded pair; empty where it could not be loaded
    settings: ReportSettings  # `max_tokens` is the longest answer's; the first rungs have shorter answers
    prompts: tuple[ReportPrompt, ...]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"

    @classmethod
    def of(
        cls, tuned: Tuned, experiment: Experiment, pair: PairInfo | None, digest: Digest = no_digest
    ) -> TuneReport:
        return cls(
            **msgspec.structs.asdict(tuned),
            title=experiment.title,
            created_at=now(),
            system=system_facts(pair),
            pairs=(pair_facts(pair, digest),) if pair is not None else (),
            settings=ReportSettings.of(experiment),
            prompts=report_prompts(experiment),
        )
