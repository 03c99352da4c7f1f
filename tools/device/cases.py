"""The programs that are compared: functions of files, called with their example inputs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxsight.examples import choice
from jaxsight.source.module import Module
from jaxsight.wire.messages.requests import NEW, Trace

LARGE = Path(__file__).parent / "large.py"
"""54 programs of realistic sizes."""


@dataclass(frozen=True, slots=True)
class Case:
    """A function of a file with its first example inputs."""

    name: str
    trace: Trace

    def call(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """Return the function with its arguments, whose arrays are abstract; import its file."""
        from jaxsight.tracer.calls.inputs import Evaluator
        from jaxsight.tracer.calls.user_function import find

        namespace = vars(_imported(self.trace.file))
        function = find(namespace, self.trace.function)
        inputs = Evaluator().inputs(self.trace, function, namespace)
        return function.call, inputs.args, inputs.kwargs


def cases(files: Sequence[Path], only: Sequence[str] = ()) -> list[Case]:
    """Return the functions of files that have example inputs, by their names.

    Args:
        files: files of Python.
        only: names of functions; all if empty.
    """
    found = {}
    for file in files:
        for _, function in Module.parse(file.read_text(encoding="utf-8")).functions:
            own = choice.of(function, sizes={})
            if not own.sets or function.refused or (only and function.qualname not in only):
                continue
            chosen = own.sets[0]
            found[function.qualname] = Trace(
                NEW,
                file=str(file.resolve()),
                module=file.stem,
                root=str(file.resolve().parent),
                chunks=(),
                function=function.qualname,
                arguments=chosen.arguments,
                sizes=chosen.sizes,
            )
    return [Case(name, trace) for name, trace in found.items()]


def _imported(file: str) -> Any:
    name = f"compared_{Path(file).stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
