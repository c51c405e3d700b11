"""A loaded pair: the target, its draft if it has one, and their contexts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec.structs import replace as replace_struct

from app.base.processes import start
from app.engine.compat import FitKind, VocabularyFit, check_vocabularies
from app.engine.devices.memory import ModelMemory
from app.engine.devices.placement import WORKERS, share_workers
from app.engine.errors import ModelFileError, PairError, UserError
from app.engine.native import SNAPSHOTS, AbortFlag, Cancelled, Context, Model, chosen_devices, end_helpers
from app.engine.native.heads import MtpContext, context_of
from app.engine.params import check_params
from app.engine.shards import parts_of, size_of
from app.engine.types import ModelInfo, ModelOptions, PairInfo, Role

LoadReport = Callable[[Role, str, float, str], bool]
"""(role, file name, fraction read, name of a file that is read at the same time or "") -> whether to go
on."""
TestReport = Callable[[Role, str, bool], None]
"""(role, file name, whether some of its layers are on devices besides the CPU)."""

Stamp = tuple[tuple[int, int, int], ...]
"""(inode, time of the last change, size) of each file of a model."""

_LOOK = 0.05  # seconds between two checks of a file that is read beside another


@dataclass(frozen=True, slots=True)
class _LoadedModel:
    """One loaded model file and its context."""

    options: ModelOptions
    stamp: Stamp  # the files as they were when they were opened
    model: Model
    context: Context
    mtp: MtpContext | None  # the head that the file holds

    def serves(self, options: ModelOptions) -> bool:
        """Whether it has these options, and its file was not replaced since (by a download). If the file is
        gone, the loaded model still serves."""
        return self.options == options and _stamp(options) in (self.stamp, ())

    @property
    def memory(self) -> ModelMemory:
        """The memory that it uses, as llama.cpp reports it."""
        memory = self.context.memory
        return memory if self.mtp is None else memory.with_context(self.mtp.memory)

    def close(self) -> None:
        if self.mtp is not None:
            self.mtp.close()
        self.context.close()
        self.model.close()


class _Ahead:
    """The draft's file, read on a separate thread while the target's file is read."""

    def __init__(self, options: ModelOptions) -> None:
        self.name = Path(options.path).name
        self._options = options
        self._model: Model | None = None
        self._error: BaseException | None = None
        self._given_up = False
        self._thread = threading.Thread(target=self._read, name=f"reads {self.name}", daemon=True)
        start(self._thread)

    def _read(self) -> None:
        try:
            self._model = Model(self._options, lambda _fraction: not self._given_up)
        except BaseException as error:
            self._error = error

    def wait(self, go_on: Callable[[], bool]) -> None:
        """Wait until the file is read; reading stops once `go_on` returns False."""
        while self._thread.is_alive():
            self._given_up = self._given_up or not go_on()
            self._thread.join(_LOOK)

    def take(self) -> Model:
        """Return the model, which the caller closes. Raises what Model raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._model is not None
        model, self._model = self._model, None
        return model

    def give_up(self) -> None:
        """Stop reading, and free a model that was not taken."""
        self._given_up = True
        self._thread.join()
        if self._model is not None:
            self._model.close()


class LoadedPair:
    """Both models with their caches. `draft` and `fit` are None if there is no draft."""

    def __init__(
        self,
        target: str | Path | ModelOptions,
        draft: str | Path | ModelOptions | None,
        abort: AbortFlag,
        on_progress: LoadReport | None = None,
        previous: LoadedPair | None = None,
        on_test: TestReport = lambda _role, _file, _on_devices: None,
    ) -> None:
        """Reuse models that `previous` loaded with the same options, load the rest, and close `previous`. If
        loading fails, `previous` is unchanged. `on_test` is called for each file before its first passes.

        Raises ModelFileError, PairError, SettingError or WorkerError, with the role of the model that failed.
        """
        self._abort = abort
        self._on_progress = on_progress
        self._on_test = on_test
        self.asked = _options(target), None if draft is None else _options(draft)
        options, beside = share_workers(*self.asked)
        old: list[_LoadedModel] = previous.parts if previous else []
        with ExitStack() as new:
            ahead = self._read_ahead(options, beside, old)
            if ahead is not None:
                new.callback(ahead.give_up)
            with _told_of(Role.TARGET):
                first = self._open(Role.TARGET, options, old, new, beside=ahead)
            self.parts: list[_LoadedModel] = [first]
            self.target: Context = first.context
            self.draft: Context | None = None
            self.mtp = first.mtp
            self.fit: VocabularyFit | None = None
            if beside is not None:
                if not beside.ctx_size:  # as large as the target's
                    beside = replace(beside, ctx_size=self.target.n_ctx)
                with _told_of(Role.DRAFT):
                    # A head's context is bound to that of its target.
                    free = first in old or not any(part.context.reads_target for part in old)
                    kept = old[1:] if free else []
                    second = self._open(Role.DRAFT, beside, kept, new, snapshots=0, ahead=ahead, target=first)
                    self.fit = _fit(first.model, second.model)
                self.parts.append(second)
                self.draft = second.context
            new.pop_all()
        if previous is not None:
            previous.parts = [part for part in old if part not in self.parts]
            previous.close()
        self.info = PairInfo(
            target=_describe(self.parts[0]),
            draft=_describe(self.parts[1]) if self.draft else None,
            vocabulary=str(self.fit or ""),
            devices=", ".join(usage.device for usage in first.memory.memory if usage.layers),
            fills_middle=self.target.model.vocabulary.fim is not None,
        )

    def _read_ahead(
        self, target: ModelOptions, draft: ModelOptions | None, old: Sequence[_LoadedModel]
    ) -> _Ahead | None:
        """Begin to read the draft beside the target, if both must be read and stay in main memory. (Device
        drivers and workers are used by one thread at a time.)"""
        if draft is None or any(part.options.path in (target.path, draft.path) for part in old):
            return None
        for role, options in zip(Role, (target, draft), strict=True):
            with _told_of(role):
                check_params(options)
                if chosen_devices(options):
                    return None
        # Told before either is opened: some files crash the process at once.
        self._report(Role.TARGET, target, 0.0, Path(draft.path).name)
        return _Ahead(draft)

    def _report(self, role: Role, options: ModelOptions, fraction: float, beside: str) -> bool:
        """Report how much of a file is read, and which file is read at the same time; returns False to
        stop."""
        return self._on_progress is None or self._on_progress(role, Path(options.path).name, fraction, beside)

    def _open(
        self,
        role: Role,
        options: ModelOptions,
        old: Sequence[_LoadedModel],
        new: ExitStack,
        snapshots: int = SNAPSHOTS,
        beside: _Ahead | None = None,
        ahead: _Ahead | None = None,
        target: _LoadedModel | None = None,
    ) -> _LoadedModel:
        """Return the previous pair's model if it has the same options, else a new one, from `ahead` if given.
        The file of `beside` is read at the same time. A draft that reads its target is bound to `target`."""
        check_params(options)
        for part in old[:1]:
            if part.serves(options):
                return part
        name, stamp = Path(options.path).name, _stamp(options)

        def report(fraction: float) -> bool:
            return self._report(role, options, fraction, beside.name if beside else "")

        report(1.0 if ahead else 0.0)  # before llama.cpp opens it
        with ExitStack() as half:
            model = ahead.take() if ahead else Model(options, report)
            half.callback(model.close)
            if beside is not None:  # a crash from here on can only come from this file
                beside.wait(lambda: report(1.0))
            if not model.can_decode:
                raise ModelFileError(
                    f"{name} does not write text token by token.", "Choose a language model."
                )
            context = context_of(model, options, self._abort, snapshots, target.context if target else None)
            half.callback(context.close)
            mtp = None
            if role is Role.TARGET and MtpContext.is_in(model):
                mtp = MtpContext(model, options, self._abort, context)
                half.callback(mtp.close)
            part = _LoadedModel(options, stamp, model, context, mtp)
            self._on_test(role, name, part.memory.n_gpu_layers > 0)
            try:
                part.context.self_test()
                if mtp is not None:
                    mtp.self_test()
            except Cancelled:
                raise ModelFileError(f"Loading {name} was stopped.") from None
            finally:
                end_helpers()
            half.pop_all()
        new.callback(part.close)
        return part

    @property
    def closed(self) -> bool:
        return not self.parts

    def memory_beside(self, target: ModelOptions) -> tuple[ModelMemory, ...]:
        """The memory that this pair uses on a different pair's devices, by that pair's device names."""
        held = [part.memory for part in self.parts]
        if self.parts and self.parts[0].options.rpc == target.rpc:
            return tuple(held)
        # With other workers RPC0 is a different device.
        return tuple(
            replace_struct(
                memory, memory=tuple(on for on in memory.memory if not on.device.startswith(WORKERS))
            )
            for memory in held
        )

    def clear(self) -> None:
        """Empty both caches."""
        for part in self.parts:
            for context in filter(None, (part.context, part.mtp)):
                context.clear()

    def close(self) -> None:
        """Free the models."""
        for part in reversed(self.parts):  # a head uses its target's context
            part.close()
        self.parts = []


@contextmanager
def _told_of(role: Role) -> Iterator[None]:
    """Add the role of the model that is being opened to errors raised in the block."""
    try:
        yield
    except UserError as error:
        error.role = role
        raise


def _fit(target: Model, draft: Model) -> VocabularyFit:
    """How the draft's tokens turn into the target's; raises PairError if they cannot."""
    fit = check_vocabularies(target.vocabulary, draft.vocabulary)
    if fit.kind is FitKind.CANNOT:
        raise PairError(f"The draft cannot serve this target: {fit.detail}.", "Choose a different draft.")
    if draft.is_head and fit.kind is FitKind.THROUGH_TEXT:
        raise PairError(
            f"The draft was made for a different target: {fit.detail}.", "Choose a different draft."
        )
    return fit


def _options(source: str | Path | ModelOptions) -> ModelOptions:
    return source if isinstance(source, ModelOptions) else ModelOptions(os.fspath(source))


def _stamp(options: ModelOptions) -> Stamp:
    """The stamps of a model's files; () if one cannot be read."""
    try:
        found = [part.stat() for part in parts_of(Path(options.path))]
    except OSError:
        return ()
    return tuple((status.st_ino, status.st_mtime_ns, status.st_size) for status in found)


def _describe(part: _LoadedModel) -> ModelInfo:
    model, context, memory = part.model, part.context, part.memory
    return ModelInfo(
        path=str(model.path),
        name=model.name,
        architecture=model.architecture,
        quantisation=model.quantisation,
        size=size_of(model.path),
        n_params=model.n_params,
        n_layers=model.n_layers,
        n_vocab=model.vocabulary.size,
        n_ctx_train=model.n_ctx_train,
        n_ctx=context.n_ctx,
        threads=context.threads,
        has_chat_template=bool(model.chat_template),
        n_gpu_layers=memory.n_gpu_layers,
        memory=memory.memory,
        n_experts=model.n_experts,
    )
