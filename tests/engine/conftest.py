"""The compiled passes over a row, and numpy's in their place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from app.engine.sampling import kernel
from app.engine.sampling.kernel import Kernel


@pytest.fixture(scope="session")
def compiled() -> Kernel:
    """The compiled passes. Fails where there is a compiler and yet no library."""
    library = kernel.load()
    if library is None and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler")
    assert library is not None, "call make: set-up compiles app/engine/sampling/kernel.c"
    return library


@pytest.fixture(scope="module")
def numpy_passes() -> Iterator[None]:
    """Numpy makes all passes, as where nothing is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "compiled", None)
        yield


@pytest.fixture(scope="module", params=["compiled", "numpy_passes"])
def each_way(request: pytest.FixtureRequest) -> None:
    """Runs a test with either."""
    request.getfixturevalue(request.param)
