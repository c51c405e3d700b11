"""A running server as the target of the chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.base.numbers import NONE as NOTHING
from app.engine.fates import Verdict
from app.engine.process.messages import trace_of
from app.engine.record.recheck import recheck
from app.engine.strategy import NONE, SERVER
from app.engine.types import FinishReason, GenerationRequest, ModelOptions
from app.saved.presets import Preset
from app.servers.client import ServerClient
from app.ui.instruments.sums_panel import ROWS, Sums
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import Activity
from app.ui.transcript.text.facts import facts_of
from tests.servers.recorded_vllm import CHUNKS, DETAILED, SUMMARY, vllm
from tests.servers.scripted import DRAFTING, Answer, Asked, ScriptedServer, event, llama_server, serving
from tests.ui.named import named, words_in
from tests.ui.windows import Desk, Windows, chip_text


def chosen(desk: Desk, server: ScriptedServer) -> None:
    """Choose a server in the target's panel, as a user does."""
    desk.qtbot.mouseClick(desk.header.target, Qt.MouseButton.LeftButton)
    panel = desk.header.target_panel
    named(panel, "Use a server…", QPushButton).click()
    desk.header.server_form.address.setText(server.address)
    named(panel, "Use it", QPushButton).click()
    desk.until(lambda: desk.session.server is not None)
    desk.until_ready()


def test_a_server_answers_in_the_chat_and_nothing_untold_is_shown(windows: Windows) -> None:
    desk = windows.open(max_tokens=3)
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        assert chip_text(desk.header.target).startswith("target.gguf")
        assert chip_text(desk.header.draft).startswith("the server's")
        assert chip_text(desk.header.strategy).startswith("draft-simple")
        answer = desk.ask("hello")
        trace = desk.trace
    assert answer.text == "abc" and trace is not None
    assert trace.header.strategy == SERVER and recheck(trace) == []
    verdicts = [token.verdict for round in trace.rounds for token in round.drafted]
    assert verdicts == [Verdict.ACCEPTED, Verdict.REJECTED]
    status = desk.window.status
    assert (
        server.address.removeprefix("http://") in status.device.text()
        and "thread" not in status.device.text()
    )
    assert status.alpha.value.text() == "0.500"
    assert "does not report how long its passes" in words_in(desk.page.instruments.cost)
    assert "The server's own draft" in words_in(desk.page.instruments.table)
    assert not status.measure.isEnabled() and "cannot turn drafting off" in status.measure.toolTip()
    assert desk.notes() == ["The answer reached its length limit."] and not desk.items()[-1].note.action


def test_a_vllm_that_tells_every_step_answers_with_fates(windows: Windows) -> None:
    desk = windows.open(max_tokens=5)
    with serving(vllm(*CHUNKS, told=DETAILED)) as server:
        chosen(desk, server)
        assert chip_text(desk.header.strategy).startswith("an unknown method")
        answer = desk.ask("hello")
        body = server.bodies("/v1/chat/completions")[-1]
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert answer.text == "One two three four five" and desk.trace is not None
    verdicts = [token.verdict.value for round in desk.trace.rounds for token in round.drafted]
    assert verdicts == ["accepted", "accepted", "rejected", "rejected", "ignored", "ignored"]
    assert recheck(desk.trace) == [] and desk.window.status.alpha.value.text() == "0.500"


def test_what_a_vllm_does_not_tell_stands_as_unknown(windows: Windows) -> None:
    desk = windows.open(max_tokens=5)
    with serving(vllm(*CHUNKS, told=SUMMARY, counted=True)) as server:
        chosen(desk, server)
        answer = desk.ask("hello")
    assert answer.text == "One two three four five" and desk.trace is not None
    assert recheck(desk.trace) == []
    rounds = {round.index: round for round in desk.trace.rounds}
    header = desk.trace.header
    for facts in (facts_of(rounds[span.round], span, header) for span in answer.spans):
        assert facts.word == "unknown" and facts.verdict[0] == "The server does not report what it drafted."
    status, instruments = desk.window.status, desk.page.instruments
    assert status.alpha.value.text() == status.tau.value.text() == NOTHING
    assert status.speed.value.text() != NOTHING
    words = words_in(instruments)
    assert "whole server, all users: 33.3" in words and "of 6 drafted tokens" in words
    assert instruments.acceptance.note.toolTip().startswith("whole server, all users: 33.3")
    plots = instruments.acceptance, instruments.length, instruments.cost
    assert {plot.message.text() for plot in plots} == {"The server does not report what it drafted."}
    assert "rounds" not in answer.label
    assert "5 tokens" in words and "rounds" not in words_in(instruments.head)
    assert "The server does not report what it drafted." in words_in(instruments.table)


def test_sums_over_untold_answers_have_no_rounds_and_no_rates_of_them() -> None:
    with serving(vllm(*CHUNKS, told=SUMMARY, counted=True)) as server:
        client = ServerClient(server.address, "", lambda: False)
        request = GenerationRequest(prompt="a", strategy=SERVER, max_tokens=5)
        untold = AnswerModel(trace_of(client.generate(request)))
    shown = {name: words(Sums.over([untold])) for name, _, words in ROWS}
    for unknown in (
        "rounds",
        "accepted / drafted",
        "accepted / emitted",
        "α (of judged tokens)",
        "τ",
        "tokens per pass",
    ):
        assert shown[unknown] == NOTHING, unknown
    assert shown["tokens"] == "5" and shown["tokens/s"] != NOTHING


def test_an_answer_of_a_server_is_kept_with_its_chat(windows: Windows) -> None:
    desk = windows.open(max_tokens=3)
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        desk.ask("hello")
        fates = desk.fates()
        windows.close(desk)
        desk = windows.open()
        assert desk.session.server is not None, "the server is in use again after a restart"
    assert desk.texts()[-1] == "abc" and desk.fates() == fates
    assert not desk.items()[-1].note.action, "a server's answer cannot be continued"


def test_applying_a_model_goes_back_to_the_engine_here(windows: Windows) -> None:
    desk = windows.open(max_tokens=3)
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        target = desk.window.settings.now.target
        named(desk.header.target_panel.head, "Apply", QPushButton).click()
        desk.until(lambda: desk.session.pair is not None and desk.session.server is None)
        desk.until_ready()
    assert desk.window.settings.now.server == "" and desk.window.settings.now.target == target
    assert len(desk.ask("abc").answer.rounds) and desk.trace is not None
    assert desk.trace.header.pair.server is None
    assert desk.window.status.measure.isEnabled()


def test_a_server_in_use_takes_the_place_of_a_refused_file(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    panel, target = desk.header.target_panel, desk.window.settings.now.target
    (broken := tmp_path / "broken.gguf").write_bytes(b"no model")
    panel.applied.emit(ModelOptions(str(broken)))
    desk.until(lambda: panel.notice.message)
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        assert panel.notice.message == "" and panel.options() == target


def test_a_preset_brings_the_models_here_back(windows: Windows) -> None:
    desk = windows.open()
    preset = Preset.of("mine", desk.window.settings.now)
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        desk.window.chips.apply(preset)
        desk.until(lambda: desk.session.pair is not None and desk.session.server is None)
        assert desk.window.settings.now.target == preset.target


def test_stop_ends_an_answer_of_a_server(windows: Windows) -> None:
    at: list[ScriptedServer] = []

    def slow(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "draft-simple"}})

        def pieces() -> Iterator[bytes]:
            yield event(DRAFTING[0])
            at[0].released.wait(60)

        return Answer(pieces=pieces())

    desk = windows.open(max_tokens=3)
    with serving(llama_server() | {"/completion": slow}) as server:
        at.append(server)
        chosen(desk, server)
        desk.type("hello")
        desk.until_streaming()
        desk.header.stop.click()
        desk.until_ready()
    trace = desk.trace
    assert trace is not None and trace.totals is not None
    assert trace.totals.finish_reason is FinishReason.CANCELLED and trace.text == "a"


def test_a_server_that_dies_in_an_answer_says_so_below_it(windows: Windows) -> None:
    desk = windows.open(max_tokens=3)
    with serving(llama_server(*DRAFTING[:2])) as server:
        chosen(desk, server)
        desk.type("hello")
        desk.until(desk.notes)
    assert "stopped in the middle of its answer" in desk.notes()[0]
    assert desk.texts()[-1] == "a", "what came before stays"


def test_a_server_that_is_gone_at_the_start_offers_the_models_here(windows: Windows) -> None:
    desk = windows.open(ready=False, server="http://127.0.0.1:9")
    desk.until(lambda: "No server answers" in desk.error())
    assert desk.session.activity is Activity.EMPTY and desk.offers() == ["Load the models here"]
    named(desk.page.prompt, "Load the models here", QPushButton).click()
    desk.until_ready()
    assert desk.session.server is None and desk.error() == ""


def test_a_measurement_in_between_brings_the_server_back(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        gone: list[bool] = []
        desk.session.lend(lambda: gone.append(True))
        desk.until(lambda: gone)
        desk.session.take_back()
        desk.until_ready()
        assert desk.session.server is not None and desk.session.server.address == server.address


def test_a_recording_of_a_server_says_what_is_not_known(windows: Windows) -> None:
    desk = windows.open(max_tokens=3)
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        desk.ask("hello")
        trace = desk.trace
        assert trace is not None
        desk.controller.show_trace(trace, "server.jsonl")
    told = words_in(desk.page.recording)
    assert "draft-simple on the server" in told
    assert "llama-server" in told and "devices and threads unknown" in told and "0 threads" not in told


def test_compare_keeps_the_pair_here_while_a_server_answers_the_chat(windows: Windows) -> None:
    desk = windows.open()
    with serving(llama_server(*DRAFTING)) as server:
        chosen(desk, server)
        desk.window.go("compare")
        experiment = desk.place("compare").chips.experiment()
    assert not experiment.pair.is_server and experiment.lanes[0].strategy == NONE
