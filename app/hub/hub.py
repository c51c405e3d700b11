"""Access to the Hub: one client, offline mode, a time limit, and every failure as a sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2
from huggingface_hub import HfApi, constants, get_session
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from app import __version__
from app.hub.errors import explain, offline_error, unusable_answer
from app.hub.offline import is_forced_offline

ANSWER_SECONDS = 20.0  # without one byte of an answer


class Hub:
    """The Hub at one address, by default where HF_ENDPOINT points. Safe from any thread."""

    def __init__(self, offline: Callable[[], bool] = lambda: False, endpoint: str = "") -> None:
        """`offline` is asked before every request; HF_HUB_OFFLINE counts too."""
        self._offline = offline
        self.endpoint = endpoint or constants.ENDPOINT
        self._api = HfApi(endpoint=self.endpoint, library_name="draftscope", library_version=__version__)

    @property
    def is_offline(self) -> bool:
        return self._offline() or is_forced_offline()

    @contextlib.contextmanager
    def asking(self, subject: str) -> Iterator[HfApi]:
        """The client, for one question about `subject`; raises HubError, also in offline mode."""
        if self.is_offline:
            raise offline_error()
        _limit_waiting()
        try:
            yield self._api
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise unusable_answer(f"its data about {subject} has an unknown form") from error
        except Exception as error:
            if isinstance(error, ValueError) and not isinstance(error, OSError):
                raise unusable_answer(f"its data about {subject} has an unknown form") from error
            if (known := explain(error, subject)) is None:
                raise
            raise known from error

    def get(self, path: str, query: Mapping[str, Any]) -> bytes:
        """One GET, within `asking`; returns JSON. The client's own listings try again for half a minute
        before they report a missing connection; here a person waits, and can try again. They also take ten
        times as long for a repository with 100,000 files."""
        headers = build_hf_headers(library_name="draftscope", library_version=__version__)
        response = get_session().get(f"{self.endpoint}{path}", params=dict(query), headers=headers)
        hf_raise_for_status(response)
        return response.content


def _limit_waiting() -> None:
    """Set a time limit for requests that have none: the client would wait for ever, and not all of its calls
    take a limit. Its session is looked up each time, because it can be replaced."""
    session = get_session()
    hooks = session.event_hooks
    if _set_limit not in hooks["request"]:
        session.event_hooks = {**hooks, "request": [*hooks["request"], _set_limit]}


def _set_limit(request: httpx2.Request) -> None:
    if not any((request.extensions.get("timeout") or {}).values()):
        request.extensions["timeout"] = httpx2.Timeout(ANSWER_SECONDS).as_dict()
