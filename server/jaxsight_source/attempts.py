"""Writes a program in the style that was asked for, or else in a simpler one that is proved.

The text is compared with the program as a whole, and run beside the original if that is possible.
"""

from __future__ import annotations

import gc
import linecache
import logging
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from jaxsight_source.calls.signature import BoundCall, TracedCall
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.compat.staging import stage
from jaxsight_source.errors import NotTheSame, TooLong, Unsourceable, Unwritable
from jaxsight_source.folding.repeats import repeats_of
from jaxsight_source.main_function import write_once
from jaxsight_source.options import SourceOptions
from jaxsight_source.proof.running import Differs, Ran, run_beside
from jaxsight_source.readable import readable
from jaxsight_source.writing.user_names import Fits
from jaxsight_source.writing.writer import Folds, NameOf, Original, Writer
from jaxsight_source.written import Written, file_of, load

_log = logging.getLogger(__name__)

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

LEAST_SHARED = 300
"""The minimum number of lines of a text in which repeated code is searched for.

A choice: the text is written twice then. Less would double the time for texts that are short
enough to read; more would leave repetitions on several screens.
"""

_LONGEST = 400
"""The maximum length of a difference in a message, in characters; jaxprs may have thousands."""


def write_and_prove(
    call: BoundCall,
    traced_call: TracedCall,
    options: SourceOptions,
    name_of: NameOf | None,
    fits: Fits | None,
) -> Written:
    """Write the program of a call, with simpler options if the text is not the same program.

    Raises:
        Unsourceable: if no text is the same program.
        TooLong: if the text is too long for its program.
    """
    original = _original(traced_call, name_of, fits)
    name, shares = options.name, True
    pretty_call = replace(traced_call, jaxpr=readable(traced_call.jaxpr))
    why = ""
    for chosen in _attempts(options):
        if chosen.folds and not chosen.share and not shares:
            continue
        chosen_call = pretty_call if chosen.style == "pretty" else traced_call
        try:
            with _nothing_collected():
                written = _shortest(call, chosen_call, chosen, original)
                shares = written.shares
                written, written_call = _compared(written, call)
            if options.run:
                written = replace(written, ran=_run(written, written_call, call, traced_call))
        except Differs as error:
            why = textwrap.shorten(str(error), _LONGEST, placeholder=" …")
            level = logging.INFO if chosen.folds else logging.WARNING
            message = "the %s style of %s is not the same program: %s"
            _log.log(level, message, chosen.style, name, error)
            continue
        except Unwritable as error:
            if chosen.folds:
                continue
            raise Unsourceable(name, str(error)) from error
        except (KeyError, Unsourceable) as error:
            if not chosen.folds:
                raise
            _log.info("%s is not folded: %s", name, error)
            shares = False
            continue
        finally:
            linecache.cache.pop(file_of(name), None)
        if len(written.lines) > max(MOST_LINES * original.size, LEAST_REFUSED):
            raise TooLong(f"{len(written.lines):,} lines", original.size, options.derivatives)
        return written
    raise NotTheSame(name, f"the generated text is not the same program: {why}")


def write_unproved(
    call: BoundCall,
    traced_call: TracedCall,
    options: SourceOptions,
    name_of: NameOf | None,
    fits: Fits | None,
) -> Written:
    """Write the program of a call without comparing the text with it."""
    original = _original(traced_call, name_of, fits)
    return write_once(call, traced_call, lambda: Writer(options, original), options.name)[0]


def _original(traced_call: TracedCall, name_of: NameOf | None, fits: Fits | None) -> Original:
    equations = equation_count(traced_call.jaxpr)
    return Original(equations, max(equations * LONGEST_RULES, LEAST_REFUSED), name_of, fits)


def _attempts(options: SourceOptions) -> Iterator[SourceOptions]:
    """Yield the options, then fallbacks to try if the text is not the same program."""
    yield options
    if options.folds:
        if options.share:
            yield replace(options, share=False)
        yield replace(options, fold=False)
    if options.style != "lax":
        yield replace(options, style="lax")


def _shortest(
    call: BoundCall, traced_call: TracedCall, options: SourceOptions, original: Original
) -> Written:
    """Write a program; move repeated code into functions if that makes a long text shorter."""
    name = options.name
    written, writer = write_once(call, traced_call, lambda: Writer(options, original), name)
    is_long = len(written.lines) >= LEAST_SHARED
    if not (is_long and options.folds and options.share):
        return written
    numbers = writer.folds.numbers
    repeats = repeats_of(writer.folds.programs, numbers)
    if not repeats.by_first:
        return written

    def with_repeats() -> Writer:
        return Writer(options, original, Folds(numbers, repeats))

    try:
        shorter, _ = write_once(call, traced_call, with_repeats, name)
    except (KeyError, Unsourceable, Unwritable) as error:
        _log.info("what %s repeats is not shared: %s", name, error)
        return written
    if len(shorter.lines) >= len(written.lines):
        return written
    return replace(shorter, shares=True)


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


def _run(
    written: Written, written_call: BoundCall, call: BoundCall, traced_call: TracedCall
) -> Ran:
    """Run the text and the original.

    Raises:
        Differs: they have other results.
    """
    return run_beside(
        written_call.flat,
        call.flat,
        traced_call.jaxpr,
        [argument.value for argument in call.arguments],
        traced_call.numbers,
        derivatives=written.options.derivatives != "primal",
    )


@contextmanager
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
