"""`sourcerize`: writes a function, for its arguments, as the text of a module."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict, Unpack, cast, overload

import jax

from jaxsight_source import rules
from jaxsight_source.attempts import write_and_prove
from jaxsight_source.calls import signature
from jaxsight_source.calls.signature import BoundCall, TracedCall, trace
from jaxsight_source.errors import Unsourceable
from jaxsight_source.jaxprs.depth import room_for_nesting
from jaxsight_source.jaxprs.same.difference import Difference
from jaxsight_source.options import Constants, Derivatives, Options, Style
from jaxsight_source.primal import primal
from jaxsight_source.programs.given import GivenProgram
from jaxsight_source.programs.lowering import lowers_again
from jaxsight_source.programs.objects import ProgramObject, given_program
from jaxsight_source.stablehlo import UnreadableProgram
from jaxsight_source.text.exprs import is_identifier
from jaxsight_source.text.imports import IMPORTS
from jaxsight_source.writing.user_names import Fits
from jaxsight_source.writing.writer import NameOf
from jaxsight_source.written import Source, Written, load

_log = logging.getLogger(__name__)


class _Options(TypedDict, total=False):
    style: Style
    name: str | None
    constants: Constants
    shapes: bool
    sources: bool
    inline: bool
    scopes: bool
    derivatives: Derivatives
    run: bool


# A traced function can be called, too.
@overload
def sourcerize(  # type: ignore[overload-overlap]
    function: ProgramObject, **options: Unpack[_Options]
) -> Source: ...
@overload
def sourcerize(
    function: Callable[..., object], **options: Unpack[_Options]
) -> Callable[..., Source]: ...
def sourcerize(
    function: Callable[..., object] | ProgramObject,
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
) -> Callable[..., Source] | Source:
    """Return a function that takes `function`'s arguments and returns it as source text.

    The arguments are arrays or `jax.ShapeDtypeStruct`s, or Python numbers: their values are built
    in if the function needs them while it is traced, such as the size of an array. The text is that
    of a Python module (a `Source`, which is a string). The module defines a function of the same
    name and signature, which traces to the same jaxpr; it imports `jax`, `numpy` and whatever the
    user's own code needs, and uses no private API.

    Return the text itself for a `ProgramObject`, which has its arguments' types.

    Args:
        style: `"lax"` spells each equation with `jax.lax`, `"pretty"` as people would write it.
        name: the written function's name; by default, the original's.
        constants: where irregular arrays are kept: `"inline"` embeds them in the text, compressed,
            up to 1 MiB; `"npz"` reads them from a file next to the module, which `Source.save`
            writes; `"argument"` makes them arguments, which `Source.passed` holds.
        shapes: add a comment with dtype and shape to each line.
        sources: add the user's source as a comment wherever its line changes.
        inline: inline jitted functions. The jaxpr is then the same except for these calls.
        scopes: add `jax.named_scope` around equations that were traced under one.
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
        UnreadableProgram: if a file or StableHLO cannot be read.
        TooLong: if the text has more than three lines per equation (and more than 3,000).
    """
    options = Options(
        style, constants, shapes, sources, inline, scopes, derivatives=derivatives, run=run
    )

    if (given := given_program(function)) is not None:
        return write_program(given, options, name).source

    called = cast(Callable[..., object], function)

    def of(*args: object, **kwargs: object) -> Source:
        return _write(called, args, kwargs, options, name).source

    return of


def _write(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    options: Options,
    name: str | None,
) -> Written:
    """Write a function, with the values of numbers built in if it needs them to be traced.

    Integers are more likely to be sizes, axes and flags than other numbers.
    """
    try:
        return write(function, args, kwargs, options, name)
    except (TypeError, IndexError, ValueError):  # JAX's errors about traced numbers
        leaves = jax.tree.leaves((args, kwargs))
        for numbers in (int, (int, float, complex)):
            if not any(isinstance(leaf, numbers) for leaf in leaves):
                continue

            def traced(leaf: object, numbers: Any = numbers) -> bool:
                return signature.is_traced(leaf) and not isinstance(leaf, numbers)

            with contextlib.suppress(Exception):  # whatever it is, the first is about the call
                return write(function, args, kwargs, options, name, traced=traced)
        raise


def write(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    options: Options | None = None,
    name: str | None = None,
    traced: Callable[[object], bool] = signature.is_traced,
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
    title = _valid_name(name or signature.name_of(function))
    call = signature.bind(function, args, kwargs, traced)
    with room_for_nesting():
        return _write_call(call, trace(call), options or Options(), title, name_of, fits)


def write_program(
    given: GivenProgram, options: Options | None = None, name: str | None = None
) -> Written:
    """Write a program that was traced already; return the text with its metadata."""
    rules.register()
    title = _valid_name(name or given.name)
    options = options or Options()
    if options.style == "pretty" and given.readable is not None:
        try:
            written = _write_given(given.readable(), options, title)
        except (UnreadableProgram, Unsourceable) as error:
            _log.info("%s is written without calls of library functions: %s", title, error)
        else:
            if "stablehlo" in written.as_stablehlo:
                return written
    return _write_given(given, options, title)


def _write_given(given: GivenProgram, options: Options, name: str) -> Written:
    with room_for_nesting(), given.types():
        call = given.call()
        written = _write_call(call, given.traced(), options, name, None, None)
        return lowers_again(written, call, given.origin) if given.origin is not None else written


def _write_call(
    call: BoundCall,
    traced_call: TracedCall,
    options: Options,
    name: str,
    name_of: NameOf | None,
    fits: Fits | None,
) -> Written:
    if options.derivatives == "primal":
        traced_call = replace(traced_call, jaxpr=primal(traced_call.jaxpr))
    return write_and_prove(call, traced_call, options, name, name_of, fits)


def _valid_name(name: str) -> str:
    if not is_identifier(name):
        raise ValueError(f"{name!r} is not a valid function name")
    if name in IMPORTS:
        raise ValueError(f"{name!r} is a name that the text imports; choose another name")
    return name


def check(
    written: Written,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Difference | None:
    """Execute a written module and compare its function's jaxpr with the original's.

    Return the first difference, or None if they are the same program.
    """
    loaded = load(written)
    call = signature.bind(function, args, kwargs)
    values = [argument.value for argument in call.arguments]
    with room_for_nesting():
        ours = jax.make_jaxpr(call.flat)(*values)
        theirs = jax.make_jaxpr(replace(call, function=loaded).flat)(*values)
        return written.differs(written.counterpart(ours), theirs)
