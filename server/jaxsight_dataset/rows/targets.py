"""Labels of targets that need a compiler of their own, such as GPUs that are not here."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import jax

from jaxsight.targets.target import CPU, Target, parse
from jaxsight.tracer.compat import lowering
from jaxsight.tracer.handlers import lower
from jaxsight.wire.messages.compiling import NotCompiled
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.environments import DirectCompiler, NoCompiler
from jaxsight_dataset.compat import kernels
from jaxsight_dataset.program import Record
from jaxsight_dataset.rows import compiling
from jaxsight_dataset.rows.directions import Direction
from jaxsight_dataset.schema import LONGEST


class TargetCompilers:
    """Compiler processes, one for each environment, started when they are needed.

    They end with the context.
    """

    def __init__(self) -> None:
        self._running: dict[str, DirectCompiler] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        with contextlib.ExitStack() as ending:
            for compiler in self._running.values():
                ending.push(compiler)

    def start(self, names: Sequence[str]) -> None:
        """Start the compilers of targets, if there are some."""
        for target in map(parse, names):
            if target.name != CPU:
                with contextlib.suppress(NoCompiler):
                    self._of(target)

    def labels(self, direction: Direction, names: Sequence[str]) -> list[Record]:
        """Return the labels of a direction for targets; what cannot be compiled says why."""
        return [self._label(direction, parse(name)) for name in names]

    def _label(self, direction: Direction, target: Target) -> Record:
        traced = direction.traced
        if direction.has_kernels:
            traced = kernels.compiled(traced)
        try:
            artifact = lowering.artifact(traced, target.platform, target.capability)
        except Exception as error:  # noqa: BLE001 - JAX's, about a platform
            return refusal(target, f"{type(error).__name__}: {error}")
        asked = lower.compile_request(direction.traced, artifact, target.name)
        request = replace(asked, id=1, complete=False)
        try:
            answer = self._of(target).compile(request)
        except NoCompiler as error:
            self._running.pop(target.platform, None)
            return refusal(target, str(error))
        if isinstance(answer, NotCompiled):
            return refusal(target, answer.message)
        return compiling.label(answer, target, answer.hlo)

    def _of(self, target: Target) -> DirectCompiler:
        if target.platform not in self._running:
            environment = environments.suiting(target.platform, jax.__version__)
            if environment is None:
                raise NoCompiler(f"no compiler is installed for {target.platform}")
            self._running[target.platform] = DirectCompiler(environment)
        return self._running[target.platform]


def refusal(target: Target, reason: str) -> Record:
    """Return the label of a program that cannot be compiled for a target."""
    return {"target": target.name, "refused": reason.strip().partition("\n")[0][:LONGEST]}
