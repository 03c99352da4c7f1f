"""The variables of a function that is being written, and the expressions that they stand for."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self, TypeGuard

import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Literal, Var
from jaxsight_source.compat.parameters import has_mesh
from jaxsight_source.compat.staging import Program, is_literal
from jaxsight_source.errors import Unwritable
from jaxsight_source.folding.steps import NOTHING
from jaxsight_source.jaxprs.base import Environment
from jaxsight_source.text.exprs import NONE, call, tuple_
from jaxsight_source.text.names import Names, Path, identifier, of_path, without_number
from jaxsight_source.text.statements import assign
from jaxsight_source.values.spelling import dtype, scalar
from jaxsight_source.writing.writer import Writer

MANY = 6
"""The minimum number of values that are passed several times under a common name, chosen: fewer fit
on a line with the call."""


class Variables:
    """The variables, names and statements of a function."""

    def __init__(self, writer: Writer, around: Self | None) -> None:
        self.writer = writer
        self.around = around
        self.names: Names = writer.names.function(around.names if around else None)
        self.body: list[ast.stmt] = []
        self.depth: int = around.depth + 1 if around else 0
        self.uses: dict[int, int] = {}
        """How often each variable is read, by its id."""
        self.captured: dict[str, None] = {}
        """Names of enclosing functions that this one reads, in order."""
        self.paths: dict[int, Path] = {}
        """The paths of variables that are parts of other values, by the variable's id."""
        self._environment: Environment[tuple[Variables, ast.expr]] = Environment(
            around._environment if around else None
        )

    def write(self, var: object, expr: ast.expr) -> None:
        """Let `var` stand for `expr`: a name, or an expression with the same value anywhere."""
        self._environment.write(var, (self, expr))

    def alias(self, var: Var, atom: Atom) -> None:
        """Let `var` stand for the value of `atom`, here or in an enclosing function."""
        if is_literal(atom):
            self.write(var, self.operand(atom, avals.weak(var.aval)))
        else:
            with contextlib.suppress(KeyError):  # values that only dead code reads are not written
                self._environment.write(var, self._environment.read(atom))

    def capture(self, program: Program, captured: Sequence[Atom]) -> None:
        """Let a program's first inputs stand for atoms of an enclosing function."""
        converted = converted_variables(program)
        for var, atom in zip(program.jaxpr.invars, captured, strict=False):
            if is_literal(atom) and id(var) in converted:
                self.write(var, self.writer.constants.unfolded(_array(atom)))
            else:
                self.alias(var, atom)

    def read(self, var: object) -> ast.expr:
        if var is NOTHING:
            return NONE
        owner, expr = self._environment.read(var)
        if isinstance(expr, ast.Name) and expr.id not in self.writer.names.module:
            scope: Variables | None = self
            while scope is not None and scope is not owner:
                scope.captured[expr.id] = None
                scope = scope.around
        return expr

    def path(self, var: Var) -> Path | None:
        """Return the path of a variable that is a part of another value, or None."""
        scope: Variables | None = self
        while scope is not None:
            if id(var) in scope.paths:
                return scope.paths[id(var)]
            scope = scope.around
        return None

    def stand(self, var: Var, path: Path) -> None:
        """Let `var` stand for the value at a path."""
        if not path.steps:
            self.paths.pop(id(var), None)
            self.write(var, ast.Name(path.root))
            return
        self.paths[id(var)] = path
        name = self.names.fresh(path.name)
        self.write(var, ast.Name(name))
        self.body.append(assign(name, path.expr))

    def operand(self, atom: Atom, weak: bool | None = None) -> ast.expr:
        """Return an expression for `atom`.

        Literals keep their dtype; `weak` overrides their weak type.
        """
        if not is_literal(atom):
            return self.read(atom)
        own = getattr(atom.aval, "dtype", None)
        value = np.asarray(atom.val)
        weak = bool(getattr(atom.aval, "weak_type", False)) if weak is None else weak
        return scalar(value if own is None else value.astype(own), weak)

    def operands(self, atoms: Sequence[Atom], binders: Sequence[Var]) -> list[ast.expr]:
        """Return arguments for the inputs of an inner program."""
        return [self._argument(atom, binder) for atom, binder in zip(atoms, binders, strict=True)]

    def _argument(self, atom: Atom, binder: Var) -> ast.expr:
        """Return an argument for an input; a literal over a mesh stays over it."""
        weak = bool(getattr(binder.aval, "weak_type", False))
        if not (is_literal(atom) and has_mesh(atom.aval) and has_mesh(binder.aval)):
            return self.operand(atom, weak)
        number = self.operand(atom, weak=True)
        return call("lax.full", tuple_(()), number, *([] if weak else [dtype(atom.aval.dtype)]))

    def parameters(self, variables: Sequence[Var], bases: Sequence[str] | None = None) -> list[str]:
        """Return names for the inputs of this function."""
        names = []
        for index, var in enumerate(variables):
            base = bases[index] if bases and index < len(bases) else "x"
            name = self.names.fresh(base)
            self.write(var, ast.Name(name))
            names.append(name)
        return names

    def take_apart(self, names: Sequence[str], parameter: str) -> None:
        """Unpack a parameter into several names."""
        self.body.append(assign(tuple_(map(ast.Name, names)), ast.Name(parameter)))

    def grouped(self, variables: Sequence[Var], bases: Sequence[str], base: str) -> str:
        """Return a parameter for several values, which the function unpacks.

        Return the value's own name if there is one value.
        """
        if len(variables) == 1:
            return self.parameters(variables, bases)[0]
        name = self.names.fresh(base if variables else "_")
        if variables:
            self.take_apart(self.parameters(variables, bases), name)
        return name

    def several(self, values: Sequence[ast.expr], base: str) -> list[ast.expr]:
        """Return values that are passed repeatedly; many become one starred tuple."""
        if len(values) < MANY:
            return list(values)
        return [ast.Starred(self.assigned(base, tuple_(values)))]

    def assigned(self, base: str, expr: ast.expr) -> ast.Name:
        """Assign an expression to a new name."""
        name = ast.Name(self.names.fresh(base))
        self.body.append(assign(name, expr))
        return name


def converted_variables(program: Program) -> set[int]:
    """Return the ids of the variables that a program converts; JAX folds conversions of numbers."""
    return {
        id(equation.invars[0])
        for equation in program.jaxpr.eqns
        if equation.primitive.name == "convert_element_type"
    }


def _array(atom: Literal) -> object:
    """Return a literal as an array of its type.

    Raise `Unwritable` for a weak type other than those of Python numbers.
    """
    value = np.asarray(atom.val).astype(atom.aval.dtype)
    if not getattr(atom.aval, "weak_type", False):
        return jnp.asarray(value)
    array = jnp.asarray(value.item())
    if array.dtype != atom.aval.dtype:
        raise Unwritable(atom.val, "no Python number has its weak type")
    return array


def with_parts(program: Program, **parts: object) -> Program:
    """Return a program with other `invars`, `eqns`, `outvars` … of its jaxpr."""
    jaxpr = program.jaxpr
    names = ("constvars", "invars", "eqns", "outvars", "debug_info")
    own = {name: getattr(jaxpr, name, None) for name in names}
    return Program(SimpleNamespace(**own | parts), program.consts)


def sequence(results: list[ast.expr]) -> ast.expr:
    """Return a single result, or a tuple."""
    return results[0] if len(results) == 1 else tuple_(results)


def nested_results(count: int) -> int | tuple[int, ...]:
    """Return the tree of `sequence`'s results."""
    return 0 if count == 1 else tuple(range(count))


def targets_pattern(results: Any, targets: Sequence[str]) -> ast.expr:
    """Return the left-hand side of an assignment."""
    if isinstance(results, int):
        return ast.Name(targets[results])
    if results is None:
        return ast.Name("_")
    return tuple_(targets_pattern(inner, targets) for inner in results)


def after_function(equation: Equation) -> str | None:
    """Return a name for the result of a jitted call, after the function, or None."""
    name = equation.params.get("name") if equation.primitive.name in ("jit", "pjit") else None
    return identifier(str(name).strip("_"), "out") + "_out" if name else None


def argument_bases(program: Program, fallback: str | Sequence[str] = "x") -> list[str]:
    """Return base names for a program's inputs: the user's names, if JAX knows them.

    `fallback` is for the others: one name for each, or names for all.
    """
    names = argument_names(program)
    fallbacks = [fallback] * len(names) if isinstance(fallback, str) else fallback
    pairs = zip(names, fallbacks, strict=True)
    return [of_path(name, base) if name else base for name, base in pairs]


def passed_as(operands: Sequence[ast.expr]) -> list[str]:
    """Return base names for parameters without known names: those of the values passed."""
    return [without_number(expr.id) if _is_name(expr) else "x" for expr in operands]


def slices_of(operands: Sequence[ast.expr]) -> list[str]:
    """Return base names for slices of the values that a loop iterates over."""
    counted = {"iota": "i", "numbers": "i"}
    bases = [
        base if _is_name(expr) else ""
        for expr, base in zip(operands, passed_as(operands), strict=True)
    ]
    return [counted.get(base, f"{base}_i") if base else "x" for base in bases]


def _is_name(expr: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(expr, ast.Name) and not expr.id.startswith("_")
