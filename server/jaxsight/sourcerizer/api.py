"""`sourcerize`: a function and its arguments in, the text of a module out."""

from __future__ import annotations

import functools
import inspect
import linecache
import logging
import re
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxsight.interpreters.compat.staging import is_literal, opened
from jaxsight.interpreters.depth import room_for_nesting
from jaxsight.interpreters.same import Difference, live, same_jaxpr
from jaxsight.sourcerizer import constants as arrays
from jaxsight.sourcerizer import passing, rules, shadowing, signature, spelling
from jaxsight.sourcerizer.assignments import Fits
from jaxsight.sourcerizer.collecting import nothing_collected
from jaxsight.sourcerizer.exprs import Atom, Expr, Index, is_identifier
from jaxsight.sourcerizer.exprs import call as calling
from jaxsight.sourcerizer.fixed import checks
from jaxsight.sourcerizer.inlining import handled, inlined
from jaxsight.sourcerizer.module import (
    Assign,
    Function,
    Line,
    Raw,
    Return,
    Statement,
    With,
    lines,
    roots,
)
from jaxsight.sourcerizer.options import Constants, Options, Style
from jaxsight.sourcerizer.remarks import with_sources
from jaxsight.sourcerizer.results import pytree
from jaxsight.sourcerizer.source import Source
from jaxsight.sourcerizer.whole import jitted
from jaxsight.sourcerizer.writer import Placeholder, Writer

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """A module that defines a function, and what there is to know of it."""

    text: str
    name: str
    lines: tuple[Line, ...]
    """The text's lines with the equations that they stand for."""
    placeholders: tuple[Placeholder, ...]
    """What the written function takes as keyword arguments besides, because no text can hold it."""
    stored: dict[str, Any]
    """Arrays that are not in the text, by name: for the companion file, or for arguments."""
    bound: tuple[str, ...]
    """Primitives that only `Primitive.bind` could write, once for each equation."""
    equations: int
    """Equations written, each shared function's once."""
    inlines: bool = False
    """Whether jitted functions were written in place of their calls, which makes it another jaxpr."""
    constants: Constants = "inline"
    """Where what is stored goes."""

    @property
    def passed(self) -> dict[str, Any]:
        """What the caller of the written function passes in, by keyword."""
        given = {placeholder.name: placeholder.value for placeholder in self.placeholders}
        return given | (self.stored if self.constants == "argument" else {})

    @property
    def source(self) -> Source:
        """The text, with what is not in it."""
        return Source(self.text, self.stored if self.constants == "npz" else {}, self.passed)


def sourcerize(
    function: Callable[..., Any],
    *,
    style: Style = "lax",
    name: str | None = None,
    constants: Constants = "inline",
    shapes: bool = False,
    sources: bool = False,
    inline: bool = False,
    scopes: bool = False,
) -> Callable[..., Source]:
    """A function that takes `function`'s arguments (arrays or `jax.ShapeDtypeStruct`s) and gives the text of a Python module (a `Source`, which is a string).

    The module defines a function of the same name and signature, which traces to the same jaxpr; it imports `jax`, `numpy` and what the
    user's own code needs, and uses no private API.

    Args:
        style: `"lax"` spells each equation through `jax.lax`, `"pretty"` as people write.
        name: the written function's name, if not the original's.
        constants: where arrays go that are not regular: `"inline"` puts them into the text, compressed, and refuses more than a
            mebibyte; `"npz"` reads them from a file beside the module, which `Source.save` writes; `"argument"` makes them arguments,
            which `Source.passed` holds.
        shapes: a comment with dtype and shape on each line.
        sources: the user's source as a comment wherever it changes.
        inline: writes the inside of jitted functions in place of calls. That is another jaxpr; it is the same one but for these calls.
        scopes: `jax.named_scope` around what was computed under one, by transformations too.

    Raises:
        Unsourceable: for an equation that cannot be written, naming it and the user's line.
        TooLarge: for an array that the text cannot hold.
    """
    options = Options(style, constants, shapes, sources, inline, scopes)

    def of(*args: Any, **kwargs: Any) -> Source:
        return write(function, args, kwargs, options, name).source

    return of


def write(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options | None = None,
    name: str | None = None,
    traced: Callable[[Any], bool] = signature.is_traced,
    name_of: Callable[[Any], str | None] = lambda var: None,
    fits: Fits | None = None,
) -> Written:
    """As `sourcerize`, with all that is known of the result.

    Args:
        traced: which leaves of arguments may vary; the program is made for the values of the others.
        name_of: what the user called a variable of the program, for those who watch it being made.
        fits: and which types the values of expressions had.
    """
    rules.register()
    options = options or Options()
    if name is not None and not is_identifier(name):
        raise ValueError(f"{name!r} cannot be the name of a function")
    if (called := name or signature.name_of(function)) in spelling.IMPORTS:
        raise ValueError(f"{called!r} is what the text imports: give the function another name")
    call = signature.bind(function, args, kwargs, traced)
    with room_for_nesting():
        jaxpr, shape = jax.make_jaxpr(call.flat, return_shape=True)(
            *(argument.value for argument in call.arguments)
        )
        title = name or signature.name_of(function)
        style = options.style

        def new_writer() -> Writer:
            return Writer(replace(options, style=style), name_of=name_of, fits=fits)

        written = _write(call, jaxpr, shape, new_writer, title)
        if options.style == "pretty" and (why := _parted(written, call, jaxpr)) is not None:
            _log.warning(
                "the pretty style of %s is not the same program (%s): plain style", title, why
            )
            style = "lax"
            written = _write(call, jaxpr, shape, new_writer, title)
        return written


def _parted(written: Written, call: signature.Call, jaxpr: Any) -> Difference | Exception | None:
    """Where a written module is not the program that it was written for."""
    values = [argument.value for argument in call.arguments]
    try:
        made = signature.Call(
            load(written), call.parameters, call.arguments, call.fixed, call.rebuild
        )
        made_jaxpr = jax.make_jaxpr(made.flat)(*values)
        return same_jaxpr(jaxpr, made_jaxpr, through_jits=written.inlines)
    except Exception as error:  # noqa: BLE001 - text that cannot be traced is not the program either
        return error


@nothing_collected()
def _write(
    call: signature.Call,
    jaxpr: Any,
    shape: Any,
    new_writer: Callable[[], Writer],
    name: str,
    apart: bool = False,
) -> Written:
    """Writes a program. Where the function is jitted it has its decorator, unless what is jitted is to stand `apart`."""
    writer = new_writer()
    options = writer.options
    writer.names.keep(name)
    whole = call
    call, others = shadowing.renamed(call)
    program = opened(jaxpr)
    one = None if apart or options.inline else jitted(whole, program)
    if one is not None:
        program = one.program
    scope = writer.scope()
    for parameter in shadowing.bare(call.parameters):
        scope.names.keep(parameter)
    used = {id(var) for var in _read_by(program.jaxpr)}
    for argument, var in zip(call.arguments, program.jaxpr.invars, strict=True):
        if isinstance(argument.expr, Atom):
            scope.write(var, argument.expr)
        elif id(var) in used:
            fresh = scope.names.fresh(argument.name)
            scope.write(var, Atom(fresh))
            scope.body.append(Assign(fresh, argument.expr))
    results = scope.program(program)
    if options.style == "pretty" and one is None:
        scope.body = [*_converted(call, scope.body), *scope.body]
    trees = [(Atom(others.get(name, name)), given) for name, given in _argument_trees(call)]
    value = pytree(jax.tree.structure(shape), results, trees, writer.structure)
    parameters = whole.parameters
    extra = [*writer.placeholders.values()]
    stored = list(writer.stored) if options.constants == "argument" else []
    if one is not None and (extra or stored):
        return _write(whole, jaxpr, shape, new_writer, name, apart=True)
    if extra or stored:
        added = (*(placeholder.name for placeholder in extra), *stored)
        star = () if any(p == "*" or p.startswith("*") for p in parameters) else ("*",)
        double = [p for p in parameters if p.startswith("**")]
        plain = [p for p in parameters if not p.startswith("**")]
        parameters = (*plain, *star, *added, *double)
    passed = [placeholder.name for placeholder in extra]
    writer.functions[:], nested = passing.split(writer.functions, [*passed, *stored])
    refused = checks(call.fixed)
    statements: list[Statement] = [*nested, *refused.statements, *scope.body, Return(value)]
    main = Function(name, parameters, statements)
    main.docstring = passing.explained(
        [
            *((given.name, given.why) for given in extra),
            *((constant, arrays.about(writer.stored[constant])) for constant in stored),
        ],
        refused.explained,
    )
    if others:
        body_name = writer.names.fresh(f"{name}_body")
        writer.functions.append(shadowing.apart(main, body_name, others))
    made_of: list[Statement] = [main] if one is None else one.decorated(main)
    made = tuple(_module(writer, made_of, name, options))
    text = "\n".join(line.text for line in made) + "\n"
    return Written(
        text,
        name,
        made,
        tuple(extra),
        dict(writer.stored),
        tuple(writer.bound),
        writer.equations,
        options.inline,
        options.constants,
    )


def _converted(call: signature.Call, body: list[Statement]) -> list[Statement]:
    """Makes arrays of arguments that are none of JAX's: Python and NumPy would compute with them in their own way.

    Those that are named in the body are changed there; what is given is for parameters.
    """
    used = handled(body)
    made: list[Statement] = []
    for argument in call.arguments:
        if isinstance(argument.value, (jax.Array, jax.ShapeDtypeStruct)):
            continue
        if isinstance(argument.expr, Atom):
            if argument.expr.text in used:
                made.append(Assign(argument.expr.text, _array(argument.expr)))
            continue
        for statement in body:
            if (
                isinstance(statement, Assign)
                and statement.value is argument.expr
                and statement.targets in used
            ):
                statement.value = _array(argument.expr)
    return made


def _array(expr: Expr) -> Expr:
    return calling("jnp.asarray", expr)


def _read_by(jaxpr: Any) -> list[Any]:
    return [
        atom
        for atoms in (
            jaxpr.outvars,
            *(equation.invars for equation in live(jaxpr.outvars, jaxpr.eqns)),
        )
        for atom in atoms
        if not is_literal(atom)
    ]


def _argument_trees(call: signature.Call) -> list[tuple[str, Any]]:
    args, kwargs = call.rebuild([argument.value for argument in call.arguments])
    try:
        bound = inspect.signature(call.function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return []
    return [(name, given) for name, given in bound.arguments.items()]


def _module(writer: Writer, main: list[Statement], name: str, options: Options) -> list[Line]:
    head = [f"`{name}`, written by jaxsight for JAX {jax.__version__}."]
    config: Any = jax.config
    if config.jax_enable_x64:
        head.append("Holds with jax_enable_x64 on.")
    else:
        head.append("Holds with jax_enable_x64 off, JAX's default.")
    inner: list[Statement] = [*writer.functions, *main]
    if options.style == "pretty" and not options.shapes:
        inner = inlined(inner)
    if options.sources:
        inner = with_sources(inner)
    rest: list[Statement] = []
    if writer.packed:
        inner.insert(0, Raw(["", "", *arrays.UNPACK]))
        for constant, packed in writer.packed:
            rest.append(Raw(arrays.definition(constant, packed)))
    if options.constants == "npz" and writer.stored:
        rest.extend(_companion(writer))
    rest.extend(writer.made)
    core = [*writer.constants, *inner, *rest]
    written = list(lines(core, before=Raw([])))
    imports = _imports("\n".join(line.text for line in written), writer)
    gap = [""] if imports or writer.constants else []  # functions bring their own
    under = [""] if imports and writer.constants else []
    top = ['"""' + head[0], "", *head[1:], '"""', *gap, *imports, *under]
    return [*map(Line, top), *written]


def _companion(writer: Writer) -> list[Statement]:
    """Reads the stored arrays from the file of the module's name beside it."""
    reading: list[Statement] = []
    for name, held in writer.stored.items():
        stored = Index(Atom("_stored"), (spelling.text(name),))
        reading.append(Assign(name, arrays.read_back(stored, held)))
    opened_ = Atom('np.load(Path(__file__).with_suffix(".npz")) as _stored')
    return [With(opened_, reading)]


def _imports(text: str, writer: Writer) -> list[str]:
    found = roots(text)
    standard = [
        f"import {module}" for module in ("base64", "zlib") if module in found and writer.packed
    ]
    if "Path" in found and writer.stored:
        standard.append("from pathlib import Path")
    short = [line for name, line in spelling.IMPORTS.items() if name in found]
    full = {
        f"import {module}"
        for path, module in spelling.modules.items()
        if module.partition(".")[0] in found and re.search(rf"(?<![\w.]){re.escape(path)}\b", text)
    }
    groups = [standard, _joined(sorted({*short, *full}, key=_import_order))]
    lines_: list[str] = []
    for group in groups:
        lines_ += ([""] if lines_ and group else []) + group
    return lines_


def _import_order(line: str) -> tuple[bool, str, str]:
    """As import sorters have it: `import` before `from`, each by module."""
    words = line.split()
    return words[0] == "from", words[1], line


def _joined(imports: list[str]) -> list[str]:
    """Sorted imports with one line for all that comes from one module."""
    joined: list[str] = []
    for line in imports:
        module, found, name = line.partition(" import ")
        if found and joined and joined[-1].startswith(f"{module} import "):
            joined[-1] += f", {name}"
        else:
            joined.append(line)
    return joined


def check(
    written: Written, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Difference | None:
    """Executes a written module and compares its function's jaxpr with the original's. None: they are the same."""
    made = load(written)
    call = signature.bind(function, args, kwargs)
    values = [argument.value for argument in call.arguments]
    with room_for_nesting():
        ours = jax.make_jaxpr(call.flat)(*values)
        again = signature.Call(made, call.parameters, call.arguments, call.fixed, call.rebuild)
        theirs = jax.make_jaxpr(again.flat)(*values)
        return same_jaxpr(ours, theirs, through_jits=written.inlines)


def load(written: Written) -> Callable[..., Any]:
    """The function that a written module defines, given what its caller passes in and the arrays that it reads."""
    namespace: dict[str, Any] = {"__name__": f"sourcerized_{written.name}"}
    path = f"<sourcerized {written.name}>"
    linecache.cache[path] = (len(written.text), None, written.text.splitlines(True), path)
    code = compile(written.text, path, "exec")
    with tempfile.TemporaryDirectory() if written.source.constants else nullcontext("") as folder:
        if folder:
            namespace["__file__"] = f"{folder}/{written.name}.py"
            written.source.save(namespace["__file__"])
        exec(code, namespace)  # noqa: S102 - its own text
    made: Callable[..., Any] = namespace[written.name]
    return functools.partial(made, **written.passed) if written.passed else made
