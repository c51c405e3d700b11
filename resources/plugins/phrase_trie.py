"""phrase-trie: completes common phrases, and learns which of them this text uses.

An example of how to write a drafter. Try it:

    draftscope run --drafter resources/plugins/phrase_trie.py --strategy phrase-trie --chat --prompt \\
        "Please write a short function that returns the sum of a list of numbers."
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.engine.plugins import Drafter, Proposal, Resources, StrategyKind, param

PHRASES = (
    "as a result of the",
    "as soon as possible",
    "as well as",
    "at the end of the day",
    "at the same time",
    "due to the fact that",
    "for the first time",
    "in addition to the",
    "in order to",
    "in other words,",
    "is one of the most important",
    "it is important to note that",
    "on the one hand,",
    "on the other hand,",
    "with respect to the",
    # where code is explained
    "goes through the values one by one",
    "adds each value to the sum and returns",
    "starts the sum at zero",
)


@dataclass(frozen=True, slots=True)
class PhraseTrieParams:
    """Settings of phrase-trie. The form, the grammar and the command line's help are made from these."""

    n_max: int = param(8, "Draft at most this many tokens a round.", low=1, high=64, unit="tokens")
    min_match: int = param(2, "Draft a phrase after this many of its tokens.", low=1, high=16, unit="tokens")


@dataclass(slots=True)
class Node:
    """A place in the trie: the tokens that may come next."""

    hits: int = 0  # how often the token that leads here was right, less how often it was wrong
    next: dict[int, Node] = field(default_factory=dict)


class PhraseTrie(Drafter):
    """Checks whether the text ends inside a phrase, and proposes the rest of it."""

    def __init__(self, params: PhraseTrieParams, resources: Resources) -> None:
        self._params = params
        self._vocabulary = resources.vocabulary
        self.reset()

    def reset(self) -> None:
        """Restore the original trie for a cold run. Many vocabularies have one token for a word after a space
        and a second one for it at the start of a line, so each phrase is stored in several ways."""
        self._root = Node()
        self._path: list[Node] = []  # the nodes of the last proposal
        self._longest = 0
        for phrase in PHRASES:
            for text in (" " + phrase, phrase, phrase[0].upper() + phrase[1:]):
                ids = self._vocabulary.tokenize(text, special=False, parse_special=False).tolist()
                self._longest = max(self._longest, len(ids))
                node = self._root
                for id in ids:
                    node = node.next.setdefault(id, Node())

    def propose(self, context, k: int) -> Proposal:
        tail = context[-self._longest :].tolist()
        wanted = min(k, self._params.n_max)
        self._path = []
        for start in range(len(tail) - self._params.min_match + 1):  # the longest beginning first
            ids: list[int] = []
            node = self._find(tail[start:])
            while node.next and len(ids) < wanted:
                id, node = max(node.next.items(), key=lambda item: item[1].hits)
                ids.append(id)
                self._path.append(node)
            if ids:
                return Proposal(ids=ids, end="n_max" if node.next else "end of the phrase")
        return Proposal(end="no phrase begins here")

    def _find(self, ids: list[int]) -> Node:
        node = self._root
        for id in ids:
            node = node.next.get(id) or Node()
        return node

    def observe(self, context, proposal: Proposal, accepted: int) -> None:
        """Among phrases with the same beginning, prefer the one that fits this text."""
        if proposal.ids:  # and not another strategy's draft
            for place, node in enumerate(self._path[: accepted + 1]):
                node.hits += 1 if place < accepted else -1


STRATEGY = StrategyKind(
    "phrase-trie",
    PhraseTrieParams,
    "Completes common English phrases. Helps a little in plain prose, and costs next to nothing.",
    make=PhraseTrie,
)
