"""The lanes and the race: the run that each lane shows, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.base import numbers
from app.engine.errors import TraceError
from app.engine.record.trace import Trace
from app.engine.types import PairInfo, Round
from app.lab.experiment import Experiment, Job, Lane
from app.ui.compare.lab_session import LabSession
from app.ui.compare.lane_card import LanesView
from app.ui.compare.race_bar import LaneAt, LaneRace, RaceBar
from app.ui.compare.words import (
    NO_BASELINE,
    THIS_RUN,
    ahead_words,
    badge,
    lane_words,
    place_words,
    prompt_words,
)
from app.ui.pair.server_form import told_line, told_words
from app.ui.state.answer import AnswerModel
from app.ui.state.lab_work import Stage
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Throttle
from app.ui.widgets.words import duration, file_name, pair_words, significant


class RaceView(QWidget):
    """Follows the current run, or shows the answers to a prompt as a race."""

    following_changed = Signal()

    def __init__(self, theme: Theme, session: LabSession, servers: Servers) -> None:
        super().__init__()
        self._session = session
        self._servers = servers
        self._lanes: tuple[Lane, ...] = ()  # that are shown
        self.lanes = LanesView(theme)
        self.bar = RaceBar(theme)
        self.bar.moved.connect(self._show_moment)
        self.bar.chosen.connect(self.show_prompt)
        self.following = True  # whether the lanes show the current runs
        self.race: LaneRace | None = None
        self._answers: dict[int, AnswerModel] = {}  # by lane, to the prompt that is shown
        self._shown = (0, 0)  # repeat, prompt
        self._at_hand = (0, 0)  # repeat and prompt of the latest run
        self._best: int | None = None  # the lane that is the fastest over all runs
        self._known = 0  # number of lanes that had answered the prompt when it was shown
        self._seldom = Throttle(self._show_live_numbers, self)
        kit.column((self.lanes, 1), self.bar, spacing=0, on=self)
        session.progressed.connect(self._show_live)
        session.run_over.connect(self._renew)
        session.stage_changed.connect(self._stage_changed)
        servers.changed.connect(self._tell_lanes)

    def set_lanes(self, lanes: tuple[Lane, ...]) -> None:
        """Show the lanes of a set-up that was not measured yet, the baseline first."""
        self._put_lanes(lanes)
        self.race, self._answers = None, {}
        self.bar.hide()
        for card, lane in zip(self.lanes.cards, lanes, strict=True):
            card.set_answer(None, lane_words(lane))
            card.set_numbers("–", "", "not measured yet")

    def _put_lanes(self, lanes: tuple[Lane, ...]) -> None:
        self._lanes = lanes
        self.lanes.set_lanes([(_title(lane), _whole(lane)) for lane in lanes])
        self._tell_lanes()

    def _tell_lanes(self) -> None:
        """Say which model answers in each lane, if one of them is a server."""
        servers = [lane.pair.target.path if lane.pair and lane.pair.is_server else "" for lane in self._lanes]
        for index, (card, address) in enumerate(zip(self.lanes.cards, servers, strict=True)):
            info = self._session.pairs.get(index) or self._servers.known(address).info
            line, whole = _told(info) if info is not None else (address.partition("://")[2], address)
            card.set_told(line, whole, shown=any(servers))

    def set_best(self, lane: int | None) -> None:
        """Frame the lane that is the fastest over all runs, whichever run is shown."""
        self._best = lane
        for at, card in enumerate(self.lanes.cards):
            card.set_best(at == lane and not self.following)

    # ------------------------------------------------------------------ which run

    def follow(self) -> None:
        """Show the current runs."""
        self.following = True
        self.race, self._answers = None, {}
        self.bar.set_seconds(0.0)
        for card in self.lanes.cards:
            card.set_best(False)
        self._show_live()
        self._seldom.now()
        self.following_changed.emit()

    def show_prompt(self, repeat: int, prompt: int) -> None:
        """Show all lanes' answers to a prompt in one repeat, as the end of their race."""
        experiment = self._session.experiment
        if experiment is None:
            return
        self.following = False
        self._shown = repeat, prompt
        self.bar.set_choice(repeat, prompt)
        read = {lane: self._read(Job(repeat, prompt, lane)) for lane in range(len(experiment.lanes))}
        traces = {lane: trace for lane, trace in read.items() if trace is not None}
        self._answers = {lane: AnswerModel(trace) for lane, trace in traces.items()}
        self._known = self._answered()
        self.race = LaneRace(traces, experiment.baseline_of) if traces else None
        self.bar.set_seconds(self.race.seconds if self.race is not None else 0.0)
        self._show_moment(self.bar.at)
        self.following_changed.emit()

    def show_parting(self, job: Job) -> None:
        """Show where a run diverges from its baseline's text, in both lanes."""
        self.show_prompt(job.repeat, job.prompt)
        experiment, record = self._session.experiment, self._session.records.get(job)
        if experiment is None or record is None or record.first_divergence is None:
            return
        for lane in (experiment.baseline_of(job.lane), job.lane):
            if lane is None:
                continue
            answer = self._answers.get(lane)
            at = _round_of(answer.rounds, record.first_divergence.index) if answer is not None else None
            if at is not None:
                self.lanes.cards[lane].show_round(at)

    def _read(self, job: Job) -> Trace | None:
        if job not in self._session.records:
            return None
        try:
            return self._session.trace(job)
        except TraceError:
            return None  # the file is damaged; the numbers are still known

    # ------------------------------------------------------------------ what is being measured

    def _stage_changed(self) -> None:
        session = self._session
        if session.experiment is None:
            return
        if session.stage is Stage.FREEING:
            self._begin(session.experiment)
        elif not session.at_work and self.following:
            self._show_first()

    def _begin(self, experiment: Experiment) -> None:
        self._put_lanes(experiment.lanes)
        self.bar.show()
        self.bar.set_choices(
            [prompt_words(experiment, prompt) for prompt in range(len(experiment.prompts))],
            experiment.repeats,
        )
        for card in self.lanes.cards:
            card.set_answer(None)
            card.set_numbers("–", "", "waiting for its turn")
        self.follow()

    def _show_first(self) -> None:
        """Show the first prompt that all lanes have answered, once nothing runs."""
        session = self._session
        experiment = session.experiment
        assert experiment is not None
        for lane, card in enumerate(self.lanes.cards):
            card.set_at_work(False)
            if Job(*self._at_hand, lane) not in session.records:
                card.set_numbers("–", "", "not measured yet")
        whole = [
            (job.repeat, job.prompt)
            for job in session.records
            if all(
                Job(job.repeat, job.prompt, lane) in session.records for lane in range(len(experiment.lanes))
            )
        ]
        if whole:
            self.show_prompt(*min(whole))

    def _renew(self) -> None:
        """Update what is shown after a run, which may have answered the shown prompt."""
        session = self._session
        experiment = session.experiment
        if experiment is None:
            return
        if len(self.lanes.cards) != len(experiment.lanes) or self.bar.prompt.count() == 0:
            self._begin(experiment)
        self._tell_lanes()
        if not self.following and not self.bar.playing and self._answered() > self._known:
            self.show_prompt(*self._shown)

    def _answered(self) -> int:
        """The number of lanes that have answered the shown prompt."""
        lanes = range(len(self.lanes.cards))
        return sum(Job(*self._shown, lane) in self._session.records for lane in lanes)

    def _show_live(self) -> None:
        if not self.following or not self._session.at_work:
            return
        at_hand = self._session.job
        if at_hand is not None:
            self._at_hand = at_hand.repeat, at_hand.prompt
        changed = False
        for lane, card in enumerate(self.lanes.cards):
            answer = self._session.live.get(lane) if self._is_current(lane) else None
            if answer is not card.answer:
                card.set_answer(answer)
                changed = True
        if changed:
            self._seldom.now()  # else the caption would still say that this lane waits
        else:
            self._seldom.request()

    def _is_current(self, lane: int) -> bool:
        """Whether the lane's latest answer is to the current prompt, so that all lanes show the same
        prompt."""
        job = self._session.jobs.get(lane)
        return job is not None and (job.repeat, job.prompt) == self._at_hand

    def _show_live_numbers(self) -> None:
        session = self._session
        experiment = session.experiment
        if not self.following or experiment is None or not session.at_work:
            return
        at_hand = session.job
        if at_hand is not None:
            self.bar.set_choice(at_hand.repeat, at_hand.prompt)
        for lane, card in enumerate(self.lanes.cards):
            job = session.jobs.get(lane)
            record = session.records.get(job) if job is not None else None
            answer = session.live.get(lane)
            card.set_at_work(at_hand is not None and at_hand.lane == lane and record is None)
            if not self._is_current(lane):
                card.set_numbers("–", "", "waiting for its turn")
            elif record is not None:
                self._show_record(lane, "")
            elif answer is not None and job is not None:
                card.set_numbers(significant(answer.statistics.tokens_per_second), "", "answering")
        self._share_axes(experiment, *self._at_hand)

    def _share_axes(self, experiment: Experiment, repeat: int, prompt: int) -> None:
        """Draw the plots of all lanes with the same axes, each with its baseline's speed."""
        jobs = [Job(repeat, prompt, lane) for lane in range(len(experiment.lanes))]
        records = [self._session.records.get(job) for job in jobs]
        ended = [record.n_tokens for record in records if record is not None]
        tokens = [card.plot.tokens for card in self.lanes.cards]
        bases = [
            self._session.records.get(base) if (base := experiment.baseline_job(job)) else None
            for job in jobs
        ]
        rates = [record.tokens_per_second if record is not None else None for record in bases]
        self.lanes.share_axes(max([*(ended or [experiment.max_tokens]), *tokens]), rates)

    def _show_record(self, lane: int, caption: str) -> None:
        """Show the numbers of a finished run."""
        session = self._session
        job = session.jobs.get(lane) if self.following else Job(*self._shown, lane)
        record = session.records.get(job) if job is not None else None
        experiment = session.experiment
        if record is None or experiment is None:
            return
        card = self.lanes.cards[lane]
        shown = caption or numbers.count(record.n_tokens, "token") + f" in {duration(record.seconds)}"
        if record.failure:
            card.set_answer(None, record.failure)
            shown = "failed"
        compared = experiment.baseline_of(lane) is not None
        whole = ""
        if record.end_to_end_speedup is not None and record.lane != record.baseline_lane:
            whole = f"{numbers.factor(record.end_to_end_speedup)} end to end"
        temperature = experiment.sampling_of(lane).temperature
        strategy = experiment.lanes[lane].strategy
        same, why = badge(record, strategy, temperature) if compared else NO_BASELINE
        card.set_numbers(
            significant(record.tokens_per_second) if not record.failure else "–",
            numbers.factor(record.speedup) if record.speedup is not None else "",
            shown,
            (" · ".join(filter(None, (whole, same))), why),
        )

    # ------------------------------------------------------------------ the race

    def _show_moment(self, at: float) -> None:
        """Show every lane as it was `at` seconds after the start."""
        experiment = self._session.experiment
        if self.following or experiment is None:
            return
        state = self.race.at(at) if self.race is not None else {}
        for lane, card in enumerate(self.lanes.cards):
            card.set_at_work(False)
            card.set_best(lane == self._best)
            answer = self._answers.get(lane)
            record = self._session.records.get(Job(*self._shown, lane))
            if answer is None:
                card.set_answer(None, record.failure if record is not None else "not measured yet")
                card.set_numbers("–", "", "failed" if record is not None else "")
            elif lane in state:
                self._show_runner(lane, answer, state[lane], at)
            else:
                card.set_answer(answer)
                answer.move(len(answer.rounds))
                self._show_record(lane, "")
        self._share_axes(experiment, *self._shown)

    def _show_runner(self, lane: int, answer: AnswerModel, now: LaneAt, at: float) -> None:
        assert self.race is not None
        card, runner = self.lanes.cards[lane], self.race.lanes[lane]
        answer.move(now.rounds)
        card.set_answer(answer)
        gap = "" if now.ahead is None else ahead_words(now.ahead)
        if now.finished and now.place is not None:
            place = f"{THIS_RUN}{place_words(now.place)}, {duration(runner.finish)}"
            self._show_record(lane, " · ".join(part for part in (place, gap) if part))
            return
        card.set_numbers(significant(now.tokens / at if at > 0 else None), "", gap or f"{now.tokens} tokens")


def _round_of(rounds: Sequence[Round], token: int) -> int | None:
    """The index of the round that emitted a token, given by its index in the answer; None if none did."""
    for round in rounds:
        token -= len(round.emitted)
        if token < 0:
            return round.index
    return None


def _title(lane: Lane) -> str:
    """The name of a lane, with its own model if it has one."""
    if lane.label or lane.pair is None:
        return lane.name
    return f"{lane.name} · {file_name((lane.pair.draft or lane.pair.target).path)}"


def _told(info: PairInfo) -> tuple[str, str]:
    """The model that answers in a lane, in a few words and in sentences."""
    if info.server is not None:
        return told_line(info), told_words(info)
    names = pair_words(info)
    return names, f"{names}\n{info.devices}"


def _whole(lane: Lane) -> str:
    return lane.strategy if lane.pair is None else f"{lane.strategy}\non {lane.pair.target.path}"
