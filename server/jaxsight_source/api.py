"""`sourcerize`: writes a function, for its arguments, as the text of a module."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack, cast, overload

import jax

from jaxsight_source import rules
from jaxsight_source.attempts import write_and_prove, write_unproved
from jaxsight_source.calls import signature
from jaxsight_source.calls.signature import BoundCall, TracedCall
from jaxsight_source.errors import NotAProgram, TooLarge, Unsourceable
from jaxsight_source.jaxprs.depth import room_for_nesting
from jaxsight_source.options import SourceKeywords, SourceOptions
from jaxsight_source.primal import primal
from jaxsight_source.programs.given import GivenProgram
from jaxsight_source.programs.lowering import lowers_again
from jaxsight_source.programs.objects import ProgramObject, given_program
from jaxsight_source.stablehlo.program import UnreadableProgram
from jaxsight_source.text.exprs import IMPORTS, is_identifier
from jaxsight_source.text.layout import flat
from jaxsight_source.values import constants
from jaxsight_source.writing.user_names import Fits
from jaxsight_source.writing.writer import NameOf
from jaxsight_source.written import Source, Written

_log = logging.getLogger(__name__)

_UNRUN = SourceOptions(run=False)


# A traced function can be called, too.
@overload
def sourcerize(  # type: ignore[overload-overlap]
    function: ProgramObject,
    options: SourceOptions = ...,
    **changes: Unpack[SourceKeywords],
) -> Source: ...
@overload
def sourcerize(
    function: Callable[..., object],
    options: SourceOptions = ...,
    **changes: Unpack[SourceKeywords],
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
    if (given := given_program(function)) is not None:
        return write_program(given, options).source
    called = cast(Callable[..., object], function)

    def of(*args: object, **kwargs: object) -> Source:
        return _write_for(called, args, kwargs, options).source

    return of


def program_of(value: ProgramObject) -> GivenProgram:
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
    if (given := given_program(value)) is None:
        raise NotAProgram(f"expected a program, got {type(value).__name__}")
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
    write_call = write_and_prove if prove else write_unproved
    rules.register()
    name = _valid_name(options.name or signature.name_of(call.function))
    options = replace(options, name=name, derivatives=options.derivatives or "exact")
    if options.derivatives == "primal":
        traced_call = replace(traced_call, jaxpr=primal(traced_call.jaxpr))
    with room_for_nesting():
        if options.constants is not None:
            return write_call(call, traced_call, options, name_of, fits)
        try:
            inline = replace(options, constants="inline")
            return write_call(call, traced_call, inline, name_of, fits)
        except TooLarge:
            argument = replace(options, constants="argument")
            return write_call(call, traced_call, argument, name_of, fits)


def write_program(given: GivenProgram, options: SourceOptions = _UNRUN) -> Written:
    """Write a program that was traced already; return the text with its metadata."""
    options = replace(options, name=_valid_name(options.name or given.name))
    if options.style == "pretty" and given.readable is not None:
        try:
            written = _write_given(given.readable(), options)
        except (UnreadableProgram, Unsourceable) as error:
            message = "%s is written without calls of library functions: %s"
            _log.info(message, options.name, error)
        else:
            if "stablehlo" in written.as_stablehlo:
                return written
    return _write_given(given, options)


def _write_given(given: GivenProgram, options: SourceOptions) -> Written:
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
