"""Write a function as source, with links from its lines to the equations.

The sourcerizer has proved the text. It is run in a module of its own once more: its equations, side
by side with the function's, determine the user's source for every line of the text.
"""

from __future__ import annotations

import base64
import io
import linecache
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import jax
import numpy as np

from jaxsight.tracer.calls import stateful_traces
from jaxsight.tracer.calls.leaves import ArraysIn, is_array
from jaxsight.tracer.calls.transforms import transformed
from jaxsight.tracer.calls.user_function import TraceableCall
from jaxsight.tracer.failures import UserError, clean, failure, refusal
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.job import Job
from jaxsight.tracer.observation.variable_names import Naming
from jaxsight.tracer.programs import jaxpr_text
from jaxsight.tracer.states.watch import Watch
from jaxsight.tracer.user_warnings import collected
from jaxsight.wire.frames import CAPTURED_LIMIT
from jaxsight.wire.messages.replies import Link, Shown
from jaxsight.wire.messages.requests import SourceOptions, Sourcerize
from jaxsight_source import units
from jaxsight_source.compat.inner import equation_count, inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr
from jaxsight_source.compat.locations import locations
from jaxsight_source.compat.staging import open_jaxpr

if TYPE_CHECKING:
    from jaxsight_source.written import Written

logger = logging.getLogger(__name__)


def sourcerize(job: Job[Sourcerize]) -> Shown:
    """Write a function, or a transformation of it, as source; the caller sets `reused`.

    Raises:
        UserError: tracing failed, or, at stage `sourcerize`, there is no source.
        CancelledByServer: the request was cancelled.
    """
    module, options = job.module, job.request.options
    recorder, chunks = module.recorder, module.trace.chunks
    job.begin("inputs")
    with module.called() as (function, inputs):
        job.begin("sourcerize")
        watch = Watch(function.call, inputs.named)
        with recorder.tracing() as sites, collected(inputs.warnings), watch:
            try:
                state = stateful_traces.updating(function, inputs)
                naming = recorder.naming = Naming(recorder.site, chunks, module.trace.file)
                name = module.trace.function
                call = transformed(function, inputs, name, options.transform, state)
                return written(job.request.id, call, options, naming)
            except (CancelledByServer, UserError):
                raise
            except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
                error = failure(raised, "trace")
            finally:
                recorder.naming = None
        raise UserError(error, recorder.collect(chunks, sites))


def written(id: int, call: TraceableCall, wanted: SourceOptions, naming: Naming) -> Shown:
    """Return the text with its links; the caller sets `reused`.

    Raises:
        UserError: the function can be traced but not written; its stage is `sourcerize`.
        Exception: any error of the function's own.
    """
    # Imported on first use, as few sessions need it.
    from jaxsight_source.errors import NotTheSame
    from jaxsight_source.jaxprs.depth import room_for_nesting
    from jaxsight_source.written import load

    with room_for_nesting():
        original = _program(call.function, call)
        try:
            source = _written(call, wanted, naming)
        except CancelledByServer:
            raise
        except NotTheSame as error:
            words = f"source of {call.about} discarded: {' '.join(error.why.split())}"
            raise refusal("sourcerize", words, type="NotTheSame") from error
        except Exception as error:
            words = f"cannot write {call.about} as source: {_error_text(error)}"
            raise refusal("sourcerize", words, type=type(error).__name__) from error
        file = f"<sourcerized {source.name}>"
        try:
            function = load(source)
            original = source.counterpart(original)
            # Equations of inlined calls have no counterpart.
            pairs = () if source.inlines else _links(original, _program(function, call), file)
            links = tuple(dict.fromkeys(pairs))
        except CancelledByServer:
            raise
        except Exception as error:
            logger.exception("the source of %s failed to run:\n%s", call.about, source.text)
            words = f"source of {call.about} discarded, as running it failed: {_error_text(error)}"
            raise refusal("sourcerize", words, type="NotTheSame") from error
        finally:
            linecache.cache.pop(file, None)
    count = equation_count(original)
    return Shown(
        id,
        clean(source.text),
        links,
        count,
        companion=_companion(source),
        ran=source.ran.ways,
    )


def _companion(written: Written) -> str:
    """Return the file of arrays for a module that reads one.

    Raises:
        UserError: it is too large to be sent.
    """
    arrays = written.source.constants
    if not arrays:
        return ""
    if (size := sum(array.nbytes for array in arrays.values())) > CAPTURED_LIMIT:
        words = (
            f"the arrays of {written.name} are too large ({units.size(size)}); "
            'use jaxsight.sourcerize(..., constants="npz")(...).save(path) in Python'
        )
        raise refusal("sourcerize", words, type="TooLarge")
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return base64.b64encode(file.getvalue()).decode("ascii")


def _written(call: TraceableCall, wanted: SourceOptions, naming: Naming) -> Written:
    from jaxsight_source.api import write
    from jaxsight_source.errors import TooLarge
    from jaxsight_source.options import Options

    name = wanted.name or call.name

    def write_with(options: Options) -> Written:
        return write(
            call.function,
            call.args,
            call.kwargs,
            options,
            name,
            traced=is_array,
            name_of=naming.name_of,
            fits=naming.fits,
        )

    options = Options(
        style=wanted.style,
        constants=wanted.constants or "inline",
        shapes=wanted.shapes,
        sources=wanted.sources,
        inline=wanted.inline,
        scopes=wanted.scopes,
        derivatives=wanted.derivatives or "exact",
        run=True,
    )
    try:
        return write_with(options)
    except TooLarge:
        if wanted.constants:
            raise
    return write_with(replace(options, constants="argument"))


def _error_text(error: BaseException) -> str:
    return failure(error, "sourcerize").message or type(error).__name__


def _program(function: Callable[..., object], call: TraceableCall) -> object:
    """Return the jaxpr of a call, in which values that are not arrays are static.

    The function's errors are raised.
    """
    arguments = ArraysIn.of((call.args, call.kwargs))

    def flat(arrays: Sequence[object]) -> list[object]:
        args, kwargs = arguments.filled(arrays)
        results = jax.tree_util.tree_leaves(function(*args, **kwargs))
        return [
            leaf for leaf in results if is_array(leaf) or isinstance(leaf, (int, float, complex))
        ]

    return jax.make_jaxpr(flat)(arguments.arrays)


def _links(original: object, rewritten: object, file: str) -> Iterator[Link]:
    """Yield links from lines of `file` to the equation that each contains, and to its source."""
    for path, equation, counterpart in _pairs(open_jaxpr(original), open_jaxpr(rewritten)):
        location = next((at for at in locations(counterpart) if at.file == file), None)
        if location is not None:
            for line in range(location.line, max(location.end_line, location.line) + 1):
                yield Link(line - 1, path, jaxpr_text.span(equation))


def _pairs(original: Jaxpr, rewritten: Jaxpr) -> Iterator[tuple[str, Equation, Equation]]:
    """Yield pairs of equations of two equal programs, with the path in the first."""
    from jaxsight_source.jaxprs.same.liveness import live

    visited: set[tuple[int, int]] = set()
    waiting = [("", original, rewritten)]
    while waiting:
        path, ours, theirs = waiting.pop()
        if (id(ours), id(theirs)) in visited:
            continue
        visited.add((id(ours), id(theirs)))
        index = {id(equation): number for number, equation in enumerate(ours.eqns)}
        our_equations, their_equations = (live(side.outvars, side.eqns) for side in (ours, theirs))
        for equation, counterpart in zip(our_equations, their_equations, strict=True):
            here = f"{path}{index[id(equation)]}"
            yield here, equation, counterpart
            parts = zip(inner_jaxprs(equation), inner_jaxprs(counterpart), strict=False)
            for our_part, their_part in parts:
                waiting.append((f"{here}/{our_part.name}/", our_part.jaxpr, their_part.jaxpr))
