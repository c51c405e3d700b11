"""What the next demo pair learns from beside its scenes, and how it is measured where it is unsure."""

from __future__ import annotations

from importlib.metadata import distribution

import pytest

from tests.packaging.recipe import in_recipe


def test_packages_tell_the_licence_that_the_library_names() -> None:
    told = in_recipe("from base import library\nfor item in library.SOURCES.items(): print(*item, sep=': ')")
    sources = dict(line.split(": ") for line in told.splitlines())
    assert sources.pop("Python") == "PSF-2.0"
    assert len(sources) > 30
    for source, licence in sources.items():
        metadata = distribution(source).metadata
        said = metadata.json
        own = [str(said.get("license_expression") or said.get("license", ""))[:30]]
        own += [text for text in metadata.get_all("Classifier", []) if text.startswith("License")]
        words = " ".join(own)
        assert licence.split("-")[0] in words, f"{source}: {words}"
        assert "GPL" not in words and "MPL" not in words and "General Public" not in words, source


def test_library_texts_come_once_and_files_are_on_one_side() -> None:
    told = in_recipe(
        """
from base import library
library.SOURCES = {name: library.SOURCES[name] for name in ("jinja2", "h11", "mdurl")}
found = list(library.documents())
assert found == list(library.documents())
assert len({document.text for document in found}) == len(found)
sides = {}
for document in found:
    assert sides.setdefault((document.source, document.path), document.held_out) == document.held_out
    assert not library.FOREIGN.search(document.text)
print(sum(sides.values()), len(sides), {document.kind for document in found} == {"code", "prose"})
"""
    )
    held_out, files, both = told.split()
    assert 0 < int(held_out) < int(files) / 4 and both == "True"


def test_library_leaves_out_texts_under_the_gpl() -> None:
    told = in_recipe(
        """
from base import library
texts = ["under the GNU General Public License", "GPLv3", "LGPL-2.1", "Mozilla Public License", "MIT, not PL"]
print([bool(library.FOREIGN.search(text)) for text in texts])
"""
    )
    assert told.strip() == "[True, True, True, True, False]"


@pytest.mark.verify
def test_sentences_of_the_judged_prompts_are_not_trained_on() -> None:
    in_recipe(
        """
from base import library, words
quoted = library.judged() & set(words.documentation())
assert quoted, "the judged prompts quote the library"
assert not quoted & set(words.examples())
"""
    )


def test_a_completed_function_begins_as_the_question_did() -> None:
    in_recipe(
        '''
import ast
from texts import passages
from base.scene import Dice
source = """
class Scale:
    def weigh(self, goods, unit="gram"):
        \\"\\"\\"Return the weight of all goods, in that unit.

        More about it.
        \\"\\"\\"
        total = sum(good.weight for good in goods)
        return total / self.units[unit]
"""
found, = passages.functions(source)
assert found.docstring == "Return the weight of all goods, in that unit."
assert found.lines[0] == 'def weigh(self, goods, unit="gram"):' and len(found.lines) == 3
shelf = passages.Shelf([found], ["One two three four five six."])
dice = Dice(1)
for _ in range(20):
    request, answer = passages.complete(dice, shelf)
    given, whole = (text.split("```")[1].removeprefix("python").strip() for text in (request, answer))
    assert whole.startswith(given) and len(whole) > len(given)
    ast.parse(whole)
    request, answer = passages.go_on(dice, shelf)
    assert "One" in request and answer.endswith("six.") and "six" not in request
'''
    )


def test_open_dialogues_fill_every_gap_and_hardly_repeat() -> None:
    told = in_recipe(
        """
from texts import grammar
from base.scene import Dice
dice = Dice(1)
answers = []
for name in grammar.PARTS:
    for _ in range(60):
        request, answer = grammar.turn(dice, name)
        assert not set("{}|") & set(request + answer), (request, answer)
        assert request and answer
        answers.append(answer)
print(len(set(answers)) / len(answers))
"""
    )
    assert float(told) > 0.97


def test_open_dialogues_say_a_named_word_again() -> None:
    in_recipe(
        """
from texts import grammar
from base.scene import Dice
grammar.RULES["beast"], grammar.SHARES["beast"] = ["owl", "fox"], [1, 2]
text = "a {kind=beast} and a {Kind=beast}. the {beast}"
said = {grammar.Telling(Dice(seed)).said(text) for seed in range(40)}
assert said == {
    f"{start} and {end}. The {last}"
    for start, end in (("An owl", "a Owl"), ("A fox", "a Fox"))
    for last in ("owl", "fox")
}, said
"""
    )


def test_doubt_is_taken_of_the_rows_that_the_answer_was_drawn_from() -> None:
    in_recipe(
        """
import numpy as np
from judging import unsure
class Rows:
    def log_probabilities(self, ids):
        assert list(ids) == [5, 6, 7, 8]
        rows = np.full((4, 4), 1e-12)
        rows[0, 0] = rows[3, 0] = 1  # neither says anything about the answer
        rows[1] = 0.25
        rows[2, 0] = 1
        return np.log(rows)
found = unsure.doubt(Rows(), [5, 6], [7, 8])
assert np.allclose(found.best, [0.25, 1]) and np.allclose(found.entropy, [np.log(4), 0], atol=1e-6)
assert found.told == "50%, 0.69 nats"
"""
    )


def test_the_interval_of_a_gain_is_above_zero_only_where_it_is_clear() -> None:
    in_recipe(
        """
import numpy as np
from judging import unsure
clear, unclear = np.array([0.2, 0.3, 0.25, 0.4] * 8), np.array([1.0, -1.0] * 16)
low, high = unsure.interval(clear)
assert 0.2 < low < clear.mean() < high < 0.4
low, high = unsure.interval(unclear)
assert low < 0 < high
"""
    )
