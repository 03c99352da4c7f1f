"""A function that is being written: walks its program and writes each equation as a statement.

Rules for single equations yield candidate expressions, which are proved; rules for equations with
inner programs write the functions for these and return a call (`equations.registry`).
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import jax

from jaxsight_source.compat import avals, derivative_rules, staging
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.compat.locations import is_backward, place
from jaxsight_source.compat.locations import scope as scope_of
from jaxsight_source.compat.staging import Program, is_dropped, is_literal
from jaxsight_source.equations import registry
from jaxsight_source.equations.idioms import find_windows
from jaxsight_source.equations.registry import claim_of, spelling_key
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.folding.calls import folded
from jaxsight_source.folding.steps import Returned
from jaxsight_source.jaxprs.same.liveness import live, needed_by, read_by_live
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text import exprs
from jaxsight_source.text.exprs import ELLIPSIS, call, is_identifier
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import after_expression, suggested
from jaxsight_source.text.statements import assign, define, effect, return_
from jaxsight_source.values import public_names, spelling
from jaxsight_source.writing.named_numbers import with_names
from jaxsight_source.writing.variables import (
    Variables,
    after_function,
    argument_bases,
    converted_variables,
    nested_results,
    sequence,
    targets_pattern,
)
from jaxsight_source.writing.writer import Writer, primitive_name

DEEPEST = 12
"""The maximum depth of nested functions; deeper ones move to the top of the module and take
captured values as arguments. (Python itself allows a hundred levels of indentation.)
"""

WRITTEN = Proved(exprs.NONE, None)
"""The result of a rule that wrote its own statements: there is nothing to assign."""

_TRANSFORMATIONS = re.compile(r"\w+\(|[)/]")
"""The parts of a scope's text other than the user's names."""


Parameters: TypeAlias = Callable[[Any, Sequence[Var], list[str]], Sequence[str]]
"""Names the inputs of a function in its scope, given base names; returns its parameters."""

Results: TypeAlias = Callable[[list[ast.expr]], ast.expr]
"""Returns the expression that a function returns, for the results of its program."""


class Scope(Variables):
    """A function that is being written."""

    @classmethod
    def top(cls, writer: Writer) -> Scope:
        """Return a scope for a function at the top of the module."""
        return cls(writer, None)

    def inner(self) -> Scope:
        """Return a scope for a function inside this one."""
        return Scope(self.writer, self)

    def function(
        self,
        name: str,
        program: Program,
        captured: Sequence[Atom] = (),
        parameters: Parameters = Variables.parameters,
        results: Results = sequence,
        unnamed: str | Sequence[str] = "x",
    ) -> ast.expr:
        """Write an inner program as a function; return an expression for it.

        Args:
            name: its base name.
            program: the inner program.
            captured: atoms here, for which the program's first inputs stand.
            parameters: names the other inputs in the new scope, given their base names.
            results: returns the expression of its result.
            unnamed: base names of inputs without a name of the user's.
        """
        scope = self.inner()
        scope.capture(program, captured)
        inputs, bases = program.jaxpr.invars, argument_bases(program, unnamed)
        named = parameters(scope, inputs[len(captured) :], bases[len(captured) :])
        return self.defined(name, named, scope, results(scope.program(program)))

    def defined(
        self, name: str, named: Sequence[str], scope: Scope, result: ast.expr | None
    ) -> ast.expr:
        """Define the function that the scope `scope` has written; return an expression for it."""
        end = [return_(result)] if result is not None else [] if scope.body else [effect(ELLIPSIS)]
        if scope.depth <= DEEPEST:
            fresh = self.names.fresh(name)
            self.body.append(define(fresh, named, [*scope.body, *end]))
            return ast.Name(fresh)
        fresh = self.writer.names.fresh(name)
        lifted = (*scope.captured, *named)
        self.writer.functions.statements.append(define(fresh, lifted, [*scope.body, *end]))
        if not scope.captured:
            return ast.Name(fresh)
        return exprs.lambda_(named, call(fresh, *(ast.Name(text) for text in lifted)))

    def as_function(
        self,
        name: str,
        program: Program,
        captured: Sequence[Atom] = (),
        unnamed: str | Sequence[str] = "x",
        results: Results = sequence,
    ) -> ast.FunctionDef:
        """Return a program as the function that this scope is of.

        Its first inputs stand for `captured` atoms; `unnamed` are base names of the others.
        """
        self.capture(program, captured)
        inputs, bases = program.jaxpr.invars, argument_bases(program, unnamed)
        parameters = self.parameters(inputs[len(captured) :], bases[len(captured) :])
        result = results(self.program(program))
        return define(name, parameters, [*self.body, return_(result)])

    def program(self, program: Program) -> list[ast.expr]:
        """Write the equations of a program whose inputs are named; return its results.

        The constants that are read are written before.

        Raises:
            derivative_rules.Outlived: for a rule that captures a value of no enclosing program.
        """
        if program.consts:
            converted = converted_variables(program)
            used = read_by_live(program.jaxpr.outvars, program.jaxpr.eqns)
            needed = set(map(id, needed_by(program)))
            constants = self.writer.constants
            for var, value in zip(program.jaxpr.constvars, program.consts, strict=False):
                if staging.is_tracer(value):
                    if id(var) in needed:
                        try:
                            self.write(var, self.read(staging.variable(value)))
                        except KeyError:
                            why = "it captures values of a finished trace"
                            raise derivative_rules.Outlived(why) from None
                elif id(var) in used:
                    write = constants.unfolded if id(var) in converted else constants.constant
                    self.write(var, write(value))
        self.equations(program.jaxpr.eqns, program.jaxpr.outvars)
        return [self.operand(atom) for atom in program.jaxpr.outvars]

    def equations(
        self, equations: Sequence[Equation], outputs: Sequence[Atom], *, named: bool = True
    ) -> None:
        """Write equations.

        `named` says whether the user's names of their results still have to be found.
        """
        needed = live(outputs, equations)
        writer = self.writer
        writer.bound_length()
        if named:
            writer.find_user_names(equations, needed)
        if writer.options.folds:
            needed = folded(needed, outputs, writer.folds.numbers)
        read = itertools.chain(outputs, *(equation.invars for equation in needed))
        uses: dict[int, int] = Counter(id(atom) for atom in read if not is_literal(atom))
        called = _called(needed, writer.user_names)
        self.names.promise(itertools.chain.from_iterable(called.values()))
        self.uses |= uses
        pretty = writer.options.style == "pretty"
        windows = find_windows(registry.IDIOMS, needed, uses, writer.proofs.prove_window, pretty)
        position = 0
        while position < len(needed):
            equation = needed[position]
            if (window := windows.get(position)) is not None:
                group: Sequence[Equation] = window[0].equations
            else:
                absorb = registry.ABSORBS.of(equation.primitive.name)
                count = 1
                if absorb is not None:
                    count = absorb(needed, position, lambda var: uses.get(id(var), 0))
                group = needed[position : position + count]
            position += len(group)
            writer.equations += len(group)
            names = called.get(position - 1)
            start = len(self.body)
            if window is not None:
                proved = Proved(self.fill(window[1], window[0].inputs), 0)
                self._assign(group, proved, names, uses)
            else:
                self._group(group, names, uses)
            self._place(start, equation if window is not None else group[-1])

    def _place(self, start: int, equation: Equation) -> None:
        """Put the statements from `start` on under the equation's context, if it is unusual."""
        try:
            managers = [self.once(manager) for manager in contexts(equation.ctx)]
        except Unwritable as error:
            raise Unsourceable(equation.primitive.name, str(error), place(equation)) from error
        names = scope_of(equation) if self.writer.options.scopes else ""
        if _TRANSFORMATIONS.sub("", names):
            managers.insert(0, call("jax.named_scope", ast.Constant(names)))
        put_under(self.body, start, managers)

    def _group(
        self, group: Sequence[Equation], names: Sequence[str] | None, uses: dict[int, int]
    ) -> None:
        equation = group[-1]
        structure = registry.STRUCTURES.of(equation.primitive.name)
        proved = self._idiom(equation) if structure and len(group) == 1 else None
        if proved is None and structure:
            before = self.writer.backward
            self.writer.backward = before or is_backward(equation)
            proved = structure(self, group if len(group) > 1 else equation)
            self.writer.backward = before
        if proved is None:
            if len(group) > 1:
                for single in group:
                    self._group([single], None, uses)
                return
            proved = self._leaf(equation)
        if proved is not WRITTEN:
            self._assign(group, proved, names, uses)

    def _assign(
        self,
        group: Sequence[Equation],
        proved: Proved,
        names: Sequence[str] | None,
        uses: dict[int, int],
    ) -> None:
        equation = group[-1]
        outputs = equation.outvars
        if self.writer.options.style == "pretty":
            proved = replace(proved, expr=with_names(proved.expr, group))
        if not outputs or not any(uses.get(id(var)) for var in outputs):
            self.body.append(effect(proved.expr, group))
            return
        promised = names is not None
        base = next(iter(getattr(equation, "bases", ())), "") or self._base(equation, proved)
        if len(outputs) == 1 and proved.results == 0 and not self.writer.options.shapes:
            user_name = names[0] if names and names[0].strip("_") else base
            name = self.names.fresh(user_name, promised=promised)
            self.write(outputs[0], ast.Name(name))
            self.body.append(assign(name, proved.expr, group, user_named=promised))
            return
        fallbacks = getattr(equation, "bases", ()) or [base] * len(outputs)
        bases = [
            name if name.strip("_") else fallback
            for name, fallback in zip(names or fallbacks, fallbacks, strict=True)
        ]
        targets: list[str] = []
        for var, own_base in zip(outputs, bases, strict=True):
            if is_dropped(var) or not uses.get(id(var)):
                targets.append("_")
                continue
            fresh = self.names.fresh(own_base, promised=promised)
            self.write(var, ast.Name(fresh))
            targets.append(fresh)
        comment = ""
        if self.writer.options.shapes:
            comment = ", ".join(
                avals.text(var.aval)
                for var, target in zip(outputs, targets, strict=True)
                if target != "_"
            )
        pattern = targets_pattern(proved.results, targets)
        self.body.append(assign(pattern, proved.expr, group, comment, user_named=promised))

    def _base(self, equation: Equation, proved: Proved) -> str:
        """Return a base name for a result that the user has no name for."""
        if self.writer.options.style == "pretty":
            return after_expression(proved.expr) or suggested(primitive_name(equation))
        return after_function(equation) or suggested(primitive_name(equation))

    def _leaf(self, equation: Equation) -> Proved:
        key = spelling_key(equation)
        proved = self.writer.proofs.proved(key)
        if proved is None:
            try:
                with staging.on_its_mesh(equation.ctx):
                    proved = self.writer.proofs.prove(*claim_of(equation), key)
            except Unsourceable as error:
                return self.passed_in(equation, error.why)
        if proved.bound:
            self.writer.bound.append(equation.primitive.name)
        return self._filled(proved, equation)

    def _idiom(self, equation: Equation) -> Proved | None:
        """Return a proved public call for an equation with inner programs, or None."""
        name = equation.primitive.name
        if self.writer.options.style != "pretty":
            if registry.LAX.of(name) is None:
                return None
        elif (structure := registry.PRETTY_STRUCTURES.of(name)) is not None:
            return structure(self, equation)
        elif registry.PRETTY.of(name) is None:
            return None
        proved = self.writer.proofs.prove_whole(*claim_of(equation), spelling_key(equation))
        return self._filled(proved, equation) if proved else None

    def passed_in(self, equation: Equation, reason: str, base: str = "") -> Proved:
        """Return a call of a function, passed by the caller, that computes the equation.

        `base` is its name. It is for equations that cannot be written as source, for `reason`.
        """
        name, operands = primitive_name(equation), [self.operand(atom) for atom in equation.invars]
        inputs = ", ".join(avals.text(atom.aval) for atom in equation.invars)
        outputs = ", ".join(avals.text(var.aval) for var in equation.outvars)
        where = f" at {at}" if (at := place(equation)) else ""
        why = (
            f"computes `{name}`{where}, from {inputs or 'nothing'} to {outputs or 'nothing'} "
            f"({reason})"
        )
        passed = self.writer.passed
        function = passed.placeholder(
            passed.function_of(equation), base or suggested(name), " ".join(why.split())
        )
        return Proved(call(function, *operands), nested_results(len(equation.outvars)))

    def bound(self, equation: Equation, *operands: ast.expr, **params: ast.expr) -> Proved:
        """Return the equation as a call of `bind`, where no public function creates it."""
        self.writer.bound.append(equation.primitive.name)
        bind = ast.Attribute(public_names.primitive(equation.primitive), "bind")
        return Proved(call(bind, *operands, **params), tuple(range(len(equation.outvars))))

    def _filled(self, proved: Proved, equation: Equation) -> Proved:
        variables = [atom for atom in equation.invars if not is_literal(atom)]
        return Proved(self.fill(proved.expr, variables), proved.results)

    def fill(self, expr: ast.expr, variables: Sequence[Var]) -> ast.expr:
        """Return an expression with its slots filled by variables.

        If all of these are numbers, they become arrays: Python would compute with them itself.
        """
        operands = [self.read(var) for var in variables]
        if operands and all(map(exprs.is_number, operands)) and exprs.uses_python(expr):
            operands = [call("jnp.asarray", operand) for operand in operands]
        filled: ast.expr = exprs.with_operands(self.once(expr), operands)
        return filled

    def once(self, expr: ast.expr) -> ast.expr:
        """Return an expression with the names of its parts that the module has once."""
        return self.writer.constants.once(expr)


def _called(needed: Sequence[Any], user_names: Mapping[int, str]) -> dict[int, list[str]]:
    """Return the user's names for results, `_` for unknown ones, by the equation's position."""
    called: dict[int, list[str]] = {}
    for index, equation in enumerate(needed):
        names = [
            var.name if isinstance(var, Returned) else user_names.get(id(var), "_")
            for var in equation.outvars
        ]
        if any(name != "_" for name in names):
            called[index] = names
    return called


def contexts(context: Any) -> list[ast.expr]:
    """Return context managers for the settings of an equation that are not the defaults.

    Most equations need none. Raise `Unwritable` for a mesh of devices that are not present, and for
    metadata whose names are not Python identifiers.
    """
    managers: list[ast.expr] = []
    config: Any = jax.config
    if context is None:
        return managers
    mesh = getattr(context, "cur_abstract_mesh", None)
    if mesh is not None and mesh.axis_names and mesh != jax.sharding.get_abstract_mesh():
        managers.append(call("jax.sharding.use_abstract_mesh", spelling.abstract_mesh(mesh)))
    partitionable = context.threefry_partitionable
    if partitionable != config.jax_threefry_partitionable:
        managers.append(call("jax.threefry_partitionable", spelling.value(partitionable)))
    if context.compute_type is not None:
        compute_on = public_names.imported("jax.experimental.compute_on", "compute_on")
        managers.append(call(compute_on, ast.Constant(context.compute_type)))
    if context.xla_metadata:
        managers.append(metadata([], dict(context.xla_metadata)))
    return managers


def metadata(operands: list[ast.expr], entries: dict[str, object]) -> ast.expr:
    """Return a call of `set_xla_metadata`, on a value or as a context."""
    if not all(is_identifier(name) for name in entries):
        raise Unwritable(entries, "its names are not Python identifiers")
    named = {name: spelling.value(part) for name, part in entries.items()}
    path = public_names.imported("jax.experimental.xla_metadata", "set_xla_metadata")
    return call(path, *operands, **named)


def put_under(body: list[ast.stmt], start: int, managers: list[ast.expr]) -> None:
    """Move the statements from `start` on under `managers`, or into the same `with` before them."""
    if not managers or start == len(body):
        return
    before, inside = (body[start - 1] if start else None), body[start:]
    del body[start:]
    if isinstance(before, ast.With) and len(managers) == 1 and (
        flat(before.items[0].context_expr) == flat(managers[0])
    ):  # fmt: skip
        before.body.extend(inside)
        return
    for manager in reversed(managers):
        inside = [ast.With([ast.withitem(manager)], inside)]
    body.extend(inside)
