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
from jaxsight_source.main_function import write_module
from jaxsight_source.options import SourceOptions
from jaxsight_source.proof.running import Differs, Ran, run_beside
from jaxsight_source.readable import readable
from jaxsight_source.writing.user_names import Fits
from jaxsight_source.writing.writer import NameOf, Original
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
    return write_module(call, traced_call, options, _original(traced_call, name_of, fits))


def _original(traced_call: TracedCall, name_of: NameOf | None, fits: Fits | None) -> Original:
    equations = equation_count(traced_call.jaxpr)
    return Original(equations, max(equations * LONGEST_RULES, LEAST_REFUSED), name_of, fits)


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
