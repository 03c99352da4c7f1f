"""Compare names of sizes with traces that the search for them did not use."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from jaxsight.examples.resizing import SizedInputs
from jaxsight.features.named_function import view_of
from jaxsight.queries.sizes.explorer import inputs_of
from jaxsight.queries.sizes.naming import SizeNames
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.session import Session
from jaxsight.wire.messages.replies import Traced

_SHAPE = re.compile(r"(?<=[\w>])\[([^\[\]' ]*)\]")
_CHECKS = 3
_DRAWS = 40


@dataclass(slots=True)
class Measured:
    """The dimensions of one function that have a name, those that have none, and wrong names."""

    function: str
    named: int = 0
    numbers: int = 0
    checks: int = 0
    """Number of traces that names were compared with."""
    traces: int = 0
    """Number of traces for the names."""
    wrong: list[str] = field(default_factory=list)


async def measured(session: Session, path: str, function: str, seed: int = 0) -> Measured | None:
    """Measure a function; `None` if it is not traced, or has no named sizes."""
    view = await view_of(session.engine, path, function)
    answer = view.answer
    if not isinstance(answer.reply, Traced):
        return None
    inputs, by_number = inputs_of(answer.question)
    if not inputs.sizes:
        return None
    explored = await session.engine.sizes.explored(answer)
    result = Measured(function, traces=explored.traces)
    texts = dict(_texts(answer.reply))
    names = dict(_names(explored.names))
    for key, text in texts.items():
        named = _dims(names.get(key, text))
        result.named += sum(not dim.isdigit() for dim in named)
        result.numbers += sum(dim.isdigit() for dim in named)
    varied = [name for name in inputs.sizes if name in dict(explored.sizes)]
    if not names or not varied:
        return result
    rng = random.Random(f"{function} {seed}")
    for draw in range(_DRAWS):
        if result.checks == _CHECKS:
            break
        sizes = _drawn(inputs.sizes, varied, rng, draw)
        for some in (inputs, by_number):
            if some is not None and (trace := await _traced(session, answer, some, sizes)):
                result.checks += 1
                result.wrong += _wrong(names, trace, some.all_sizes(sizes))
                break
    return result


def _drawn(
    given: Mapping[str, int], varied: list[str], rng: random.Random, draw: int
) -> dict[str, int]:
    """Return random sizes; after some draws, multiples of the given ones."""
    sizes = dict(given)
    scale = rng.randint(2, 6)
    for name in varied:
        if draw < 10:
            sizes[name] = rng.randint(2, 40)
        elif draw < 20:
            sizes[name] *= rng.randint(1, 5)
        else:
            sizes[name] *= scale
    return sizes


async def _traced(
    session: Session, answer: Answer, inputs: SizedInputs, sizes: Mapping[str, int]
) -> Traced | None:
    question = answer.question
    resized = inputs.resized(sizes)
    if resized is None:
        return None
    project = session.engine.projects.of(question.path)
    request = replace(question.trace, arguments=resized.arguments, sizes=resized.sizes, keep=False)
    reply = await project.ask(request)
    return reply if isinstance(reply, Traced) else None


Key = tuple[object, ...]


def _texts(trace: Traced) -> Iterator[tuple[Key, str]]:
    for observation in trace.observations:
        for number, index in enumerate(observation.values):
            span = observation.span
            place = span.line, span.column, span.end_line, span.end_column
            key = (place, observation.kind, number, len(observation.values))
            yield key, trace.seen[index].text
    yield ("outputs",), trace.outputs


def _names(names: SizeNames) -> Iterator[tuple[Key, str]]:
    for observation, texts in names.values.items():
        for number, text in enumerate(texts):
            span = observation.span
            place = span.line, span.column, span.end_line, span.end_column
            yield (place, observation.kind, number, len(texts)), text
    if names.outputs:
        yield ("outputs",), names.outputs


def _wrong(names: Mapping[Key, str], trace: Traced, sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the named types that differ from a trace with other sizes."""
    actual = dict(_texts(trace))
    for key, named in names.items():
        if key not in actual:
            continue
        one, other = _dims(named), _dims(actual[key])
        if len(one) != len(other):
            continue
        for dim, size in zip(one, other, strict=True):
            if not dim.isdigit() and eval(dim, {}, dict(sizes)) != int(size):
                yield f"{named}: {dim} is {size} for {dict(sizes)}"


def _dims(text: str) -> list[str]:
    shapes = (shape[1] for shape in _SHAPE.finditer(text))
    dims = (dim.partition("@")[0] for shape in shapes for dim in shape.split(","))
    return [dim for dim in dims if dim]
