"""Loads a repro and traces its program, without initializing a backend in this process.

The values of the inputs are computed in a child. Here, the file is executed while a trace is
active: operations on arrays at the file's top level and in `inputs()` become equations, which are
not computed.
"""

from __future__ import annotations

import ast
import contextlib
import os
import pickle
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
from jax.sharding import NamedSharding

from jaxsight.text.names import bound_in_scope
from jaxsight_repro.compat import configuration, pickling
from jaxsight_repro.compat.mesh_equations import abstract, divided, placement
from jaxsight_repro.failures import FINISHED, failure_of
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.equations.candidates import Keys, Shrunk, Value, of_program
from jaxsight_repro.reducing.equations.evaluation import value_of
from jaxsight_source.compat import avals
from jaxsight_source.compat.staging import Program, stage

NAME = "repro"
"""The name of the module."""


class Unloadable(Exception):
    """A file is not a repro, or its program cannot be traced here; the text says why."""


@dataclass(frozen=True, slots=True)
class LoadedRepro:
    """A repro's text, with what is known of its parts."""

    file: Path
    text: str
    tree: ast.Module

    @property
    def settings(self) -> list[ast.stmt]:
        """The statements at the top: imports, environment variables, and configuration."""
        kept: list[ast.stmt] = []
        for statement in self.tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.If):
                break
            text = ast.unparse(statement)
            settings = ("import ", "from ", "os.environ", "jax.config.", "config.update")
            if text.startswith(settings):
                kept.append(statement)
        return kept

    @property
    def demonstration(self) -> tuple[str, ...]:
        """The lines that run if the file is a script; empty if there are none."""
        block = demonstration_of(self.tree)
        return () if block is None else tuple(ast.unparse(ast.Module(block.body, [])).splitlines())


def demonstration_of(tree: ast.Module) -> ast.If | None:
    """Return the statement that runs if a module is a script."""
    blocks = (each for each in tree.body if isinstance(each, ast.If))
    return next((block for block in blocks if "__main__" in ast.unparse(block.test)), None)


def read(file: Path) -> LoadedRepro:
    """Read a repro.

    Raises:
        Unloadable: the file cannot be read or parsed, or has no `main` or `inputs`.
    """
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        raise Unloadable(f"cannot read {file.name}: {error}") from error
    return LoadedRepro(file, text, tree)


def is_repro(loaded: LoadedRepro) -> bool:
    """Return whether a file defines `main` and `inputs`."""
    return {"main", "inputs"} <= set(bound_in_scope(loaded.tree))


def configure(loaded: LoadedRepro) -> Callable[[], None]:
    """Execute the settings of a file; return what undoes that in a child."""
    options, variables = configuration.values(), dict(os.environ)
    module = ast.Module(loaded.settings, [])
    with contextlib.redirect_stdout(sys.stderr):
        exec(compile(module, str(loaded.file), "exec"), {"__name__": NAME})  # noqa: S102

    def undo() -> None:
        configuration.restore(options)
        os.environ.clear()
        os.environ.update(variables)

    return undo


def execute(loaded: LoadedRepro) -> types.ModuleType:
    """Execute a file as a module."""
    module = types.ModuleType(NAME)
    module.__file__ = str(loaded.file)
    sys.modules[NAME] = module
    folder = str(loaded.file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    exec(compile(loaded.tree, str(loaded.file), "exec"), vars(module))  # noqa: S102
    return module


@dataclass(frozen=True, slots=True)
class ProgramInputs:
    """The values of the arrays among the arguments of `main`, and which leaves they are.

    Those of several devices have placements, which become constraints at the program's start.
    """

    values: tuple[Value, ...]
    placements: tuple[NamedSharding | None, ...]
    positions: tuple[int, ...]
    structure: tuple[jax.tree_util.PyTreeDef, list[object]] | None
    """The tree of the arguments with their other leaves, if it can be sent."""


def inputs_of(loaded: LoadedRepro, limits: ChildLimits) -> ProgramInputs:
    """Compute the arguments of `main` in a child.

    Raises:
        Unloadable: that failed; the file may still run.
    """

    def task() -> bytes:
        return pickle.dumps(_split(execute(loaded).inputs()))

    inputs: ProgramInputs = pickle.loads(_of_child(task, limits))
    return inputs


def _split(arguments: object) -> ProgramInputs:
    """Take the arrays out of arguments."""
    leaves, tree = jax.tree.flatten(arguments)
    values = {index: value_of(leaf) for index, leaf in enumerate(leaves)}
    known = {index: value for index, value in values.items() if value is not None}
    others = [None if index in known else leaf for index, leaf in enumerate(leaves)]
    module = sys.modules.pop(NAME, None)  # the reader of the pickle does not have it
    try:
        same = pickle.loads(pickle.dumps((tree, others)))[0] == tree
    except Exception:  # noqa: BLE001 - classes of the file
        same = False
    finally:
        if module is not None:
            sys.modules[NAME] = module
    structure = (tree, others) if same else None
    placements = tuple(placement(leaves[index]) for index in known)
    return ProgramInputs(tuple(known.values()), placements, tuple(known), structure)


def _of_child(task: Callable[[], bytes], limits: ChildLimits) -> bytes:
    """Return what a task returns in a child.

    Raises:
        Unloadable: it failed, or ended the child.
    """

    def safe() -> bytes:
        try:
            return b"1" + task()
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            return b"0" + failure_of(error).headline.encode()

    ending, output = children.run(safe, limits)
    if ending.kind != FINISHED or not output:
        raise Unloadable(f"cannot trace main: {ending.headline}")
    if output[:1] == b"0":
        raise Unloadable(f"cannot trace main: {output[1:].decode()}")
    return output[1:]


def traced(loaded: LoadedRepro, inputs: ProgramInputs, limits: ChildLimits) -> Shrunk:
    """Trace `main` at the types of its arguments, in a child, where it may crash or hang.

    Then it is traced in this process, unless that initializes a backend: it must be able to fork.

    Raises:
        Unloadable: that failed, because the file needs values at its top level.
    """

    def task() -> bytes:
        program = _trace(loaded, inputs)
        return _without_devices(program) if configuration.are_initialized() else b""

    written = _of_child(task, limits)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            program = next(pickling.load_all(written)) if written else _trace(loaded, inputs)
            return of_program(program, inputs.values)
    except Exception as error:
        first = str(error).strip().split("\n", 1)[0]
        raise Unloadable(f"cannot trace main: {type(error).__name__}: {first}") from error


def _without_devices(program: Program) -> bytes:
    """Return a program as bytes that can be read where no devices are used.

    Raises:
        Unloadable: it places arrays on devices.
    """
    equations = [abstract(equation) for equation in program.jaxpr.eqns]
    written = pickling.dumps(Program(program.jaxpr.replace(eqns=equations), program.consts))
    if pickling.needs_devices(written):
        raise Unloadable("it places arrays on devices")
    return written


def _trace(loaded: LoadedRepro, inputs: ProgramInputs) -> Program:
    def program(*arrays: object) -> object:
        module = execute(loaded)
        if inputs.structure is not None:
            tree, leaves = inputs.structure
        else:
            leaves, tree = jax.tree.flatten(module.inputs())
        leaves = list(leaves)
        placed = map(divided, arrays, inputs.placements)
        for position, array in zip(inputs.positions, placed, strict=True):
            leaves[position] = array
        return module.main(*jax.tree.unflatten(tree, leaves))

    structs = [
        avals.key_struct(value.impl, value.data.shape[:-1])
        if isinstance(value, Keys)
        else avals.struct(value.shape, jax.dtypes.canonicalize_dtype(value.dtype))
        for value in inputs.values
    ]
    return stage(program, list(map(avals.of, structs))).program
