"""`jaxsight.assert_program`: a function compiles to what a file beside the test says.

`tests/test_model.lock` is in the notation of `jaxsight.lock`. `pytest --update-programs` writes it.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

from jaxsight.files import reading
from jaxsight.library import compiling
from jaxsight.library.kernels import kernels_on
from jaxsight.locks.differences import differences
from jaxsight.locks.facts import FactSources, ProgramFacts
from jaxsight.locks.notation import LockError, LockSection, ProjectLock, Tolerance, parse
from jaxsight.targets.target import Target
from jaxsight.targets.target import parse as parse_target
from jaxsight_source.compat import avals, locations
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.staging import open_jaxpr

UPDATES = {"on": False}
"""Whether files are written instead of compared: `pytest --update-programs`."""
_OPTION = "pytest --update-programs"


class ProgramChanged(AssertionError):
    """A function compiles to something else; the message has the differences with their causes."""


def assert_program(
    fn: Callable[..., object],
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    target: str | None = None,
    name: str = "",
    tolerate: Mapping[str, str] | None = None,
) -> None:
    """Compare what a function compiles to with the file beside the test, or write it.

    `jaxsight.assert_program(loss, (params, x), target="cuda:h100")` raises an error if the kernels,
    memory, collectives or types of `loss` are not those of `test_model.lock`. A target or version
    of JAX that the file does not have is a warning.

    Args:
        fn: a function, jitted or not.
        args: its positional arguments, arrays or `jax.ShapeDtypeStruct`s.
        kwargs: its keyword arguments.
        target: as for `kernels`.
        name: what tells programs of one function in one test apart.
        tolerate: how far figures may be apart, such as `{"temp": "5%", "kernels": "1"}`.

    Raises:
        ProgramChanged: the program differs, or is not in the file.
        CannotCompile: the function cannot be compiled as it is.
        ValueError: the file is no lock, or a tolerance is malformed.
    """
    caller = sys._getframe(1)
    file = Path(caller.f_code.co_filename).with_suffix(".lock")
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0].partition("::")[2]
    function = name or getattr(fn, "__name__", "function")
    entry = f"{test or caller.f_code.co_qualname}:{function}"
    chosen = parse_target(target) if target else compiling.default()
    section = LockSection.of(chosen, jax.__version__)
    facts = facts_on(fn, chosen, tuple(args), dict(kwargs or {}))
    try:
        lock = parse(reading.text(file)) if reading.exists(file) else ProjectLock()
    except LockError as error:
        raise ValueError(f"cannot read {file}: {error}") from error
    if UPDATES["on"]:
        lock.put(section, entry, facts)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(lock.text(), encoding="utf-8")
        unfinished.replace(file)
        return
    if lock.sections and section not in lock.sections:
        message = f"{file.name} has no section for {section}: nothing is compared; run {_OPTION}"
        warnings.warn(message, stacklevel=2)
        return
    locked = lock.sections.get(section, {}).get(entry)
    if locked is None:
        raise ProgramChanged(f"{entry} is not in {file.name}; add it with {_OPTION}")
    given = {figure: Tolerance.parse(text) for figure, text in (tolerate or {}).items()}
    if found := differences(locked.facts, facts, {**given, **locked.tolerances}):
        lines = "\n".join(f"  {each.words}" for each in found)
        raise ProgramChanged(
            f"{function} differs from {file.name} on {chosen.name}:\n{lines}\n"
            f"accept it with {_OPTION}, if this change is intended"
        )


def facts_on(
    fn: Callable[..., object], target: Target, args: tuple[object, ...], kwargs: dict[str, object]
) -> ProgramFacts:
    """Return what a function compiles to on a target.

    Lines are those of the file that the function is in.

    Raises:
        CannotCompile: the target's compiler is not installed, or rejects the function.
    """
    found = kernels_on(fn, target, args, kwargs)
    assert found.traced is not None
    code = getattr(inspect.unwrap(fn), "__code__", None)
    lines: dict[str, int] = {}
    for path, equation in walk(found.traced.jaxpr):
        files = ((at.file, at.line) for at in locations.locations(equation))
        own = (line for file, line in files if code is not None and file == code.co_filename)
        lines[path] = next(own, 0)

    def line(path: str) -> int:
        while path and not lines.get(path):
            path = path.rpartition("/")[0].rpartition("/")[0]
        return lines.get(path, 0)

    opened = open_jaxpr(found.traced.jaxpr)
    inputs = [avals.text(each.aval) for each in opened.invars]
    results = ", ".join(avals.text(each.aval) for each in opened.outvars)
    return FactSources(found.complete, inputs, results, line).facts()
