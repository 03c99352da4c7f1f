"""`sourcerize`: writes a function, for its arguments, as the text of a module."""

from __future__ import annotations

import contextlib
import gc
import linecache
import logging
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack, cast, overload

import jax
import jax.numpy as jnp

from jaxsight_source import errors
from jaxsight_source.calls import signature
from jaxsight_source.calls.signature import BoundCall, TracedCall
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.compat.staging import stage
from jaxsight_source.jaxprs.base import import_modules, room_for_nesting
from jaxsight_source.module_text import write_module
from jaxsight_source.options import ProgramText, SourceKeywords, SourceOptions
from jaxsight_source.programs.bare import BareProgram, Stablehlo
from jaxsight_source.programs.contents import ProgramObject, bare_program, content_of, of_content
from jaxsight_source.proof.running import Differs, run_beside
from jaxsight_source.readable import primal, readable
from jaxsight_source.stablehlo.places import read_from
from jaxsight_source.stablehlo.program import UnreadableProgram
from jaxsight_source.stablehlo.proof import prove
from jaxsight_source.text.exprs import IMPORTS, is_identifier
from jaxsight_source.text.layout import flat
from jaxsight_source.values import constants
from jaxsight_source.writing.user_names import Fits
from jaxsight_source.writing.writer import NameOf, Original
from jaxsight_source.written import Source, Written, file_of, load

_log = logging.getLogger(__name__)

_UNRUN = SourceOptions(run=False)

MOST_LINES = 3
"""The maximum number of lines of text for each equation of a program.

A choice: an equation is a line, and a small function of few equations adds its `def` and `return`,
so less would refuse programs of small functions; more would return text that nobody reads, instead
of an error that names the option to change.
"""

LEAST_REFUSED = 3000
"""The number of lines that are allowed for any program, however few its equations.

A choice: one call of a library function may stand for many rules; this is still a readable file.
"""

LONGEST_RULES = 8
"""The maximum number of equations written, including those of rules, for each equation of a
program. It ends a text that would be too long in any case, before all of it is written.
"""

_LONGEST = 400
"""The maximum length of a difference in a message, in characters; jaxprs may have thousands."""


# A traced function can be called, too.
@overload
def sourcerize(  # type: ignore[overload-overlap]
    function: ProgramObject, options: SourceOptions = ..., **changes: Unpack[SourceKeywords]
) -> Source: ...
@overload
def sourcerize(
    function: Callable[..., object], options: SourceOptions = ..., **changes: Unpack[SourceKeywords]
) -> Callable[..., Source]: ...
def sourcerize(
    function: Callable[..., object] | ProgramObject,
    options: SourceOptions = SourceOptions(),  # noqa: B008 - frozen
    **changes: Unpack[SourceKeywords],
) -> Callable[..., Source] | Source:
    """Return a function that takes `function`'s arguments and returns it as source text.

    The arguments are arrays or `jax.ShapeDtypeStruct`s, or Python numbers: their values are built
    in if the function needs them while it is traced, such as the size of an array. The text is that
    of a Python module (a `Source`, which is a string). The module defines a function of the same
    name and signature, which traces to the same jaxpr; it imports `jax`, `numpy` and whatever the
    user's own code needs, and uses no private API.

    >>> source = sourcerize(lambda x: jnp.exp(x) * 2, style="pretty", name="f")(1.0)
    >>> print(source[source.index("def f") :])
    def f(x):
        return jnp.exp(x) * 2.0
    <BLANKLINE>
    >>> source.proofs
    ('jaxpr', 'eagerly', 'under jit', 'under grad')

    Return the text itself for a `ProgramObject`, which has its arguments' types:

    >>> source = sourcerize(jax.make_jaxpr(jnp.sin)(1.0))

    Args:
        function: a function, or a program that was traced, lowered or exported already.
        options: how to write it.
        changes: some of the options, by keyword; `SourceOptions` explains each.

    Raises:
        Unsourceable: if an equation cannot be written, with the user's line, or if the text is not
            the same program.
        TooLarge: if an array is too large for the text.
        UnreadableProgram: if a file or StableHLO cannot be read.
        TooLong: if the text has more than three lines per equation (and more than 3,000).
    """
    options = replace(options, **changes)
    if (given := bare_program(function)) is not None:
        return write_program(given, options).source
    called = cast(Callable[..., object], function)

    def of(*args: object, **kwargs: object) -> Source:
        return _write_for(called, args, kwargs, options).source

    return of


def program_of(value: ProgramObject) -> BareProgram:
    """Return a program from anything that has one.

    That is a jaxpr, a stage of `jax.jit`, an `Exported`, a file of StableHLO, HLO or a serialized
    `Exported`, its content, or text of StableHLO or HLO. `sourcerize` takes them, too.

    >>> program = program_of(jax.jit(jnp.sin).lower(1.0))
    >>> print(program.text("jaxpr"))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    <BLANKLINE>

    Raises:
        NotAProgram: if it is something else, such as a function.
        TypeError: if it is incomplete, such as a jaxpr without its constants.
        UnreadableProgram: if a file or text cannot be read.
    """
    if (given := bare_program(value)) is None:
        raise errors.NotAProgram(f"expected a program, got {type(value).__name__}")
    return given


def _write_for(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    options: SourceOptions,
) -> Written:
    """Write a function, with the values of numbers built in if it needs them to be traced.

    Integers are more likely to be sizes, axes and flags than other numbers.
    """
    try:
        return write(function, args, kwargs, options)
    except (TypeError, IndexError, ValueError):  # JAX's errors about traced numbers
        leaves = jax.tree.leaves((args, kwargs))
        for numbers in (int, (int, float, complex)):
            if not any(isinstance(leaf, numbers) for leaf in leaves):
                continue

            def is_traced(leaf: object, numbers: Any = numbers) -> bool:
                return signature.is_traced(leaf) and not isinstance(leaf, numbers)

            with contextlib.suppress(Exception):  # whatever it is, the first is about the call
                return write(function, args, kwargs, options, is_traced)
        raise


def write(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    options: SourceOptions = _UNRUN,
    is_traced: Callable[[object], bool] = signature.is_traced,
) -> Written:
    """Write a function as `sourcerize` does; return the text with its metadata.

    Args:
        is_traced: which leaves of arguments are traced; the values of the others are built in.
    """
    return write_traced(*traced(function, args, kwargs, is_traced), options)


def traced(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    is_traced: Callable[[object], bool] = signature.is_traced,
) -> tuple[BoundCall, TracedCall]:
    """Trace a call of a function, for `write_traced`.

    Raises:
        Untraceable: if it is not a function of arrays. Its own errors are raised, too.
    """
    call = signature.bind(function, args, kwargs, is_traced)
    return call, signature.trace(call)


def write_traced(
    call: BoundCall,
    traced_call: TracedCall,
    options: SourceOptions = _UNRUN,
    name_of: NameOf | None = None,
    fits: Fits | None = None,
    *,
    prove: bool = True,
) -> Written:
    """Write a call that was traced; return the text with its metadata.

    Args:
        name_of: returns the user's name of a variable of the program, if tracing recorded names.
        fits: returns whether an expression of the user's had values of a type.
        prove: whether to compare the text with the program.
    """
    write_call = _write_and_prove if prove else write_module
    import_modules("jaxsight_source.rules")
    name = _valid_name(options.name or signature.name_of(call.function))
    options = replace(options, name=name, derivatives=options.derivatives or "exact")
    if options.derivatives == "primal":
        traced_call = replace(traced_call, jaxpr=primal(traced_call.jaxpr))
    with room_for_nesting():
        size = equation_count(traced_call.jaxpr)
        original = Original(size, max(size * LONGEST_RULES, LEAST_REFUSED), name_of, fits)
        if options.constants is None:
            with contextlib.suppress(errors.TooLarge):
                inline = replace(options, constants="inline")
                return write_call(call, traced_call, inline, original)
            options = replace(options, constants="argument")
        return write_call(call, traced_call, options, original)


def write_program(given: BareProgram, options: SourceOptions = _UNRUN) -> Written:
    """Write a program that was traced already; return the text with its metadata."""
    options = replace(options, name=_valid_name(options.name or given.name))
    if options.style == "pretty" and given.readable is not None:
        try:
            written = _write_given(given.readable(), options)
        except (UnreadableProgram, errors.Unsourceable) as error:
            message = "%s is written without calls of library functions: %s"
            _log.info(message, options.name, error)
        else:
            if "stablehlo" in written.as_stablehlo:
                return written
    return _write_given(given, options)


def _write_given(given: BareProgram, options: SourceOptions) -> Written:
    with room_for_nesting(), given.types():
        call = given.call()
        written = write_traced(call, given.traced(), options)
        return lowers_again(written, call, given.origin) if given.origin is not None else written


def expression_of(array: object) -> str:
    """Return an expression that generates an array, such as `jnp.arange(8)`; empty if none does."""
    expression = constants.spelled(array)
    return flat(expression) if expression is not None else ""


def _valid_name(name: str) -> str:
    if not is_identifier(name):
        raise ValueError(f"{name!r} is not a valid function name")
    if name in IMPORTS:
        raise ValueError(f"{name!r} is a name that the text imports; choose another name")
    return name


def _write_and_prove(
    call: BoundCall, traced_call: TracedCall, options: SourceOptions, original: Original
) -> Written:
    """Write the program of a call, with simpler options if the text is not the same program.

    Raises:
        Unsourceable: if no text is the same program.
        TooLong: if the text is too long for its program.
    """
    name = options.name
    pretty_call = replace(traced_call, jaxpr=readable(traced_call.jaxpr))
    why = ""
    for chosen in _attempts(options):
        chosen_call = pretty_call if chosen.style == "pretty" else traced_call
        try:
            with _nothing_collected():
                written = write_module(call, chosen_call, chosen, original)
                written, written_call = _compared(written, call)
            if options.run:
                ran = run_beside(
                    written_call.flat,
                    call.flat,
                    traced_call.jaxpr,
                    [argument.value for argument in call.arguments],
                    traced_call.numbers,
                    derivatives=options.derivatives != "primal",
                )
                written = replace(written, ran=ran)
        except Differs as error:
            why = textwrap.shorten(str(error), _LONGEST, placeholder=" …")
            level = logging.INFO if chosen.folds else logging.WARNING
            message = "the %s style of %s is not the same program: %s"
            _log.log(level, message, chosen.style, name, error)
            continue
        except errors.Unwritable as error:
            if chosen.folds:
                continue
            raise errors.Unsourceable(name, str(error)) from error
        except (KeyError, errors.Unsourceable) as error:
            if not chosen.folds:
                raise
            _log.info("%s is not folded: %s", name, error)
            continue
        finally:
            linecache.cache.pop(file_of(name), None)
        if len(written.lines) > max(MOST_LINES * original.size, LEAST_REFUSED):
            raise errors.TooLong(
                f"{len(written.lines):,} lines", original.size, options.derivatives
            )
        return written
    raise errors.NotTheSame(name, f"the generated text is not the same program: {why}")


def _attempts(options: SourceOptions) -> Iterator[SourceOptions]:
    """Yield the options, then fallbacks to try if the text is not the same program."""
    yield options
    if options.folds:
        yield replace(options, fold=False)
    if options.style != "lax":
        yield replace(options, style="lax")


def _compared(written: Written, call: BoundCall) -> tuple[Written, BoundCall]:
    """Return a module that is the same program, with that program, and its function's call.

    Raises:
        Differs: it is another program, or cannot be traced.
    """
    try:
        written_call = replace(call, function=load(written))
        avals = [var.aval for var in written.program.jaxpr.invars]
        again = stage(written_call.flat, avals).program
        difference = written.differs(again)
    except Exception as error:
        raise Differs(str(error)) from error
    if difference is not None:
        raise Differs(str(difference))
    return replace(written, again=again), written_call


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Disable the cyclic garbage collector inside the block.

    For work that keeps nearly all the objects it creates: each collection traverses all of them,
    and the program from which they are made, which for a large program takes longer than the work.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def lowers_again(written: Written, call: BoundCall, origin: Stablehlo) -> Written:
    """Return a text with how it was compared with its StableHLO.

    A text that lowers to other StableHLO is accepted if both run with the same bits: there are
    several ways to lower a computation. What was converted from HLO has operations that JAX does
    not lower to, and is accepted as the same jaxpr if it cannot run.

    Raises:
        NotTheSame: neither the StableHLO nor the bits are the same.
    """
    again = replace(call, function=load(written))
    types = [argument.value for argument in call.arguments]

    def function(*arrays: object) -> object:
        leaves = [*types]
        for position, array in zip(origin.kept, arrays, strict=True):
            leaves[position] = array
        return again.flat(*map(_filled, leaves))

    same = prove(origin.artifact, origin.program, function)
    other_bits = "other bits" in same.not_run
    if same.difference and not same.ran and (origin.is_exact or other_bits):
        raise errors.NotTheSame(written.name, f"other StableHLO: {same.difference}")
    ways = (("stablehlo", not same.difference), ("bits", same.ran))
    return replace(written, as_stablehlo=tuple(way for way, is_so in ways if is_so))


def _filled(leaf: object) -> object:
    """Return zeros for an argument that the program does not take."""
    return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf


def text_of(content: bytes, wanted: Mapping[str, Any]) -> ProgramText:
    """Return a file's program in a language.

    Args:
        content: of the file.
        wanted: `to`, a `ProgramLanguage`; and for Python the `SourceOptions`, and `linked` for the
            lines of StableHLO's text that its lines come from.

    Raises:
        UnreadableProgram: it contains none.
        Unsourceable: it cannot be written.
    """
    given = of_content(content, linked="linked" in wanted)
    kind = content_of(content)
    source = kind.value if kind is not None else ""
    equations = equation_count(given.jaxpr)
    opaque: tuple[str, ...] = ()
    if given.origin is not None:
        opaque = tuple(dict.fromkeys(call.target for call in given.origin.program.opaque))
    if wanted["to"] != "python":
        text = given.text(wanted["to"])
        return ProgramText(text, given.name, source, equations, opaque=opaque)
    written = write_program(given, SourceOptions(**wanted["options"]))
    return ProgramText(
        written.text,
        written.name,
        source,
        equations,
        written.source.proofs,
        written.ran.skipped,
        opaque,
        tuple(
            (number, line)
            for number, each in enumerate(written.lines)
            for line in sorted({line for one in each.equations for line in read_from(one)})
        ),
    )
