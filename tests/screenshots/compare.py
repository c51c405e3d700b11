"""States of Compare."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollArea

from app.engine.types import ModelOptions
from app.lab.experiment import Lane, Pair
from app.lab.lanes import server_lanes
from app.servers.client import ServerClient
from app.ui.compare.place import ComparePlace
from app.ui.state.lab_work import Stage
from tests.benchmarks.ui.window import turn
from tests.files.tiny import Tiny, write_tiny
from tests.screenshots.user import close, panel, pick, place_of, press, write
from tests.screenshots.variants import StateVisitor
from tests.servers.scripted import DRAFTING, PLAIN, llama_server, serving


def measurable(visitor: StateVisitor, *lanes: Lane, tokens: int = 0, repeats: int = 3) -> ComparePlace:
    """Compare with two kinds of prompts and these lanes, or the suggested ones."""
    place: ComparePlace = place_of(visitor, "compare")
    turn(lambda: place.works.may_start)
    setup = place.chips.setup
    amount = replace(setup.amount, per_category=2, max_tokens=tokens, repeats=repeats)
    setup = replace(setup, categories=("code", "rewrite"), amount=amount, lanes=lanes or setup.lanes)
    place.chips.set_setup(setup)
    return place


def ended(place: ComparePlace) -> None:
    turn(lambda: place.works.shown.stage is Stage.ENDED and place.works.may_start)


def compare_panels(visitor: StateVisitor) -> None:
    place = measurable(visitor)
    head = place.head
    visitor.variants("compare-setup")
    for chip in (*head.chips, head.sweep, head.depths, head.loads, head.tune):
        press(chip)
        panel(visitor, f"compare-panel-{chip.accessibleName().split()[0].lower()}")
        close(visitor)
    press(head.prompts)
    for source in ("My prompt", "My file"):
        pick(head.prompts_panel.source, source)
        panel(visitor, f"compare-panel-{source.replace(' ', '-').lower()}")
    pick(head.prompts_panel.source, "Built in")
    close(visitor)
    press(head.lanes)
    press(head.lanes_panel.add_quants)
    turn(lambda: not place.chips.quants.at_work)
    panel(visitor, "compare-panel-quantisations")
    press(head.lanes_panel.add_quants)
    press(head.lanes_panel.add_server)
    write(head.lanes_panel.new_server.address, "http://127.0.0.1:9")
    turn(head.lanes_panel.new_server.notice.isVisible)
    panel(visitor, "compare-panel-no-server")
    close(visitor)


def compare_race(visitor: StateVisitor) -> None:
    """Lanes that run, are paused, cancelled, resumed, and their results."""
    place = measurable(visitor, repeats=40)
    press(place.head.run)
    turn(lambda: place.works.session.done >= 2)
    visitor.variants("compare-running")
    press(place.strip.pause)
    turn(lambda: place.works.session.stage is Stage.PAUSED)
    visitor.variants("compare-paused")
    press(place.strip.cancel)
    ended(place)
    visitor.variants("compare-interrupted", scroll=place.outcome.lanes)
    press(place.earlier.accept)
    turn(lambda: place.works.session.stage is Stage.RUNNING)
    press(place.strip.cancel)
    ended(place)
    press(measurable(visitor).head.run)
    ended(place)
    results = place.outcome.results
    for view in ("Table", "How drafts fared", "Acceptance is not speed", "Divergences"):
        pick(results.views, view)
        visitor.variants(f"compare-results-{view.split()[0].lower()}", scroll=place.outcome.lanes)
    pick(results.views, "Table")
    QTest.keyClicks(results.category, "code")
    visitor.variants("compare-results-by-kind")
    visitor.variants("compare-export", again=partial(press, place.head.export))


def compare_faults(visitor: StateVisitor) -> None:
    """A lane whose models cannot answer, and a set-up that was changed since."""
    with TemporaryDirectory() as folder:
        broken = write_tiny(Path(folder, "broken.gguf"), Tiny(broken=True))
        pair = Pair(ModelOptions(str(broken)), None)
        place = measurable(visitor, Lane("prompt-lookup"), Lane("suffix", pair=pair), tokens=24, repeats=1)
        press(place.head.run)
        ended(place)
    visitor.variants("compare-failed", scroll=place.outcome.lanes)
    measurable(visitor, Lane("ngram-mod"))
    visitor.variants("compare-changed")


def compare_works(visitor: StateVisitor) -> None:
    """Sweep, depths and Tune: while they run, and their ends."""
    place = measurable(visitor, tokens=64, repeats=1)
    head = place.head
    for name, button, start in (
        ("sweep", head.sweep, head.sweep_panel),
        ("depth", head.depths, head.depth_panel),
        ("tune", head.tune, head.tune_panel),
    ):
        press(button)
        press(start.start)
        turn(lambda: place.works.shown.done >= 2)
        visitor.variants(f"compare-{name}-running", sizes=((1024, 768), (1600, 1000)))
        ended(place)
        shown = place.outcome.currentWidget()
        visitor.variants(f"compare-{name}", scroll=shown.findChild(QScrollArea))


def compare_load(visitor: StateVisitor) -> None:
    """Two servers under load, then one that is gone."""
    place = measurable(visitor, tokens=3, repeats=1)
    with ExitStack() as stack:
        scripts = llama_server(*DRAFTING), llama_server(*PLAIN, types="none")
        servers = [stack.enter_context(serving(script)) for script in scripts]
        lanes = [
            lane
            for server in servers
            for lane in server_lanes(ServerClient(server.address, "", lambda: False).describe())
        ]
        measurable(visitor, *lanes, tokens=3, repeats=1)
        press(place.head.loads)
        panel(visitor, "compare-panel-load-servers")
        press(place.head.load_panel.start)
        ended(place)
        visitor.variants("compare-load", scroll=place.outcome.load_page.findChild(QScrollArea))
        press(place.head.lanes)
        panel(visitor, "compare-panel-server-lane")
        close(visitor)
    press(place.head.run)
    ended(place)
    visitor.variants("compare-server-gone", scroll=place.outcome.lanes)


SCENES = (
    compare_panels,
    compare_race,
    compare_faults,
    compare_works,
    compare_load,
)
