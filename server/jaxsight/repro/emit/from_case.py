"""Write the repro of a case, and run it in a fresh process to see that it fails as the case did."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxsight.repro.capture import case
from jaxsight.repro.capture.recorder import failed_file
from jaxsight.repro.compat import pickling
from jaxsight.repro.emit.repro_file import About, CannotEmit, write
from jaxsight.repro.environment import Environment
from jaxsight.repro.failures import CRASH, FINISHED, HANG, Failure
from jaxsight.repro.running import run_file
from jaxsight.repro.values import Value
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
) -> Emitted:
    """Write the repro of the case in `folder` to `out`, and run it.

    Args:
        died: how the process ended, if it did not end by itself.
        timeout: seconds after which the repro counts as a hang.

    Raises:
        CannotEmit: there is nothing to reproduce, or it cannot be written.
    """
    ended = case.read_ended(folder)
    if ended is None or died is not None:
        ended = case.Ended(died or Failure(CRASH))
    if ended.failure.kind == FINISHED and ended.program is None:
        raise CannotEmit("the program finished without an error")
    number, values = _execution(folder, ended)
    primitive, parameters, options = pickling.loads(
        (folder / case.program_file(number)).read_bytes()
    )
    info = case.read_json(folder, case.INFO)
    environment = replace(Environment.of_record(info["environment"]), options=options)
    about = About(ended.failure, environment, origin=_relative(ended.where))
    names = _names(parameters, values)

    def program(*arguments: object) -> object:
        results = primitive.bind(*arguments, **parameters)
        return results[0] if isinstance(results, list) and len(results) == 1 else results

    repro = write(program, values, names, about)
    repro.save(out)
    limit = min(timeout, 20.0) if ended.failure.kind == HANG else timeout
    observed = run_file(sys.executable, out, timeout=limit).failure
    return Emitted(out, ended.failure, observed)


def _execution(folder: Path, ended: case.Ended) -> tuple[int, list[Value]]:
    """Return the program that failed, or was in flight, with its arguments."""
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
