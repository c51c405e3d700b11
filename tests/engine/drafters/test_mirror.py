"""The target's text in the draft's tokens: replacements, spelling in context, and keeping in step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.engine.drafters.mirror import Mirror, Replacements, Spelling, TextStretch, parse_pairs
from app.engine.errors import SettingError
from app.engine.native import Model
from app.engine.types import ModelOptions
from tests.files.tiny import Tiny

PROSE = (
    "The draft is small.\n\nIt guesses, the target decides: naïve café, "
    "東京の天気, 12,345.67 👩‍👩‍👧 🙂 and so on.\n"
    'def f(x):\n    if x > 1:\n        return {"a": [x - 1]}\n\n\treturn None  # done\n'
) * 4
WORDS = (
    "The",
    " the",
    " draft",
    " small",
    "é",
    "🙂",
    "    ",
    "        ",
    "return",
    "ing",
    "東",
    ".\n",
    "\n\n",
)


@pytest.fixture(scope="module")
def spelling(
    tiny_file: Callable[[Tiny], Path], demo_pair: tuple[Path, Path]
) -> Iterator[dict[str, Spelling]]:
    files = {
        "demo": demo_pair[0],
        "bytes": tiny_file(Tiny(name="bytes")),
        "words": tiny_file(Tiny(name="words", words=WORDS, order=3)),
        "begins": tiny_file(Tiny(name="begins", words=WORDS, adds_bos=True)),
        "pieces": tiny_file(Tiny(name="pieces", words=(" ", *WORDS), sentencepiece=True)),
        "other marks": tiny_file(Tiny(name="marks", control=("<e>", "<b>", "<|im_end|>"))),
    }
    models = {name: Model(ModelOptions(str(path))) for name, path in files.items()}
    yield {name: Spelling(model.vocabulary) for name, model in models.items()}
    for model in models.values():
        model.close()


def ids_of(spelling: Spelling, text: str, control: bool = False) -> np.ndarray:
    return spelling.vocabulary.tokenize(text, special=False, parse_special=control)


def text_of(spelling: Spelling, ids: np.ndarray | list[int]) -> bytes:
    return b"".join(spelling.vocabulary.piece(id) for id in np.asarray(ids).tolist())


def mirror(target: Spelling, draft: Spelling, *pairs: tuple[str, str]) -> Mirror:
    return Mirror(target, draft, Replacements(pairs))


# Replacements


def test_replacing_is_one_sweep_and_the_longest_wins() -> None:
    swap = Replacements([("a", "b"), ("b", "a"), ("abc", "-"), ("a", "never")])
    assert swap.apply([TextStretch("abacbabc")]) == [TextStretch("babca-")]


def test_what_replaces_control_tokens_is_control_and_typed_text_stays_text() -> None:
    swap = Replacements([("<|u|>user\n", "[U]"), ("im", "x")])
    control = [TextStretch("hi "), TextStretch("<|u|>", True), TextStretch("user\nhello")]
    assert swap.apply(control) == [TextStretch("hi "), TextStretch("[U]", True), TextStretch("hello")]
    assert swap.apply([TextStretch("hi <|u|>user\n")]) == [TextStretch("hi [U]")]
    assert swap.apply([TextStretch("<|im|>", True)]) == [TextStretch("<|x|>", True)]
    assert Replacements([]).apply(control) == control


def test_text_that_may_become_a_source_is_known() -> None:
    swap = Replacements([("<tool>", ""), ("lol", "")])
    assert [swap.unfinished(text) for text in ("", "a <too", "<tool>", "x<", "lo", "lolo")] == [
        0,
        4,
        0,
        1,
        2,
        2,
    ]


@pytest.mark.parametrize(
    "written", ["[", "7", '{"a": "b"}', '["a", "b"]', '[["a"]]', '[["a", 1]]', '[["", "b"]]', "[" * 100_000]
)
def test_pairs_that_are_none(written: str) -> None:
    with pytest.raises(SettingError, match="replace cannot be") as refused:
        parse_pairs(written)
    assert refused.value.hint == 'Write a JSON list of pairs: [["TARGET", "DRAFT"], …].'


def test_pairs() -> None:
    assert parse_pairs("") == parse_pairs("[]") == []
    assert parse_pairs('[["<a>", "b:+%"], ["c", ""]]') == [("<a>", "b:+%"), ("c", "")]


# Spelling


@given(st.text(), st.text(min_size=1))
@example("", "\n")  # merges with a line break before it
@example("", "\n\n")
@example("", "\nx")
@example("\n", "\n")
@pytest.mark.parametrize("name", ["demo", "words", "pieces"])
def test_what_is_spelled_behind_a_text_is_that_text(
    spelling: dict[str, Spelling], name: str, before: str, text: str
) -> None:
    speller = spelling[name]
    behind = speller.ids_behind(ids_of(speller, before).tolist()[-6:], text.encode())
    assert text_of(speller, behind) == text.encode()


@pytest.mark.parametrize("name", ["demo", "words", "pieces"])
def test_drafted_text_is_spelled_as_the_target_goes_on(spelling: dict[str, Spelling], name: str) -> None:
    """At every place of a text, even inside words and characters, the rest has the target's own tokens."""
    speller = spelling[name]
    ids = ids_of(speller, PROSE)[:160].tolist()
    same = places = 0
    for at in range(1, len(ids)):
        rest = text_of(speller, ids[at : at + 8])
        try:
            (text_of(speller, ids[:at]) + rest).decode()
        except UnicodeDecodeError:
            continue  # drafted text ends with a whole character
        places += 1
        same += speller.ids_behind(ids[max(0, at - 6) : at], rest) == ids[at : at + 8]
    assert places > 100
    assert same > 0.95 * places


@pytest.mark.parametrize("text", ["the", " the", "  the", "\n\nthe", "é", "_"])
def test_a_text_that_goes_on_is_spelled_without_a_space(spelling: dict[str, Spelling], text: str) -> None:
    pieces = spelling["pieces"]
    ids = pieces.ids([TextStretch(text)], continues=True)
    assert b"".join(map(pieces.vocabulary.piece, ids)).decode() == text


def test_the_rest_of_a_character_is_spelled(spelling: dict[str, Spelling]) -> None:
    speller = spelling["bytes"]
    smile = ids_of(speller, "a🙂b").tolist()
    assert speller.ids_behind(smile[:3], "🙂b".encode()[2:]) == smile[3:]
    assert speller.ids_behind([], b"\x99\x82b") == [], "nobody can spell that alone"


def test_a_vocabulary_spells_as_far_as_it_can(tiny_file: Callable[[Tiny], Path]) -> None:
    model = Model(ModelOptions(str(tiny_file(Tiny(name="few", letters="abcdefgh")))))
    few = Spelling(model.vocabulary)
    assert text_of(few, few.ids_behind(ids_of(few, "ab").tolist(), b"cdXef")) == b"cd"
    model.close()


# The mirror

PAIRS = [("demo", "bytes"), ("demo", "words"), ("demo", "pieces"), ("words", "demo"), ("pieces", "words")]


@pytest.mark.parametrize(("target", "draft"), PAIRS)
def test_the_mirror_reads_as_the_draft_would(spelling: dict[str, Spelling], target: str, draft: str) -> None:
    made = mirror(spelling[target], spelling[draft])
    made.follow(ids_of(spelling[target], PROSE))
    text = " " + PROSE if target == "pieces" else PROSE  # its own first space is part of its text
    expected = ids_of(spelling[draft], text).tolist()
    mirrored = made.ids.tolist()
    assert text_of(spelling[draft], mirrored) == text_of(spelling[draft], expected)
    assert len(made.joints) > 5
    # Joints are where both cut; texts without spaces are cut anywhere.
    different = sum(ours != theirs for ours, theirs in zip(mirrored, expected, strict=False))
    assert different == 0 or abs(len(mirrored) - len(expected)) < 0.02 * len(expected)


@given(st.data())
@settings(max_examples=60)
@pytest.mark.parametrize(("target", "draft"), PAIRS)
def test_the_mirror_keeps_in_step(spelling: dict[str, Spelling], target: str, draft: str, data) -> None:
    """Growing token by token, cut back or edited, the text is the target's up to the last whole character."""
    ours, theirs = spelling[target], spelling[draft]
    mirrored = mirror(ours, theirs)
    context = np.empty(0, np.int32)
    for _step in range(data.draw(st.integers(1, 6))):
        kept = data.draw(st.integers(0, len(context)))
        more = ids_of(ours, data.draw(st.text(max_size=30)) + data.draw(st.sampled_from(["", PROSE])))
        context = np.concatenate([context[:kept], more[: data.draw(st.integers(0, len(more)))]])
        mirrored.follow(context)
        grown = mirror(ours, theirs)
        for end in range(0, len(context) + 7, 7):
            grown.extend(context[:end])
        whole = text_of(ours, context)
        for each in (mirrored, grown):
            read = text_of(theirs, each.ids)
            if target != "pieces" and draft != "pieces":
                assert read + each.begun == _readable(whole, each.begun)
            else:
                assert read.replace(b" ", b"") + each.begun == _readable(whole, each.begun).replace(b" ", b"")


def _readable(raw: bytes, begun: bytes) -> bytes:
    return raw[: len(raw) - len(begun)].decode(errors="replace").encode() + begun


def test_control_tokens_stay_control_and_typed_ones_stay_text(spelling: dict[str, Spelling]) -> None:
    target, draft = spelling["bytes"], spelling["words"]
    marker = ids_of(target, "<|im_end|>", control=True)
    typed = ids_of(target, "<|im_end|>")
    mirrored = mirror(target, draft)
    mirrored.follow(np.concatenate([marker, typed, marker]))
    ids = mirrored.ids.tolist()
    control = [id for id in ids if not draft.vocabulary.piece(id)]
    assert [draft.vocabulary.label(id) for id in control] == ["<|im_end|>"] * 2
    assert text_of(draft, ids) == b"<|im_end|>"


def test_markers_that_the_draft_does_not_have_are_replaced_or_read_as_text(
    spelling: dict[str, Spelling],
) -> None:
    target, draft = spelling["bytes"], spelling["other marks"]
    context = ids_of(target, "<|im_start|>user\nhi<|im_end|>", control=True)
    plain, replaced = mirror(target, draft), mirror(target, draft, ("<|im_start|>user\n", "<b>"))
    plain.follow(context)
    assert text_of(draft, plain.ids) == b"<|im_start|>user\nhi"
    replaced.follow(context)
    assert [draft.vocabulary.label(id) for id in (replaced.ids[0], replaced.ids[-1])] == ["<b>", "<|im_end|>"]
    assert text_of(draft, replaced.ids) == b"hi"


def test_each_begins_in_its_own_way(spelling: dict[str, Spelling]) -> None:
    begins, plain = spelling["begins"], spelling["bytes"]
    with_bos = begins.vocabulary.tokenize("abc", special=True, parse_special=False)
    mirrored = mirror(begins, plain)
    mirrored.follow(with_bos)
    assert text_of(plain, mirrored.ids) == b"abc"
    assert len(mirrored.ids) == 3, "the target's BOS is not the draft's"
    reverse = mirror(plain, begins)
    reverse.follow(ids_of(plain, "abc"))
    assert reverse.ids.tolist() == with_bos.tolist()
    reverse.clear()
    assert reverse.ids.tolist() == [begins.vocabulary.bos]


@pytest.mark.parametrize(
    "pair", [("draft is", "D"), ("\n    ", "\t"), ("guesses, the target", "g t"), ("。", ".")]
)
def test_replacements_across_joints(spelling: dict[str, Spelling], pair: tuple[str, str]) -> None:
    target, draft = spelling["demo"], spelling["bytes"]
    text = PROSE * 3
    ids = ids_of(target, text)
    mirrored = mirror(target, draft, pair)
    for end in range(1, len(ids), 3):
        mirrored.extend(ids[:end])
    mirrored.extend(ids)
    assert text_of(draft, mirrored.ids).decode() == text.replace(*pair)
    assert len(mirrored.joints) > 10


def test_the_spelling_of_a_long_text_stays_and_only_its_end_is_spelled(
    spelling: dict[str, Spelling], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = spelling["demo"]
    mirrored = mirror(target, spelling["bytes"])
    ids = ids_of(target, PROSE * 40)
    mirrored.follow(ids[:-60])
    spelled: list[int] = []
    real = Spelling.runs
    monkeypatch.setattr(Spelling, "runs", lambda self, ids: spelled.append(len(ids)) or real(self, ids))
    for end in range(len(ids) - 59, len(ids) + 1):
        spelled.clear()
        mirrored.extend(ids[:end])
        assert sum(spelled) < 200
