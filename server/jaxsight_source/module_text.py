"""Writes the program of a call as a module with one function that callers use."""

from __future__ import annotations

import ast
import linecache
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from jaxsight_source.calls import static_guards
from jaxsight_source.calls.signature import BoundCall, Fixed, TracedArgument, TracedCall, jitted
from jaxsight_source.compat.jaxpr_types import Var
from jaxsight_source.compat.locations import location_of
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.same.liveness import read_by_live
from jaxsight_source.options import SourceOptions
from jaxsight_source.passes.comprehensions import gathered
from jaxsight_source.passes.inlining import handled, inlined
from jaxsight_source.rules.functions.calls import decorated
from jaxsight_source.text.exprs import (
    IMPORTS,
    call,
    changed,
    dotted,
    is_number,
    parsed,
    public,
    subscript,
    substituted,
)
from jaxsight_source.text.layout import STEP, WIDTH, flat
from jaxsight_source.text.layout import parameters as texts_of
from jaxsight_source.text.names import path_of
from jaxsight_source.text.statements import (
    Line,
    Raw,
    assign,
    define,
    equations_of,
    lines,
    modules_read,
    return_,
    roots,
)
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
    inner, new_names = _renamed(called)
    program = opened(traced_call.jaxpr)
    inside = None if apart or options.inline else jitted(called, program)
    if inside is not None:
        program, jit_options = inside
    scope = Scope.top(writer)
    for parameter in _bare(inner.parameters):
        scope.names.keep(parameter)
    _write_arguments(scope, inner, program)
    results = scope.program(program)
    if inside is None:
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
    if inside is not None and (writer.passed.placeholders or stored):
        return write_module(called, traced_call, options, original, apart=True)
    scope.body.append(return_(value))
    main = _main(writer, name, called, inner, scope.body, stored, scope.names.fresh)
    if new_names:
        body_name = writer.names.fresh(f"{name}_body")
        body = _inside(main, body_name, new_names)
        writer.functions.statements.append(body)
    statements: list[ast.stmt] = [main]
    if inside is not None:
        statements = decorated(main, jax.jit, "jax.jit", jit_options)
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
    guards, explanations = static_guards.checks(inner.fixed, fresh)
    names = [placeholder.name for placeholder in passed]
    nested: list[ast.stmt] = []
    if names or stored:
        functions = writer.functions
        functions.statements, nested = _split(functions.statements, [*names, *stored])
    named = _with_keywords(called.parameters, [*names, *stored])
    docstring = _explained(
        [
            *((placeholder.name, placeholder.why) for placeholder in passed),
            *((constant, arrays.about(writer.constants.stored[constant])) for constant in stored),
        ],
        explanations,
    )
    return define(name, named, [*nested, *guards, *body], docstring=docstring)


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


def module_lines(writer: Writer, main: list[ast.stmt], name: str) -> list[Line]:
    """Return the lines of a module whose function `name` the statements in `main` define."""
    options = writer.options
    inner: list[ast.stmt] = [*writer.functions.statements, *main]
    if options.style == "pretty" and not options.shapes:
        inner = inlined(inner, name)
    if options.sources:
        inner = with_sources(inner)
    constants = writer.constants
    derived = [*constants.packed]
    if constants.packed:
        inner.insert(0, Raw(["", "", *arrays.UNPACK]))
    if options.constants == "npz" and constants.stored:
        reading: list[ast.stmt] = []
        for constant, array in constants.stored.items():
            entry = subscript(ast.Name("_stored"), ast.Constant(constant))
            reading.append(assign(constant, arrays.read_back(entry, array)))
        beside = parsed('np.load(Path(__file__).with_suffix(".npz"))')
        derived.append(ast.With([ast.withitem(beside, ast.Name("_stored"))], reading))
    derived.extend(constants.derived)
    statements = [*constants.statements, *inner, *derived]
    written = lines(statements, before=Raw([]))
    text = "\n".join(line.text for line in written)
    imports = _imports(text, statements, writer)
    gap = [""] if imports or constants.statements else []  # functions bring their own empty lines
    under = [""] if imports and constants.statements else []
    top = [*_docstring(name, options), *_devices_note(text), *gap, *imports, *under]
    return [*map(Line, top), *written]


def _docstring(name: str, options: SourceOptions) -> list[str]:
    first = f"`{name}`, written by jaxsight for JAX {jax.__version__}."
    config: Any = jax.config
    if config.jax_enable_x64:
        notes = ["Holds with jax_enable_x64 on."]
    else:
        notes = ["Holds with jax_enable_x64 off, JAX's default."]
    if options.derivatives == "primal":
        notes.append("Does not keep derivatives: custom_jvp and custom_vjp rules are omitted.")
    elif options.derivatives == "first":
        notes.append("Keeps first-order derivatives only, where there are custom rules.")
    return ['"""' + first, "", *notes, '"""']


_MADE = re.compile(r"jax\.make_mesh\(\s*\((\d+(?:,\s*\d+)*),?\)")
_FIRST = re.compile(r"jax\.devices\(\)\[:(\d+)\]")
_AT = re.compile(r"jax\.devices\((?:\"\w+\")?\)\[(\d+)\]")


def _devices_note(text: str) -> list[str]:
    """Return a comment for a module that needs several devices, which a CPU can simulate."""
    counts = [
        *(math.prod(map(int, sizes.split(","))) for sizes in _MADE.findall(text)),
        *map(int, _FIRST.findall(text)),
        *(int(index) + 1 for index in _AT.findall(text)),
    ]
    count = max(counts, default=1)
    if count == 1:
        return []
    flags = f"XLA_FLAGS=--xla_force_host_platform_device_count={count}"
    return ["", f"# needs {count} devices: {flags} simulates them"]


def _imports(text: str, statements: Sequence[ast.stmt], writer: Writer) -> list[str]:
    """Return the imports of a module as import sorters order them: `import` before `from`."""
    used = roots(text)
    standard = [
        f"import {module}"
        for module in ("base64", "zlib")
        if module in used and writer.constants.packed
    ]
    if "Path" in used and writer.constants.stored:
        standard.append("from pathlib import Path")
    short = [line for name, line in IMPORTS.items() if name in used]
    full = {f"import {module}" for module in modules_read(statements)}
    ordered = sorted({*short, *full}, key=lambda line: (line.startswith("from "), line.split()[1:]))
    groups = [standard, _merged(ordered)]
    lines_: list[str] = []
    for group in groups:
        lines_ += ([""] if lines_ and group else []) + group
    return lines_


def _merged(imports: list[str]) -> list[str]:
    """Merge sorted `from` imports of the same module into one line."""
    joined: list[str] = []
    for line in imports:
        module, separator, name = line.partition(" import ")
        if separator and joined and joined[-1].startswith(f"{module} import "):
            joined[-1] += f", {name}"
        else:
            joined.append(line)
    return joined


def with_sources(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a module with comments, also in all functions."""
    return _remarked(body, "", None)[0]


def _remarked(
    body: Sequence[ast.stmt], indent: str, line: tuple[str, int] | None
) -> tuple[list[ast.stmt], tuple[str, int] | None]:
    """Return statements with comments, after `line`, and the line of the last one."""
    remarked: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.FunctionDef(body=inside):
                inside, _ = _remarked(inside, indent + STEP, None)
                remarked.append(changed(statement, body=inside))
            case ast.With(body=inside) | ast.For(body=inside):
                inside, line = _remarked(inside, indent + STEP, line)
                remarked.append(changed(statement, body=inside))
            case _:
                equations = equations_of(statement)
                made = location_of(equations[-1]) if equations else None
                text = linecache.getline(made.file, made.line) if made is not None else ""
                if made is not None and text.strip() and (made.file, made.line) != line:
                    line = made.file, made.line
                    room = WIDTH - len(indent) - len("# ")
                    text = " ".join(text.split())
                    shown = text if len(text) <= room else text[: room - 1] + "…"
                    statement = changed(statement, remarks=shown)
                remarked.append(statement)
    return remarked, line


SHADOWING = frozenset(IMPORTS) | {"complex", "frozenset", "range", "repr", "slice", "tuple", "type"}
"""Names that the body of a function may use, so that a parameter would shadow them."""

Read = TypeVar("Read", TracedArgument, Fixed)


def _bare(parameters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a parameter list."""
    names = (parameter.lstrip("*").partition("=")[0] for parameter in parameters)
    return tuple(name for name in names if name not in ("", "/"))


def _renamed(inner: BoundCall) -> tuple[BoundCall, dict[str, str]]:
    """Return the call with new names for shadowing parameters, and these by the old names."""
    names = _bare(inner.parameters)
    new_names: dict[str, str] = {}
    for name in names:
        if name in SHADOWING:
            new_names[name] = f"{name}_"
            while new_names[name] in names:
                new_names[name] += "_"
    if not new_names:
        return inner, {}

    others = {old: ast.Name(new) for old, new in new_names.items()}

    def read(part: Read) -> Read:
        return replace(part, expr=substituted(part.expr, others))

    return replace(
        inner,
        parameters=tuple(new_names.get(name, name) for name in names),
        arguments=tuple(map(read, inner.arguments)),
        fixed=tuple(map(read, inner.fixed)),
    ), new_names


def _inside(main: ast.FunctionDef, name: str, new_names: dict[str, str]) -> ast.FunctionDef:
    """Move the body of a function into a new function `name`, and return that."""
    names = _bare(tuple(texts_of(main.args)))
    start = 0 if ast.get_docstring(main) is None else 1
    inner = define(name, [new_names.get(each, each) for each in names], main.body[start:])
    main.body[start:] = [return_(call(name, *map(ast.Name, names)))]
    return inner


def _split(
    functions: Sequence[ast.stmt], passed: Iterable[str]
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Split the module's functions into those that can stay and those that need a `passed` name.

    A function needs a name if it, or a function that it calls, reads it.
    """
    needed = set(passed)
    if not needed:
        return list(functions), []
    names = [roots("\n".join(line.text for line in lines([part]))) for part in functions]
    moving = [False] * len(functions)
    while True:
        before = len(needed)
        for index, (part, used) in enumerate(zip(functions, names, strict=True)):
            if not moving[index] and used & needed:
                moving[index] = True
                if isinstance(part, ast.FunctionDef):
                    needed.add(part.name)
        if len(needed) == before:
            break
    return (
        [part for part, moves in zip(functions, moving, strict=True) if not moves],
        [part for part, moves in zip(functions, moving, strict=True) if moves],
    )


_LONGEST = 400
"""The maximum length of a reason; those of other packages may have thousands of characters."""


def _explained(
    placeholders: Sequence[tuple[str, str]], fixed: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a docstring that explains additional or unchecked arguments, or an empty string."""
    rows = [
        textwrap.fill(
            f"{name}: {textwrap.shorten(why, _LONGEST, placeholder=' …')}.",
            WIDTH - 4,  # the docstring's own indentation
            initial_indent="    ",
            subsequent_indent="        ",
            break_on_hyphens=False,
        )
        for name, why in (*placeholders, *fixed)
    ]
    if not rows:
        return ""
    first = (
        "As the original, with arguments for values that cannot be written as source."
        if placeholders
        else "As the original, for fixed values of some arguments."
    )
    return "\n".join([first, "", "Args:", *rows])
