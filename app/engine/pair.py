"""A loaded pair: the target, where there is one its draft, and their contexts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec.structs import replace as replace_struct

from app.engine.compat import FitKind, VocabularyFit, check_vocabularies
from app.engine.devices.memory import ModelMemory
from app.engine.devices.placement import WORKERS, share_workers
from app.engine.errors import ModelFileError, PairError, UserError
from app.engine.native import SNAPSHOTS, AbortFlag, Cancelled, Context, Model, chosen_devices
from app.engine.params import check_params
from app.engine.types import ModelInfo, ModelOptions, PairInfo, Role

LoadReport = Callable[[Role, str, float, str], bool]
"""(role, file name, fraction read, another file that is read at the same time or "") -> go on."""
TestReport = Callable[[Role, str, bool], None]
"""(role, file name, whether layers of it are on devices besides the CPU)"""

_LOOK = 0.05  # seconds between two looks at a file that is read beside another one


@dataclass(frozen=True, slots=True)
class _Part:
    """One loaded model file and its context."""

    options: ModelOptions
    model: Model
    context: Context

    def close(self) -> None:
        self.context.close()
        self.model.close()


class _Ahead:
    """The draft's file, read on a thread of its own while the target's is."""

    def __init__(self, options: ModelOptions) -> None:
        self.name = Path(options.path).name
        self._options = options
        self._model: Model | None = None
        self._error: BaseException | None = None
        self._given_up = False
        self._thread = threading.Thread(target=self._read, name=f"reads {self.name}", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._model = Model(self._options, lambda _fraction: not self._given_up)
        except BaseException as error:
            self._error = error

    def wait(self, go_on: Callable[[], bool]) -> None:
        """Wait until the file is read; reading it stops where `go_on` says no."""
        while self._thread.is_alive():
            self._given_up = self._given_up or not go_on()
            self._thread.join(_LOOK)

    def take(self) -> Model:
        """The model that was read; the caller closes it. Raises what Model raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._model is not None
        model, self._model = self._model, None
        return model

    def give_up(self) -> None:
        """Stop reading; frees a model that was not taken."""
        self._given_up = True
        self._thread.join()
        if self._model is not None:
            self._model.close()


class LoadedPair:
    """Both models with their caches. `draft` and `fit` are None where the target is alone."""

    def __init__(
        self,
        target: str | Path | ModelOptions,
        draft: str | Path | ModelOptions | None,
        abort: AbortFlag,
        on_progress: LoadReport | None = None,
        previous: LoadedPair | None = None,
        on_test: TestReport = lambda _role, _file, _on_devices: None,
    ) -> None:
        """Load what `previous` does not have in the same way already; it is closed then, and stays as it was
        where loading fails. `on_test` is told of each file before its first passes.

        Raises ModelFileError, PairError, SettingError or WorkerError, with the role of the model that could
        not be opened.
        """
        self._abort = abort
        self._on_progress = on_progress
        self._on_test = on_test
        self.asked = _options(target), None if draft is None else _options(draft)
        options, beside = share_workers(*self.asked)
        old: list[_Part] = previous.parts if previous else []
        with ExitStack() as new:
            ahead = self._read_ahead(options, beside, old)
            if ahead is not None:
                new.callback(ahead.give_up)
            with _told_of(Role.TARGET):
                first = self._open(Role.TARGET, options, old, new, beside=ahead)
            self.parts: list[_Part] = [first]
            self.target: Context = first.context
            self.draft: Context | None = None
            self.fit: VocabularyFit | None = None
            if beside is not None:
                if not beside.ctx_size:  # as far as the target goes
                    beside = replace(beside, ctx_size=self.target.n_ctx)
                with _told_of(Role.DRAFT):
                    second = self._open(Role.DRAFT, beside, old[1:], new, snapshots=0, ahead=ahead)
                    self.fit = _fit(first.model, second.model)
                self.parts.append(second)
                self.draft = second.context
            new.pop_all()
        if previous is not None:
            previous.parts = [part for part in old if part not in self.parts]
            previous.close()
        self.info = PairInfo(
            target=_describe(self.target),
            draft=_describe(self.draft) if self.draft else None,
            vocabulary=str(self.fit or ""),
            devices=_devices_in_use(self.target),
            fills_middle=self.target.model.vocabulary.fim is not None,
        )

    def _read_ahead(
        self, target: ModelOptions, draft: ModelOptions | None, old: Sequence[_Part]
    ) -> _Ahead | None:
        """Begin to read the draft beside the target, where both are to be read and stay in main memory: a
        device's driver, and a worker, is asked by one at a time."""
        if draft is None or any(part.options.path in (target.path, draft.path) for part in old):
            return None
        for role, options in zip(Role, (target, draft), strict=True):
            with _told_of(role):
                check_params(options)
                if chosen_devices(options):
                    return None
        return _Ahead(draft)

    def _open(
        self,
        role: Role,
        options: ModelOptions,
        old: Sequence[_Part],
        new: ExitStack,
        snapshots: int = SNAPSHOTS,
        beside: _Ahead | None = None,
        ahead: _Ahead | None = None,
    ) -> _Part:
        """The part of the pair from before that is the same, or a new one: from `ahead`, where the file is
        read already. The file of `beside` is read at the same time."""
        check_params(options)
        for part in old[:1]:
            if part.options == options:
                return part
        name = Path(options.path).name

        def report(fraction: float) -> bool:
            other = beside.name if beside else ""
            return self._on_progress is None or self._on_progress(role, name, fraction, other)

        report(1.0 if ahead else 0.0)  # before llama.cpp opens it: some files end the process there
        with ExitStack() as half:
            model = ahead.take() if ahead else Model(options, report)
            half.callback(model.close)
            if beside is not None:  # what ends the process from here on has one file to blame
                beside.wait(lambda: report(1.0))
            if not model.can_decode:
                raise ModelFileError(
                    f"{name} does not write text token by token.", "Choose a language model."
                )
            part = _Part(options, model, Context(model, options, self._abort, snapshots))
            half.callback(part.context.close)
            self._on_test(role, name, part.context.memory.n_gpu_layers > 0)
            try:
                part.context.self_test()
            except Cancelled:
                raise ModelFileError(f"Loading {name} was stopped.") from None
            half.pop_all()
        new.callback(part.close)
        return part

    @property
    def closed(self) -> bool:
        return not self.parts

    def memory_beside(self, target: ModelOptions) -> tuple[ModelMemory, ...]:
        """What this pair holds on the devices of another one, by the names that they have there."""
        held = [part.context.memory for part in self.parts]
        if self.parts and self.parts[0].options.rpc == target.rpc:
            return tuple(held)
        # Other workers: RPC0 is another device there.
        return tuple(
            replace_struct(
                memory, memory=tuple(on for on in memory.memory if not on.device.startswith(WORKERS))
            )
            for memory in held
        )

    def clear(self) -> None:
        """Empty both caches."""
        for part in self.parts:
            part.context.clear()

    def close(self) -> None:
        """Free the models."""
        for part in self.parts:
            part.close()
        self.parts = []


@contextmanager
def _told_of(role: Role) -> Iterator[None]:
    """Errors that are raised inside carry the role of the model that is being opened."""
    try:
        yield
    except UserError as error:
        error.role = role
        raise


def _fit(target: Model, draft: Model) -> VocabularyFit:
    """How the draft's tokens become the target's; raises PairError where they cannot."""
    fit = check_vocabularies(target.vocabulary, draft.vocabulary)
    if fit.kind is FitKind.CANNOT:
        raise PairError(f"The draft cannot serve this target: {fit.detail}.", "Choose another draft.")
    return fit


def _options(source: str | Path | ModelOptions) -> ModelOptions:
    return source if isinstance(source, ModelOptions) else ModelOptions(os.fspath(source))


def _describe(context: Context) -> ModelInfo:
    model = context.model
    return ModelInfo(
        path=str(model.path),
        name=model.metadata("general.name") or model.path.stem,
        architecture=model.metadata("general.architecture"),
        quantisation=model.quantisation,
        size=model.path.stat().st_size,
        n_params=model.n_params,
        n_layers=model.n_layers,
        n_vocab=model.vocabulary.size,
        n_ctx_train=model.n_ctx_train,
        n_ctx=context.n_ctx,
        threads=context.threads,
        has_chat_template=bool(model.chat_template),
        n_gpu_layers=context.memory.n_gpu_layers,
        memory=context.memory.memory,
    )


def _devices_in_use(context: Context) -> str:
    """The devices that hold layers, such as "CUDA0, CPU"."""
    return ", ".join(usage.device for usage in context.memory.memory if usage.layers)
