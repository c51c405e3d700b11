"""Checkpoints: saved states that restore a memory that cannot be cut."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

APART = 64  # tokens between two kept checkpoints
MOST = 8  # most checkpoints, if their size allows it
_MOST_BYTES = 512 * 2**20  # of all together, if there are more than two
_LEAST = 2  # one to undo a draft, one for edits

_SEQUENCE = 0
_PARTIAL = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
_BYTES = ctypes.POINTER(ctypes.c_uint8)


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """The state after the first `at` tokens."""

    at: int
    state: NDArray[np.uint8]


class Checkpoints:
    """States of one sequence, oldest first, in host memory: at most eight, fewer if they are large.

    A state is llama.cpp's partial state: recurrent states and sliding windows. Plain attention caches can be
    cut and are not in it.
    """

    def __init__(self, context: Any, apart: int = APART) -> None:
        """`context` is llama.cpp's; `apart` is the number of tokens between two kept states."""
        self._context = context
        self._memory = llama_cpp.llama_get_memory(context)
        self.apart = apart
        self.kept: list[_Checkpoint] = []

    @property
    def latest(self) -> int:
        """The number of tokens in the newest state; 0 if there is none (an empty memory is a state too)."""
        return self.kept[-1].at if self.kept else 0

    def take(self, at: int) -> None:
        """Save the state of a memory with exactly `at` tokens, more than `latest`."""
        size = llama_cpp.llama_state_seq_get_size_ext(self._context, _SEQUENCE, _PARTIAL)
        state = self._make_room(at, size)
        if llama_cpp.llama_state_seq_get_data_ext(
            self._context, state.ctypes.data_as(_BYTES), size, _SEQUENCE, _PARTIAL
        ):
            self.kept.append(_Checkpoint(at, state))

    def _make_room(self, at: int, size: int) -> NDArray[np.uint8]:
        """Drop a state that is not needed beside a new one at `at`; returns an array for the new one, shape
        [size]."""
        places = [0, *(checkpoint.at for checkpoint in self.kept), at]
        dropped = None
        if self.kept and at - places[-3] <= self.apart:  # the previous state is near enough
            dropped = self.kept.pop()
        elif len(self.kept) >= max(_LEAST, min(MOST, _MOST_BYTES // max(size, 1))):
            # Drop the state whose neighbours are closest to each other: the rest stay spread over the whole
            # text.
            gaps = [after - before for before, after in zip(places, places[2:], strict=False)]
            dropped = self.kept.pop(gaps.index(min(gaps)))
        if dropped is not None and len(dropped.state) == size:
            return dropped.state
        return np.empty(size, np.uint8)

    def restore(self, keep: int) -> int:
        """Restore the newest state of at most `keep` tokens; returns its number of tokens.

        If there is none, the memory is emptied.
        """
        while self.kept:
            at, state = self.kept[-1].at, self.kept[-1].state
            if (
                at <= keep
                and llama_cpp.llama_state_seq_set_data_ext(
                    self._context, state.ctypes.data_as(_BYTES), len(state), _SEQUENCE, _PARTIAL
                )
                and llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, at, -1)
            ):
                return at
            self.kept.pop()
        llama_cpp.llama_memory_clear(self._memory, True)
        return 0

    def forget(self, keep: int) -> None:
        """Drop the states of more than `keep` tokens: other tokens follow now."""
        while self.latest > keep:
            self.kept.pop()
