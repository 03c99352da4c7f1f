"""Writes the program of a call as a module with one function that callers use."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from jaxsight_source.calls import static_guards
from jaxsight_source.calls.jitted_function import jitted
from jaxsight_source.calls.signature import BoundCall, TracedCall
from jaxsight_source.compat.jaxpr_types import Var
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.same.liveness import read_by_live
from jaxsight_source.module_text import module_lines
from jaxsight_source.options import SourceOptions
from jaxsight_source.passes import parameters
from jaxsight_source.passes.comprehensions import gathered
from jaxsight_source.passes.inlining import handled
from jaxsight_source.text.exprs import call, changed, dotted, is_number, public
from jaxsight_source.text.layout import flat
from jaxsight_source.text.paths import path_of
from jaxsight_source.text.statements import assign, define, return_
from jaxsight_source.values import constants as arrays
from jaxsight_source.values.pytrees import pytree
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.writer import Original, Writer
from jaxsight_source.written import Written


def write_module(
    called: BoundCall,
    traced_call: TracedCall,
    options: SourceOptions,
    original: Original,
    *,
    apart: bool = False,
) -> Written:
    """Write a program.

    A jitted function keeps its decorator, unless it is to be written `apart`, as a shared function.
    """
    name = options.name
    writer = Writer(options, original)
    writer.names.keep(name)
    inner, new_names = parameters.renamed(called)
    program = opened(traced_call.jaxpr)
    decorated = None if apart or options.inline else jitted(called, program)
    if decorated is not None:
        program = decorated.program
    scope = Scope.top(writer)
    for parameter in parameters.bare(inner.parameters):
        scope.names.keep(parameter)
    _write_arguments(scope, inner, program)
    results = scope.program(program)
    if decorated is None:
        pairs = zip(results, traced_call.numbers, strict=True)
        results = [_returned(expr, number) for expr, number in pairs]
        if options.style == "pretty":
            scope.body = [*_converted(inner, scope.body), *scope.body]
    arguments = inner.bound.arguments.items()
    trees = [(ast.Name(new_names.get(name, name)), value) for name, value in arguments]
    value = pytree(traced_call.structure, results, trees, writer.passed.structure)
    if options.folds:
        value = gathered(value, writer.folds.sizes)
    stored = list(writer.constants.stored) if options.constants == "argument" else []
    if decorated is not None and (writer.passed.placeholders or stored):
        return write_module(called, traced_call, options, original, apart=True)
    scope.body.append(return_(value))
    main = _main(writer, name, called, inner, scope.body, stored, scope.names.fresh)
    if new_names:
        body_name = writer.names.fresh(f"{name}_body")
        body = parameters.apart(main, body_name, new_names)
        writer.functions.statements.append(body)
    statements: list[ast.stmt] = [main] if decorated is None else decorated.decorated(main)
    lines = tuple(module_lines(writer, statements, name))
    return Written(
        "\n".join(line.text for line in lines) + "\n",
        name,
        lines,
        tuple(writer.passed.placeholders),
        dict(writer.constants.stored),
        tuple(writer.bound),
        writer.equations,
        options,
        opened(traced_call.jaxpr),
    )


def _write_arguments(scope: Scope, called: BoundCall, program: Program) -> None:
    """Write the assignments of traced arguments that are parts of parameters."""
    used = read_by_live(program.jaxpr.outvars, program.jaxpr.eqns)
    for argument, var in zip(called.arguments, program.jaxpr.invars, strict=True):
        if isinstance(argument.expr, ast.Name):
            scope.write(var, argument.expr)
        elif id(var) in used:
            fresh = scope.names.fresh(argument.name)
            scope.write(var, ast.Name(fresh))
            if isinstance(argument.value, (jax.Array, jax.ShapeDtypeStruct)):
                _record_path(scope, var, argument.expr)
            scope.body.append(assign(fresh, argument.expr))


def _record_path(scope: Scope, var: Var, expr: ast.expr) -> None:
    """Record the path that reads a part of an argument, and minimum lengths of the lists on it."""
    path = path_of(expr)
    if path is None:
        return
    folds = scope.writer.folds
    folds.paths[id(var)] = scope.paths[id(var)] = path
    for position, (kind, text) in enumerate(path.steps):
        if kind == "[" and text.isdecimal():
            collection = (path.root, *path.steps[:position])
            folds.sizes[collection] = max(folds.sizes.get(collection, 0), int(text) + 1)


def _main(
    writer: Writer,
    name: str,
    called: BoundCall,
    inner: BoundCall,
    body: list[ast.stmt],
    stored: Sequence[str],
    fresh: Callable[[str], str],
) -> ast.FunctionDef:
    """Return the function that callers use, with parameters for passed and `stored` values."""
    passed = writer.passed.placeholders
    guards = static_guards.checks(inner.fixed, fresh)
    names = [placeholder.name for placeholder in passed]
    nested: list[ast.stmt] = []
    if names or stored:
        functions = writer.functions
        functions.statements, nested = parameters.split(functions.statements, [*names, *stored])
    named = _with_keywords(called.parameters, [*names, *stored])
    docstring = parameters.explained(
        [
            *((placeholder.name, placeholder.why) for placeholder in passed),
            *((constant, arrays.about(writer.constants.stored[constant])) for constant in stored),
        ],
        guards.explained,
    )
    return define(name, named, [*nested, *guards.statements, *body], docstring=docstring)


def _with_keywords(parameters: tuple[str, ...], added: Sequence[str]) -> tuple[str, ...]:
    """Return parameters with additional ones that are passed by keyword."""
    if not added:
        return parameters
    star = () if any(parameter.startswith("*") for parameter in parameters) else ("*",)
    double = [parameter for parameter in parameters if parameter.startswith("**")]
    plain = [parameter for parameter in parameters if not parameter.startswith("**")]
    return (*plain, *star, *added, *double)


def _converted(called: BoundCall, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return assignments that convert arguments to JAX arrays, for parameters.

    Python and NumPy would compute with numbers and NumPy arrays in their own way. Parts of
    arguments that are assigned in the body are converted there.
    """
    used = handled(body)
    conversions: list[ast.stmt] = []
    for argument in called.arguments:
        if isinstance(argument.value, (jax.Array, jax.ShapeDtypeStruct)):
            continue
        if isinstance(argument.expr, ast.Name):
            if argument.expr.id in used:
                conversions.append(assign(argument.expr.id, _array(argument.expr)))
            continue
        for statement in body:
            if (
                isinstance(statement, ast.Assign)
                and statement.value is argument.expr
                and flat(statement.targets[0]) in used
            ):
                statement.value = _array(argument.expr)
    return conversions


def _returned(expr: ast.expr, was_number: bool) -> ast.expr:
    """Return the expression of a result that the original returns as a Python number or an array.

    Numbers of NumPy and Python are not arrays. `True` has no weak type.
    """
    match expr:
        case ast.Call(function, [number]) if was_number and dotted(function) == "np.bool_":
            return number
        case _ if was_number or not is_number(expr):
            return expr
        case ast.Call(ast.Attribute(ast.Name("np"), name)) if hasattr(jnp, name):
            return changed(expr, func=public(f"jnp.{name}"))
        case _:
            return _array(expr)


def _array(expr: ast.expr) -> ast.expr:
    return call("jnp.asarray", expr)
