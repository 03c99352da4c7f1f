"""Write the repro of a case, and run it in a fresh process to see that it fails as the case did."""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp

from jaxsight_repro import meshes
from jaxsight_repro.capturing import case
from jaxsight_repro.capturing.capture import is_ours
from jaxsight_repro.capturing.recorder import read as read_calls
from jaxsight_repro.checks.base import Check, parse
from jaxsight_repro.compat import configuration, host_callbacks, pickling
from jaxsight_repro.compat.pickling import module_of
from jaxsight_repro.emit.call_tree.write import write as write_tree
from jaxsight_repro.emit.repro_file import (
    About,
    CannotEmit,
    Repro,
    assemble,
    parameters_of,
    replace_headline,
    write,
)
from jaxsight_repro.environment import ProgramEnvironment
from jaxsight_repro.failures import CRASH, EXCEPTION, FINISHED, HANG, RunFailure
from jaxsight_repro.running import DEFAULT_TIMEOUT, run_file
from jaxsight_repro.values import ConcreteValue
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program, is_jaxpr, opened, stage
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.readable import inlined
from jaxsight_source.text.names import identifier


@dataclass(frozen=True, slots=True)
class Emitted:
    """A written repro.

    Attributes:
        path: the file.
        expected: the failure that was captured.
        observed: the failure of the file in a fresh process.
        reproduces: whether the file fails as the program did.
    """

    path: Path
    expected: RunFailure
    observed: RunFailure
    reproduces: bool


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a repro may be written of.

    Attributes:
        trees: files of the calls around it, the best one first.
        program: the number of the program, if one was executed.
        arguments: the files of its arguments, the best one first.
        callbacks: the files of what callbacks did, the best one first.
    """

    trees: tuple[str, ...]
    program: int | None = None
    arguments: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = (case.CALLBACKS,)


def emit(folder: Path, out: Path, *, died: RunFailure | None = None, check: str = "") -> Emitted:
    """Write the repro of the case in `folder` to `out`, and run it.

    Args:
        died: how the process ended, if it did not end by itself.
        check: what the program does wrong, if it does not fail by itself.

    Raises:
        CannotEmit: there is nothing to reproduce, or it cannot be written.
    """
    info = case.read_json(folder, case.INFO)
    if not info:
        raise CannotEmit("the program did not import JAX")
    ended = case.read_ended(folder)
    if ended is None or died is not None:
        ended = case.Ended(died or RunFailure(CRASH), where=case.user_line(folder, is_ours))
    checked = parse(check)
    environment = ProgramEnvironment(**info["environment"])
    origin = _relative(ended.where)
    about = About(ended.failure, environment, checked.demonstration, origin)
    limit = _HANG if ended.failure.kind == HANG else DEFAULT_TIMEOUT
    emitted: Emitted | None = None
    problems: list[str] = []
    for subject in _subjects(folder, ended, check):
        about = replace(about, callbacks=read_calls(_first(folder, subject.callbacks) or b""))
        # The best one first.
        forms: Sequence[Callable[[Path, _Subject, About], Repro]] = (_calls, _execution)
        if subject.program is None:
            forms = (_calls,)
        elif ended.failure.name == "FloatingPointError":
            # JAX calls the function again, op by op, to find the operation: `jax_debug_nans`.
            forms = (_execution, _calls)
        for form in forms:
            try:
                repro = form(folder, subject, about)
            except (CannotEmit, Unwritable, Unsourceable, pickle.UnpicklingError) as error:
                problems.append(str(error))
                continue
            tried = checked_run(repro, out, limit, checked, ended.failure)
            if emitted is None or tried.reproduces:
                emitted = tried
            if emitted.reproduces:
                return emitted
    if emitted is None:
        raise CannotEmit("; ".join(dict.fromkeys(problems)))
    return emitted


_HANG = 20.0
"""Seconds that a repro of a hang runs, a choice: far above the compile of what is not one."""

_MOST_SUBJECTS = 8
"""Programs that are tried, the largest first: a choice, each is emitted and run."""


def checked_run(
    repro: Repro, out: Path, limit: float, check: Check, captured: RunFailure | None = None
) -> Emitted:
    """Write a repro, and run it in a fresh process to see whether it fails as a check says.

    Without a check, it must fail as what was captured did.
    """
    repro.save(out)
    observed = run_file(sys.executable, out, timeout=limit).failure
    if captured is not None and not check.text:
        return Emitted(out, captured, observed, observed.same(captured))
    if check.holds(observed):
        replace_headline(repro, observed).save(out)
        return Emitted(out, observed, observed, reproduces=True)
    expected = RunFailure(EXCEPTION, message=check.text or "a failure")
    return Emitted(out, expected, observed, reproduces=False)


def _subjects(folder: Path, ended: case.Ended, check: str) -> list[_Subject]:
    """Return what repros may be written of: the failure, or what the program executed."""
    if check and ended.program is None:
        return _executed(folder)
    if ended.failure.kind == FINISHED and ended.program is None:
        raise CannotEmit("the program finished without an error")
    if ended.program is None and ended.at_trace:
        return [_Subject((case.TREE,))]
    if ended.program is None and ended.failure.kind == EXCEPTION:
        raise CannotEmit("the exception was raised outside of JAX")
    number = ended.program
    if number is None:
        if _first(folder, (case.TRACING,)):
            place = f", at {_relative(ended.where)}" if ended.where else ""
            raise CannotEmit(f"the process died while JAX traced{place}")
        if not (folder / case.CURRENT).exists():
            raise CannotEmit("the program failed before JAX executed anything")
        content = _first(folder, (case.CURRENT,))
        if content is None:
            raise CannotEmit("the execution in flight could not be captured")
        number = pickle.loads(content)[0]
    trees = (case.TREE, case.of_program(number, "tree"))
    arguments = (case.of_program(number, "failed"), case.CURRENT)
    kept = () if ended.program is None else (case.of_program(number, "callbacks"),)
    return [_Subject(trees, number, arguments, (*kept, case.CALLBACKS))]


def _executed(folder: Path) -> list[_Subject]:
    """Return the programs that were executed, the largest first."""
    programs = (folder / case.PROGRAMS).glob("*.pickle")
    largest = sorted(programs, key=lambda path: (-path.stat().st_size, path.name))
    numbers = [int(path.stem) for path in largest[:_MOST_SUBJECTS]]
    if not numbers:
        raise CannotEmit("the program executed nothing with JAX")
    return [
        _Subject(
            (case.of_program(number, "tree"),),
            number,
            (case.of_program(number, "first"),),
            (case.of_program(number, "callbacks"),),
        )
        for number in numbers
    ]


def _calls(folder: Path, subject: _Subject, about: About) -> Repro:
    """Return the repro of the calls around the failure, as the program has them."""
    content = _first(folder, subject.trees)
    if content is None:
        raise CannotEmit("the failure was outside of calls of JAX with functions")
    parts = pickling.load_all(content)
    options = next(parts)
    configuration.apply(options)  # before devices are looked for
    mesh, tree = next(parts), next(parts)
    with meshes.entered(mesh):
        text, values = write_tree(tree)
    environment = replace(about.environment, options=options)
    about = replace(about, environment=environment, mesh=mesh)
    return assemble(text, values, parameters_of(text), about)


def _execution(folder: Path, subject: _Subject, about: About) -> Repro:
    """Return the repro of the program that was executed."""
    assert subject.program is not None
    content = _first(folder, (case.of_program(subject.program, "pickle"),))
    arguments = _first(folder, subject.arguments)
    if content is None or arguments is None:
        raise CannotEmit("the program could not be captured")
    values = pickle.loads(arguments)
    if isinstance(values, tuple):
        values = pickle.loads(values[1])
    return of_execution(content, values, about)


def of_execution(content: bytes, values: Sequence[ConcreteValue], about: About) -> Repro:
    """Return the repro of a primitive with its parameters, as a recorder wrote them.

    Raises:
        CannotEmit: it cannot be written.
        pickle.UnpicklingError: it needs a device that is not present.
    """
    parts = pickling.load_all(content)
    options = next(parts)
    configuration.apply(options)  # before devices are looked for
    mesh, (primitive, parameters) = next(parts), next(parts)
    about = replace(about, environment=replace(about.environment, options=options), mesh=mesh)
    if "jaxpr" in parameters:
        left = Left([name for name, known in about.callbacks.items() if known.fails])
        parameters["jaxpr"] = left.standalone(parameters["jaxpr"])
        if left.callbacks:
            note = f"Calls of the host are left out ({left.callbacks}): their results are zeros."
            about = replace(about, notes=(*about.notes, note))

    def program(*arguments: object) -> object:
        results = primitive.bind(*arguments, **parameters)
        return results[0] if isinstance(results, list) and len(results) == 1 else results

    names = _names(parameters, values)
    with meshes.entered(mesh):
        if pickling.has_missing(content):  # rules of custom derivatives, which nothing calls now
            return write(program, values, names, about, ("primal",))
        return write(program, values, names, about)


def _first(folder: Path, names: Sequence[str]) -> bytes | None:
    """Return the content of the first file that exists."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            if name in (case.CURRENT, case.TRACING):
                return case.read_slot(folder, name)
            return (folder / name).read_bytes()
    return None


def _names(parameters: Mapping[str, object], values: Sequence[ConcreteValue]) -> list[str]:
    """Return a distinct identifier for each argument, after the user's where they are known."""
    jaxpr = parameters.get("jaxpr")
    theirs = argument_names(opened(jaxpr)) if is_jaxpr(jaxpr) else ()
    if len(theirs) != len(values):
        theirs = ("",) * len(values)
    names: list[str] = []
    for position, name in enumerate(theirs):
        fresh = identifier(name) if name else f"x{position}"
        while fresh in names:
            fresh += "_"
        names.append(fresh)
    return names


def _relative(where: str) -> str:
    return where.removeprefix(f"{Path.cwd()}/")


_RETURNING = frozenset({"pure_callback", "io_callback"})
_CALLBACKS = _RETURNING | {"debug_callback", "debug_print"}


@dataclass(slots=True)
class Left:
    """What was left out of a program."""

    failing: Collection[str] = ()
    """The names of functions of the host that failed."""
    callbacks: int = 0
    """The number of calls of the host that were left out."""

    def standalone(self, jaxpr: object) -> object:
        """Return a jaxpr that needs nothing but JAX, at every level."""
        return inlined(jaxpr, self._replacement)

    def _replacement(self, equation: Equation) -> Program | None:
        """Return the program that takes the place of an equation, if one does."""
        name = equation.primitive.name
        if name in _CALLBACKS:
            function = host_callbacks.function_of(name, equation.params)
            if function is not None and (name in _RETURNING or function.name in self.failing):
                return None
            self.callbacks += name in _RETURNING
            avals = [var.aval for var in equation.outvars]
            return stage(
                lambda *_: [jnp.zeros(aval.shape, aval.dtype) for aval in avals],
                [atom.aval for atom in equation.invars],
            ).program
        if module_of(equation.primitive).partition(".")[0] in ("", "jax"):
            return None
        return _implementation(equation)


def _implementation(equation: Equation) -> Program | None:
    """Return what the implementation of a primitive does, if JAX can trace that."""
    implementation: Callable[..., object] = getattr(equation.primitive, "impl")  # noqa: B009

    def implemented(*arguments: object) -> object:
        return implementation(*arguments, **equation.params)

    try:
        program = stage(implemented, [atom.aval for atom in equation.invars]).program
    except Exception:  # noqa: BLE001 - code of another package
        return None
    if any(inner.primitive is equation.primitive for _, inner in walk(program.jaxpr)):
        return None  # it compiles the primitive itself
    types = [
        [(a.aval.shape, a.aval.dtype) for a in atoms]
        for atoms in (program.jaxpr.outvars, equation.outvars)
    ]
    return program if types[0] == types[1] and not program.consts else None
