"""`sourcerize`: writes a function, for its arguments, as the text of a module."""

from __future__ import annotations

import functools
import linecache
import logging
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight.interpreters.compat.staging import (
    abstract,
    is_ref,
    opened,
    stage,
)
from jaxsight.interpreters.depth import room_for_nesting
from jaxsight.interpreters.same.comparison import same_jaxpr
from jaxsight.interpreters.same.difference import Difference
from jaxsight.interpreters.same.liveness import read_by_live
from jaxsight.sourcerizer import rules
from jaxsight.sourcerizer.calls import signature
from jaxsight.sourcerizer.calls.jitted_function import jitted
from jaxsight.sourcerizer.calls.static_guards import checks
from jaxsight.sourcerizer.folding.repeats import repeats_of
from jaxsight.sourcerizer.gc_pause import nothing_collected
from jaxsight.sourcerizer.options import Constants, Derivatives, Options, Style
from jaxsight.sourcerizer.passes import name_clashes as shadowing
from jaxsight.sourcerizer.passes import placeholders as passing
from jaxsight.sourcerizer.passes.gathering import gathered
from jaxsight.sourcerizer.passes.inlining import handled, inlined
from jaxsight.sourcerizer.passes.source_comments import with_sources
from jaxsight.sourcerizer.primal import equations_of, primal
from jaxsight.sourcerizer.proof.running import NOT_RUN, Differs, Ran, is_number_type, run_beside
from jaxsight.sourcerizer.source import Source
from jaxsight.sourcerizer.text.exprs import Atom, Call, Expr, Index, is_identifier, is_number
from jaxsight.sourcerizer.text.exprs import call as calling
from jaxsight.sourcerizer.text.layout import flat as text_of
from jaxsight.sourcerizer.text.paths import path_of
from jaxsight.sourcerizer.text.statements import (
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
from jaxsight.sourcerizer.values import constants as arrays
from jaxsight.sourcerizer.values import spelling
from jaxsight.sourcerizer.values.pytrees import pytree
from jaxsight.sourcerizer.writing.user_names import Fits
from jaxsight.sourcerizer.writing.writer import (
    LEAST_REFUSED,
    LONGEST_RULES,
    MOST_LINES,
    NameOf,
    NotTheSame,
    Placeholder,
    Scope,
    TooLong,
    Unsourceable,
    Writer,
)

_log = logging.getLogger(__name__)

_LONGEST = 400
"""The maximum length of a difference in a message, in characters; jaxprs may have thousands."""


@dataclass(frozen=True, slots=True)
class Written:
    """A module that defines a function, with its metadata."""

    text: str
    name: str
    lines: tuple[Line, ...]
    """The lines of the text, each with its equations."""
    placeholders: tuple[Placeholder, ...]
    """Additional keyword arguments of the written function, for values without an expression."""
    stored: dict[str, Any]
    """Arrays that are not in the text, by name: in the companion file, or passed as arguments."""
    bound: tuple[str, ...]
    """Names of the primitives that are written with `Primitive.bind`, once for each equation."""
    equations: int
    """Number of equations written; those of a shared function count once."""
    inlines: bool = False
    """Whether calls of jitted functions were inlined, which changes the jaxpr."""
    constants: Constants = "inline"
    """Where stored arrays are kept."""
    derivatives: Derivatives = "exact"
    """Which of the original's derivative rules it has."""
    shares: bool = False
    """Whether repeated code was moved into shared functions."""
    ran: Ran = NOT_RUN
    """How it was run and compared with the original."""

    def counterpart(self, jaxpr: Any) -> Any:
        """Return the jaxpr to compare with: the original's, or its primal for `"primal"`."""
        return primal(jaxpr) if self.derivatives == "primal" else jaxpr

    def differs(self, counterpart: Any, made: Any) -> Difference | None:
        """Return the first difference of the written function's jaxpr from its counterpart.

        Return None if they are the same program.
        """
        orders = Options(derivatives=self.derivatives).orders
        return same_jaxpr(counterpart, made, through_jits=self.inlines, orders=orders)

    @property
    def passed(self) -> dict[str, Any]:
        """The values that a caller passes to the written function by keyword."""
        given = {placeholder.name: placeholder.value for placeholder in self.placeholders}
        return given | (self.stored if self.constants == "argument" else {})

    @property
    def source(self) -> Source:
        """The text, with the values that it does not contain."""
        stored = self.stored if self.constants == "npz" else {}
        proofs = ("jaxpr", *self.ran.ways)
        return Source(self.text, stored, self.passed, proofs, self.ran.skipped)


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
    derivatives: Derivatives = "exact",
    run: bool = True,
) -> Callable[..., Source]:
    """Return a function that takes `function`'s arguments and returns it as source text.

    The arguments are arrays or `jax.ShapeDtypeStruct`s; the text is that of a Python module (a
    `Source`, which is a string). The module defines a function of the same name and signature,
    which traces to the same jaxpr; it imports `jax`, `numpy` and whatever the user's own code
    needs, and uses no private API.

    Args:
        style: `"lax"` spells each equation with `jax.lax`, `"pretty"` as people would write it.
        name: the written function's name; by default, the original's.
        constants: where irregular arrays are kept: `"inline"` embeds them in the text, compressed,
            up to 1 MiB; `"npz"` reads them from a file next to the module, which `Source.save`
            writes; `"argument"` makes them arguments, which `Source.passed` holds.
        shapes: add a comment with dtype and shape to each line.
        sources: add the user's source as a comment wherever its line changes.
        inline: inline jitted functions. The jaxpr is then the same except for these calls.
        scopes: add `jax.named_scope` around equations that were traced under one, also if a
            transformation created them.
        derivatives: which rules of `custom_jvp` and `custom_vjp` functions are written: `"exact"`
            those of three orders, `"first"` those of one, and `"primal"` none: calls of such
            functions are inlined, so the written function returns the same values but does not keep
            the original's derivatives.
        run: also run the text and the original, if the program is small and has no effects:
            eagerly, under `jit` and under `grad`. `Source.proofs` lists the checks.

    Raises:
        Unsourceable: if an equation cannot be written, with the user's line, or if the text is not
            the same program.
        TooLarge: if an array is too large for the text.
        TooLong: if the text has more than three lines per equation (and more than 3,000).
    """
    options = Options(
        style, constants, shapes, sources, inline, scopes, derivatives=derivatives, run=run
    )

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
    name_of: NameOf | None = None,
    fits: Fits | None = None,
) -> Written:
    """Write a function as `sourcerize` does; return the text with its metadata.

    Args:
        traced: which leaves of arguments are traced; the values of the others are built in.
        name_of: returns the user's name of a variable of the program, if tracing recorded names.
        fits: returns whether an expression of the user's had values of a type.
    """
    rules.register()
    options = options or Options()
    if name is not None and not is_identifier(name):
        raise ValueError(f"{name!r} is not a valid function name")
    title = name or signature.name_of(function)
    if title in spelling.IMPORTS:
        raise ValueError(f"{title!r} is a name that the text imports; choose another name")
    call = signature.bind(function, args, kwargs, traced)
    with room_for_nesting():
        traced_call = _traced(call)
        if options.derivatives == "primal":
            traced_call = replace(traced_call, jaxpr=primal(traced_call.jaxpr))
        equations = equations_of(traced_call.jaxpr)
        shares = True
        for chosen in _attempts(options):
            if chosen.folds and not chosen.share and not shares:
                continue

            def new_writer(chosen: Options = chosen) -> Writer:
                spelling.modules.clear()
                most = max(equations * LONGEST_RULES, LEAST_REFUSED)
                return Writer(chosen, name_of=name_of, fits=fits, most=most, size=equations)

            try:
                written = _shortest(call, traced_call, new_writer, title)
            except spelling.Unwritable as error:
                if chosen.folds:
                    continue
                raise Unsourceable(title, str(error)) from error
            except (KeyError, Unsourceable) as error:
                if not chosen.folds:
                    raise
                _log.info("%s is not folded: %s", title, error)
                shares = False
                continue
            shares = written.shares
            why = _parted(written, call, traced_call.jaxpr)
            if why is None and options.run:
                try:
                    written = replace(written, ran=_ran(written, call, traced_call))
                except Differs as error:
                    why = error
            if why is None:
                return _of_length(written, equations)
            level = logging.INFO if chosen.folds else logging.WARNING
            _log.log(
                level, "the %s style of %s is not the same program: %s", chosen.style, title, why
            )
    short = textwrap.shorten(str(why), _LONGEST, placeholder=" …")
    raise NotTheSame(title, f"the generated text is not the same program: {short}")


def _attempts(options: Options) -> Iterator[Options]:
    """Yield the options, then fallbacks to try if the text is not the same program."""
    yield options
    if options.folds:
        if options.share:
            yield replace(options, share=False)
        yield replace(options, fold=False)
    if options.style != "lax":
        yield replace(options, style="lax")


def _shortest(
    call: signature.Call, traced_call: _Traced, new_writer: Callable[[], Writer], name: str
) -> Written:
    """Write a program; move repeated code into functions if that makes a long text shorter."""
    writers: list[Writer] = []

    def noted() -> Writer:
        writers.append(new_writer())
        return writers[-1]

    written = _write(call, traced_call, noted, name)
    first = writers[-1]
    is_long = len(written.lines) >= LEAST_SHARED
    if not (is_long and first.options.folds and first.options.share):
        return written
    repeats = repeats_of(first.programs, first.known)
    if not repeats.by_first:
        return written

    def again() -> Writer:
        made = new_writer()
        made.known, made.repeats = first.known, repeats
        return made

    try:
        shorter = _write(call, traced_call, again, name)
    except (KeyError, Unsourceable, spelling.Unwritable) as error:
        _log.info("what %s repeats is not shared: %s", name, error)
        return written
    if len(shorter.lines) >= len(written.lines):
        return written
    return replace(shorter, shares=True)


LEAST_SHARED = 300
"""The minimum number of lines of a text in which repeated code is searched for."""


def _of_length(written: Written, equations: int) -> Written:
    """Return the text; raise `TooLong` if it has far more lines than the program has equations."""
    if len(written.lines) > max(MOST_LINES * equations, LEAST_REFUSED):
        raise TooLong(f"{len(written.lines):,} lines", equations, written.derivatives)
    return written


@dataclass(frozen=True, slots=True)
class _Traced:
    """The program of a call, the tree of its results, and which of them are Python numbers.

    `structure` is a `PyTreeDef`.
    """

    jaxpr: Any
    structure: Any
    numbers: tuple[bool, ...]


def _traced(call: signature.Call) -> _Traced:
    values = [argument.value for argument in call.arguments]
    if any(map(is_ref, values)):
        jax.make_jaxpr(call.flat)(*values)  # raises if a ref is passed twice
    names = [text_of(argument.expr) for argument in call.arguments]
    staged = stage(call.flat, list(map(abstract, values)), call.function, names)
    return _Traced(staged.program, staged.tree, tuple(map(is_number_type, staged.types)))


def _made_call(written: Written, call: signature.Call) -> signature.Call:
    return replace(call, function=load(written))


def _parted(written: Written, call: signature.Call, jaxpr: Any) -> Difference | Exception | None:
    """Return the difference of a written module from its program, or the error that it raises.

    Return None if it is the same program.
    """
    try:
        made = _made_call(written, call)
        avals = [var.aval for var in opened(jaxpr).jaxpr.invars]
        return written.differs(jaxpr, stage(made.flat, avals).program)
    except Exception as error:  # noqa: BLE001 - text that cannot be traced is not the program
        return error


def _ran(written: Written, call: signature.Call, traced_call: _Traced) -> Ran:
    """Run the text and the original; raise `Differs` if their results differ."""
    values = [argument.value for argument in call.arguments]
    made = _made_call(written, call)
    return run_beside(
        made.flat,
        call.flat,
        traced_call.jaxpr,
        values,
        traced_call.numbers,
        derivatives=written.derivatives != "primal",
    )


@nothing_collected()
def _write(
    call: signature.Call,
    traced_call: _Traced,
    new_writer: Callable[[], Writer],
    name: str,
    apart: bool = False,
) -> Written:
    """Write a program.

    A jitted function keeps its decorator, unless it is to be written `apart`, as a shared function.
    """
    writer = new_writer()
    options = writer.options
    writer.names.keep(name)
    whole = call
    call, others = shadowing.renamed(call)
    program = opened(traced_call.jaxpr)
    one = None if apart or options.inline else jitted(whole, program)
    if one is not None:
        program = one.program
    scope = writer.scope()
    for parameter in shadowing.bare(call.parameters):
        scope.names.keep(parameter)
    used = read_by_live(program.jaxpr.outvars, program.jaxpr.eqns)
    for argument, var in zip(call.arguments, program.jaxpr.invars, strict=True):
        if isinstance(argument.expr, Atom):
            scope.write(var, argument.expr)
        elif id(var) in used:
            fresh = scope.names.fresh(argument.name)
            scope.write(var, Atom(fresh))
            if isinstance(argument.value, (jax.Array, jax.ShapeDtypeStruct)):
                _remember(writer, scope, var, argument.expr)
            scope.body.append(Assign(fresh, argument.expr))
    results = scope.program(program)
    if one is None:
        pairs = zip(results, traced_call.numbers, strict=True)
        results = [_as_number(given) if plain else _as_array(given) for given, plain in pairs]
    if options.style == "pretty" and one is None:
        scope.body = [*_converted(call, scope.body), *scope.body]
    given = call.bound.arguments.items()
    trees = [(Atom(others.get(name, name)), value) for name, value in given]
    value = pytree(traced_call.structure, results, trees, writer.structure)
    if options.folds:
        value = gathered(value, writer.sizes)
    parameters = whole.parameters
    extra = [*writer.placeholders.values()]
    stored = list(writer.stored) if options.constants == "argument" else []
    if one is not None and (extra or stored):
        return _write(whole, traced_call, new_writer, name, apart=True)
    if extra or stored:
        added = (*(placeholder.name for placeholder in extra), *stored)
        star = () if any(p == "*" or p.startswith("*") for p in parameters) else ("*",)
        double = [p for p in parameters if p.startswith("**")]
        plain = [p for p in parameters if not p.startswith("**")]
        parameters = (*plain, *star, *added, *double)
    passed = [placeholder.name for placeholder in extra]
    nested: list[Statement] = []
    if passed or stored:
        writer.functions[:], nested = passing.split(writer.functions, [*passed, *stored])
    refused = checks(call.fixed)
    statements: list[Statement] = [*nested, *refused.statements, *scope.body, Return(value)]
    main = Function(name, parameters, statements)
    if extra or stored or refused.explained:
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
        options.derivatives,
    )


def _remember(writer: Writer, scope: Scope, var: Any, expr: Expr) -> None:
    """Record the path that reads a part of an argument, and minimum lengths of the lists on it."""
    path = path_of(expr)
    if path is None:
        return
    writer.paths[id(var)] = scope.paths[id(var)] = path
    for place, (kind, text) in enumerate(path.steps):
        if kind == "[" and text.isdecimal():
            collection = (path.root, *path.steps[:place])
            writer.sizes[collection] = max(writer.sizes.get(collection, 0), int(text) + 1)


def _converted(call: signature.Call, body: list[Statement]) -> list[Statement]:
    """Return assignments that convert arguments to JAX arrays, for parameters.

    Python and NumPy would compute with numbers and NumPy arrays in their own way. Parts of
    arguments that are assigned in the body are converted there.
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


def _as_number(expr: Expr) -> Expr:
    """Return the expression of a result that the original returns as a Python number.

    `True` has no weak type.
    """
    match expr:
        case Call(Atom("np.bool_"), (Atom(text),)):
            return Atom(text)
        case _:
            return expr


def _as_array(expr: Expr) -> Expr:
    """Return the expression of a result that the original returns as an array.

    Numbers of NumPy and Python are not arrays.
    """
    if not is_number(expr):
        return expr
    match expr:
        case Call(Atom(text), items) if text.startswith("np.") and hasattr(jnp, text[3:]):
            return Call(Atom(f"jnp.{text[3:]}"), items)
        case _:
            return _array(expr)


def _array(expr: Expr) -> Expr:
    return calling("jnp.asarray", expr)


def _module(writer: Writer, main: list[Statement], name: str, options: Options) -> list[Line]:
    head = [f"`{name}`, written by jaxsight for JAX {jax.__version__}."]
    config: Any = jax.config
    if config.jax_enable_x64:
        head.append("Holds with jax_enable_x64 on.")
    else:
        head.append("Holds with jax_enable_x64 off, JAX's default.")
    if options.derivatives == "primal":
        head.append("Does not keep derivatives: custom_jvp and custom_vjp rules are omitted.")
    elif options.derivatives == "first":
        head.append("Keeps first-order derivatives only, where there are custom rules.")
    inner: list[Statement] = [*writer.functions, *main]
    if options.style == "pretty" and not options.shapes:
        inner = inlined(inner, name)
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
    written = lines(core, before=Raw([]))
    imports = _imports("\n".join(line.text for line in written), writer)
    gap = [""] if imports or writer.constants else []  # functions bring their own empty lines
    under = [""] if imports and writer.constants else []
    top = ['"""' + head[0], "", *head[1:], '"""', *gap, *imports, *under]
    return [*map(Line, top), *written]


def _companion(writer: Writer) -> list[Statement]:
    """Return statements that read the stored arrays from the file next to the module."""
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
    """Return the sort key of import sorters: `import` before `from`, each by module."""
    words = line.split()
    return words[0] == "from", words[1], line


def _joined(imports: list[str]) -> list[str]:
    """Merge sorted `from` imports of the same module into one line."""
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
    """Execute a written module and compare its function's jaxpr with the original's.

    Return the first difference, or None if they are the same program.
    """
    made = load(written)
    call = signature.bind(function, args, kwargs)
    values = [argument.value for argument in call.arguments]
    with room_for_nesting():
        ours = jax.make_jaxpr(call.flat)(*values)
        theirs = jax.make_jaxpr(replace(call, function=made).flat)(*values)
        return written.differs(written.counterpart(ours), theirs)


def load(written: Written) -> Callable[..., Any]:
    """Return the function that a written module defines.

    The arguments in `written.passed` are bound, and stored arrays are read from a temporary file.
    """
    namespace: dict[str, Any] = {"__name__": f"sourcerized_{written.name}"}
    path = f"<sourcerized {written.name}>"
    linecache.cache[path] = (len(written.text), None, written.text.splitlines(True), path)
    code = compile(written.text, path, "exec")
    reads = written.constants == "npz" and bool(written.stored)
    with tempfile.TemporaryDirectory() if reads else nullcontext("") as folder:
        if folder:
            namespace["__file__"] = f"{folder}/{written.name}.py"
            written.source.save(namespace["__file__"])
        exec(code, namespace)  # noqa: S102 - its own text
    made: Callable[..., Any] = namespace[written.name]
    return functools.partial(made, **written.passed) if written.passed else made
