"""Write the repro of a case, and run it in a fresh process to see that it fails as the case did."""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxsight.repro.capture import case
from jaxsight.repro.capture.recorder import failed_file, tree_file
from jaxsight.repro.compat import configuration, pickling
from jaxsight.repro.emit.anonymize import anonymized
from jaxsight.repro.emit.call_tree.write import write as write_tree
from jaxsight.repro.emit.data import Argument
from jaxsight.repro.emit.repro_file import (
    About,
    CannotEmit,
    Repro,
    assemble,
    parameters_of,
    write,
)
from jaxsight.repro.environment import Environment
from jaxsight.repro.failures import CRASH, EXCEPTION, FINISHED, HANG, Failure
from jaxsight.repro.running import run_file
from jaxsight.repro.values import Value, value_of
from jaxsight.sourcerizer.errors import Unsourceable, Unwritable
from jaxsight.sourcerizer.text.names import identifier

_BOOT = Path(__file__).parents[1] / "boot.py"


@dataclass(frozen=True, slots=True)
class Emitted:
    """A written repro.

    Attributes:
        path: the file.
        expected: the failure that was captured.
        observed: the failure of the file in a fresh process.
    """

    path: Path
    expected: Failure
    observed: Failure

    @property
    def reproduces(self) -> bool:
        """Whether the file fails as the program did."""
        return self.observed.same(self.expected)


def emit(
    folder: Path,
    out: Path,
    *,
    died: Failure | None = None,
    timeout: float = 120.0,
    anonymous: bool = False,
) -> Emitted:
    """Write the repro of the case in `folder` to `out`, and run it.

    Args:
        died: how the process ended, if it did not end by itself.
        timeout: seconds after which the repro counts as a hang.
        anonymous: whether to rename everything that came from the user.

    Raises:
        CannotEmit: there is nothing to reproduce, or it cannot be written.
    """
    ended = case.read_ended(folder)
    if ended is None or died is not None:
        ended = case.Ended(died or Failure(CRASH))
    if ended.failure.kind == FINISHED and ended.program is None:
        raise CannotEmit("the program finished without an error")
    info = case.read_json(folder, case.INFO)
    environment = Environment.of_record(info["environment"])
    about = About(ended.failure, environment, origin=_relative(ended.where))
    limit = min(timeout, 20.0) if ended.failure.kind == HANG else timeout
    emitted: Emitted | None = None
    problems: list[str] = []
    for form in (_calls, _execution):
        try:
            repro = form(folder, ended, about)
        except (CannotEmit, Unwritable, Unsourceable) as error:
            problems.append(str(error))
            continue
        if anonymous:
            repro = anonymized(repro)
        if emitted is None or not emitted.reproduces:
            repro.save(out)
            observed = run_file(sys.executable, out, timeout=limit).failure
            emitted = Emitted(out, ended.failure, observed)
    if emitted is None:
        raise CannotEmit(problems[-1])
    return emitted


def _calls(folder: Path, ended: case.Ended, about: About) -> Repro:
    """Return the repro of the calls around the failure, as the program has them."""
    number = ended.program
    if number is None and not ended.at_trace:
        number = _current(folder, ended)[0]
    names = [case.TREE, *([] if number is None else [tree_file(number)])]
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            tree, options = pickling.loads((folder / name).read_bytes())
            configuration.apply(options)
            break
    else:
        raise CannotEmit("the failure was outside of calls of JAX with functions")
    written = write_tree(tree)
    values = [_value(argument) for argument in written.arguments]
    about = replace(about, environment=replace(about.environment, options=options))
    return assemble(written.text, values, parameters_of(written.text), about)


def _value(argument: Any) -> Argument:
    """Return the value of a pytree of arrays."""
    match argument:
        case dict():
            return {key: _value(item) for key, item in argument.items()}
        case list():
            return [_value(item) for item in argument]
        case tuple():
            return tuple(_value(item) for item in argument)
        case None:
            return None
        case np.ndarray():  # arrays of JAX are pickled as NumPy's
            return Value(argument)
        case _:
            return value_of(argument)


def _execution(folder: Path, ended: case.Ended, about: About) -> Repro:
    """Return the repro of the program that was executed."""
    number, values = _current(folder, ended)
    primitive, parameters, options = pickling.loads(
        (folder / case.program_file(number)).read_bytes()
    )
    configuration.apply(options)
    about = replace(about, environment=replace(about.environment, options=options))

    def program(*arguments: object) -> object:
        results = primitive.bind(*arguments, **parameters)
        return results[0] if isinstance(results, list) and len(results) == 1 else results

    return write(program, values, _names(parameters, values), about)


def _current(folder: Path, ended: case.Ended) -> tuple[int, list[Value]]:
    """Return the program that failed, or was in flight, with its arguments."""
    if ended.program is None and ended.failure.kind == EXCEPTION:
        where = "while JAX traced" if ended.at_trace else "outside of JAX"
        raise CannotEmit(f"the exception was raised {where}")
    names = [case.CURRENT]
    if ended.program is not None:
        names.insert(0, failed_file(ended.program))
    for name in names:
        try:
            number, values = pickle.loads((folder / name).read_bytes())
        except FileNotFoundError:
            continue
        return number, pickle.loads(values)
    raise CannotEmit("the program failed before JAX executed anything")


def _names(parameters: dict[str, Any], values: Sequence[Value]) -> list[str]:
    """Return a distinct identifier for each argument, after the user's where they are known."""
    info = getattr(parameters.get("jaxpr"), "debug_info", None)
    if info is None:
        info = getattr(getattr(parameters.get("jaxpr"), "jaxpr", None), "debug_info", None)
    theirs = list(getattr(info, "arg_names", None) or ())
    if len(theirs) != len(values):
        theirs = [""] * len(values)
    names: list[str] = []
    for position, name in enumerate(theirs):
        base = identifier(name) if name else f"x{position}"
        fresh = base
        while fresh in names:
            fresh = f"{base}_{names.count(base) + len(names)}"
        names.append(fresh)
    return names


def _relative(where: str) -> str:
    folder = f"{Path.cwd()}/"
    return where.removeprefix(folder)


def emit_in_fresh_process(python: str, folder: Path, out: Path) -> str:
    """Write the repro of a case from another process; return a line that says what came of it."""
    command = [python, str(_BOOT), "emit", str(folder), str(out)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        record = json.loads(finished.stdout.strip().split("\n")[-1])
    except ValueError:
        return f"no repro: {finished.stderr.strip()[-200:]}"
    if record.get("event") != "done":
        return f"no repro: {record.get('message', '')}"
    verdict = "" if record["reproduces"] else " (does not fail in the same way)"
    return f"{out}{verdict}"
