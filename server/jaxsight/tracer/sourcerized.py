"""Writes a found function as source, and lets nobody see what was not traced again and found to be the same program.

The text is run in a module of its own. Its jaxpr and the function's are walked side by side, which also tells for every line of the
text what the user wrote for it.
"""

from __future__ import annotations

import itertools
import linecache
import logging
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxsight.tracer import protocol, shown
from jaxsight.tracer.compat import jaxprs
from jaxsight.tracer.failures import clean, failure, refusal
from jaxsight.tracer.inputs import is_array
from jaxsight.tracer.recorder import CancelledByServer
from jaxsight.tracer.transforms import Call

logger = logging.getLogger(__name__)

_numbers = itertools.count()


def written(request: protocol.Trace, call: Call, style: str, name: str) -> protocol.Shown:
    """The text with its links; `reused` is left to the caller.

    Raises `UserError`: of stage `trace` when the function cannot be traced, of stage `sourcerize` when it cannot be written.
    """
    from jaxsight.sourcerizer import same_jaxpr, sourcerize

    original = _program(call.function, call)
    try:
        text: str = sourcerize(call.function, style=style, name=name)(*call.args, **call.kwargs)
    except CancelledByServer:
        raise
    except Exception as error:
        logger.exception("%s could not be written as source", call.about)
        words = f"{call.about} cannot be written as source: {_told(error)}"
        raise refusal("sourcerize", words, type=type(error).__name__) from error
    file = f"<sourcerized {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        made = _program(_defined(text, name, file), call)
        difference = same_jaxpr(original, made)
    except CancelledByServer:
        raise
    except Exception as error:
        logger.exception("the source of %s does not run:\n%s", call.about, text)
        words = (
            f"what was written for {call.about} does not run, so it is not shown: {_told(error)}"
        )
        raise refusal("sourcerize", words, type="NotTheSame") from error
    finally:
        linecache.cache.pop(file, None)
    if difference is not None:
        words = f"what was written for {call.about} is not the same program, so it is not shown: {difference}"
        raise refusal("sourcerize", words, type="NotTheSame")
    links = tuple(dict.fromkeys(_links(original, made, file)))
    return protocol.Shown(request.id, clean(text), links, jaxprs.count(original))


def _told(error: BaseException) -> str:
    return failure(error, "sourcerize").message or type(error).__name__


def _defined(text: str, name: str, file: str) -> Callable[..., Any]:
    """The function of a text, run as a module."""
    module = types.ModuleType(f"jaxsight_sourcerized_{name}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - our own text
    finally:
        del sys.modules[module.__name__]
    defined: Callable[..., Any] = getattr(module, name)
    return defined


def _program(function: Callable[..., Any], call: Call) -> Any:
    """The jaxpr of a call; what is no array is passed as it is. Raises what the function raises."""
    leaves, structure = jax.tree_util.tree_flatten((call.args, call.kwargs))
    places = [index for index, leaf in enumerate(leaves) if is_array(leaf)]

    def flat(arrays: Sequence[Any]) -> list[Any]:
        whole = list(leaves)
        for index, array in zip(places, arrays, strict=True):
            whole[index] = array
        args, kwargs = jax.tree_util.tree_unflatten(structure, whole)
        results = jax.tree_util.tree_leaves(function(*args, **kwargs))
        return [
            leaf for leaf in results if is_array(leaf) or isinstance(leaf, (int, float, complex))
        ]

    return jax.make_jaxpr(flat)([leaves[index] for index in places])


def _links(original: Any, made: Any, file: str) -> Iterator[protocol.Link]:
    """For the lines of `file`: the equation that each stands for and where it was written."""
    for path, equation, other in _pairs(jaxprs.open_jaxpr(original), jaxprs.open_jaxpr(made)):
        place = next((at for at in jaxprs.locations(other) if at.file == file), None)
        if place is not None:
            for line in range(place.line, max(place.end_line, place.line) + 1):
                yield protocol.Link(line - 1, path, shown.span(equation))


def _pairs(original: Any, made: Any) -> Iterator[tuple[str, Any, Any]]:
    """The equations of two jaxprs that are the same program, side by side, by the path in the first."""
    from jaxsight.sourcerizer.same import live

    known: set[tuple[int, int]] = set()
    waiting = [("", original, made)]
    while waiting:
        path, ours, theirs = waiting.pop()
        if (id(ours), id(theirs)) in known:
            continue
        known.add((id(ours), id(theirs)))
        index = {id(equation): number for number, equation in enumerate(ours.eqns)}
        left, right = (live(side.outvars, side.eqns) for side in (ours, theirs))
        for one, other in zip(left, right, strict=True):
            here = f"{path}{index[id(one)]}"
            yield here, one, other
            for part, counterpart in zip(jaxprs.inner(one), jaxprs.inner(other), strict=False):
                waiting.append((f"{here}/{part.name}/", part.jaxpr, counterpart.jaxpr))
