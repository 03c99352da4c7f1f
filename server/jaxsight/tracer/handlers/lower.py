"""Lower traced functions to StableHLO: the answer to `Lower`, and text for users.

The program for the compiler has no lines, files or addresses, so its digest changes only if the
program does.
The source lines of its equations are sent separately.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import math
import re
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from jax.stages import Traced

from jaxsight.hlo.metadata import lines_of_calls, without_metadata
from jaxsight.measuring.arguments import index_limits
from jaxsight.meshes.compat.meshes import communicates
from jaxsight.text import units
from jaxsight.tracer.compat import lowering
from jaxsight.tracer.failures import UserError, clean, failure, is_library, refusal
from jaxsight.tracer.job import JaxTrace, Job, under
from jaxsight.tracer.programs import folding_costs, jaxpr_text
from jaxsight.tracer.programs.call_tree import CallTree, OuterScope
from jaxsight.wire.chunks import Span, equation_path
from jaxsight.wire.frames import CAPTURED_LIMIT
from jaxsight.wire.messages.compiling import Compile
from jaxsight.wire.messages.replies import Link, Listing, Lowered, LoweredEquation
from jaxsight.wire.messages.requests import STABLEHLO, Lower, Show
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import all_jaxprs, inner_jaxprs, walk
from jaxsight_source.compat.jaxpr_types import Jaxpr, Var
from jaxsight_source.compat.staging import open_jaxpr

_UNKNOWN_GPU = "please specify an abstract GPU device using AbstractDevice"
"""Part of JAX 0.12's error about a Pallas kernel if the compute capability is unknown."""


def lower(job: Job[Lower]) -> Lowered:
    """Lower an earlier trace to StableHLO.

    Raises:
        UserError: it is no longer kept; or, at stage `lower`, it captures too much, or JAX cannot
            lower it for the platform.
    """
    request = job.request
    job.begin("lower", request.platform)
    trace = job.traces.of(request.trace)
    with under(trace.settings):
        traced, markers = trace.stage, trace.outcome.markers
        _refuse(trace)
        begin = time.perf_counter()
        with _lowering():
            artifact = lowering.artifact(traced, request.platform, request.capability)
        seconds = time.perf_counter() - begin
        tree = CallTree(open_jaxpr(traced.jaxpr).eqns)
        return lowered(traced, artifact, tree, markers, id=request.id, seconds=seconds)


def lowered(
    traced: Traced,
    artifact: lowering.Artifact,
    tree: CallTree,
    markers: int = 0,
    *,
    id: int = 0,
    seconds: float = 0.0,
) -> Lowered:
    """Return what a compiler and people have to know of a lowered function.

    Args:
        traced: the function.
        artifact: what it was lowered to.
        tree: takes the calls that its equations were created in.
        markers: the first results that are updated state.
        id: that of the request.
        seconds: how long it was lowered.
    """
    request, names = compile_request(traced, artifact), lowering.names(traced)
    opened = open_jaxpr(traced.jaxpr)
    # Both decide what is compiled, and are no part of the program's bytes.
    beside = [repr(part).encode() for part in (request.options, request.distribution) if part]
    return Lowered(
        id=id,
        platform=artifact.platform,
        key=hashlib.sha256(b"".join([artifact.bytes, *beside])).hexdigest(),
        request=request,
        equations=tuple(_equations(opened, tree)),
        calls=tuple(tree.calls),
        folds=folding_costs.predicted(traced),
        jaxlib=lowering.JAXLIB,
        stablehlo=artifact.version,
        parameters=_named(names, artifact.parameters),
        donated=_named(names, lowering.donated(traced)),
        results=tuple(
            "updated state" if at < markers else f"result {at - markers}"
            for at in range(len(opened.outvars))
        ),
        seconds=seconds,
    )


def compile_request(traced: Traced, artifact: lowering.Artifact, target: str = "") -> Compile:
    """Return what the compiler of a target is asked for.

    Args:
        traced: the function.
        artifact: what it was lowered to.
        target: the name of the target.
    """
    jaxpr, distribution = traced.jaxpr, artifact.distribution
    limits = index_limits(open_jaxpr(jaxpr))
    return Compile(
        0,
        target,
        base64.b64encode(artifact.bytes).decode("ascii"),
        options=folding_costs.compiler_options(traced),
        **facts(jaxpr, is_distributed=distribution is not None),
        distribution=distribution,
        indices=tuple(
            (parameter, limits[at])
            for parameter, at in enumerate(artifact.parameters)
            if at in limits
        ),
    )


def live(traced: Traced, artifact: lowering.Artifact) -> Lowered:
    """Return the same of a function that is no tracer's, with the files of this process as chunks.

    Args:
        traced: the function.
        artifact: what it was lowered to.
    """
    equations = open_jaxpr(traced.jaxpr).eqns
    return lowered(traced, artifact, CallTree(equations, _is_live, _live_span))


class Facts(TypedDict):
    """Facts about a program that its HLO does not have, as for the message `Compile`."""

    constants: tuple[str, ...]
    trips: tuple[tuple[str, int], ...]
    barriers: tuple[str, ...]
    communicates: tuple[str, ...]
    """The paths of the equations that are collectives; none on one device."""


def facts(jaxpr: object, *, is_distributed: bool) -> Facts:
    """Return facts about a program that its HLO does not have."""
    collectives = (path for path, each in walk(jaxpr) if communicates(each))
    return Facts(
        constants=tuple(dict.fromkeys(_types(jaxpr))),
        trips=tuple(_trips(jaxpr)),
        barriers=tuple(_barriers(open_jaxpr(jaxpr))),
        communicates=tuple(collectives) if is_distributed else (),
    )


def _named(names: Sequence[str], inputs: Iterable[int]) -> tuple[str, ...]:
    """Return names of flat inputs, such as `argument 0` for those without a name."""
    return tuple(names[at] or f"argument {at}" for at in inputs)


def text(request: Show, trace: JaxTrace) -> Listing:
    """Return a traced function's StableHLO for a platform, or its HLO before optimizations.

    Lines are linked to equations.

    Raises:
        UserError: as for `lower`.
    """
    with under(trace.settings):
        _refuse(trace)
        traced = trace.stage
        spans = {equation.path: equation.span for equation in equations(traced.jaxpr)}
        if request.view == STABLEHLO:
            with _lowering():
                module = lowering.text(traced, request.platform)
            return Listing(request.id, clean(module.text), tuple(links(module, spans)))
        with _lowering():
            hlo = lowering.unoptimized(traced, request.platform)
    linked = tuple(
        Link(number, path, spans[path])
        for number, path in sorted(lines_of_calls(hlo).items())
        if path in spans
    )
    return Listing(request.id, clean(without_metadata(hlo)), linked)


def equations(jaxpr: object) -> Iterator[LoweredEquation]:
    """Yield the equations of a program as `lower` describes them, outer ones first."""
    opened = open_jaxpr(jaxpr)
    yield from _equations(opened, CallTree(opened.eqns))


def _live_span(file: str, line: int, column: int, end_line: int, end_column: int) -> Span | None:
    span = Span(file, line, max(column, 0), max(end_line, line), max(end_column, 0))
    return span if _is_live(file) else None


def _is_live(file: str) -> bool:
    return not is_library(file)


def _refuse(trace: JaxTrace) -> None:
    if trace.axes:
        named = " and ".join(f"`{axis}`" for axis in trace.axes)
        raise refusal("lower", f"the program around it binds {named}, and is compiled with it")
    if problem := captured_too_much(trace.stage.jaxpr, CAPTURED_LIMIT):
        raise refusal("lower", f"it {problem}", type="CapturedConstants")


def captured_too_much(jaxpr: object, limit: int) -> str:
    """Return what is wrong with a function that captures arrays of more bytes; else nothing."""
    captured = sum(avals.size(avals.of(constant)) for constant in _constants(jaxpr))
    if captured <= limit:
        return ""
    return (
        f"captures {units.size(captured)} of constants, which the program would embed "
        f"(limit {units.size(limit)}): pass them as arguments"
    )


@contextlib.contextmanager
def _lowering() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if _UNKNOWN_GPU in str(error):
            which = "Pallas kernels need a target that names the GPU, such as `cuda:h100`"
            raise refusal("lower", which, type="UnknownGpu") from error
        described = failure(error, "lower")
        if not described.message:  # such as an assertion of a lowering rule
            raised = traceback.extract_tb(error.__traceback__)[-1]
            described = replace(described, message=f"`{raised.line}` in {raised.name}")
        raise UserError(described) from error


def _equations(opened: Jaxpr, tree: CallTree) -> Iterator[LoweredEquation]:
    """Yield all equations with their paths, outer ones first, at most `MOST_EQUATIONS`.

    The calls around them are added to `tree`.
    """
    waiting = [(opened, "", OuterScope())]
    count = 0
    while waiting:
        jaxpr, prefix, outer = waiting.pop(0)
        for index, equation in enumerate(jaxpr.eqns):
            if count >= jaxpr_text.MOST_EQUATIONS:
                return
            count += 1
            path, around = f"{prefix}{index}", tree.scope_of(equation, outer, jaxpr)
            yield LoweredEquation(
                path,
                equation.primitive.name,
                tree.span(equation),
                tuple(avals.text(var.aval) for var in equation.outvars[:4]),
                around.scope or (),
                around.backward,
                around.call,
            )
            inner = inner_jaxprs(equation)
            waiting += [(part.jaxpr, f"{path}/{part.name}/", around) for part in inner]


_FUNCTION = re.compile(r"\s*func\.func .*?@([\w.$-]+)")
_CALL = re.compile(r"\bcall @([\w.$-]+)")
_MAIN = "main"


def links(module: lowering.LoweredText, spans: Mapping[str, Span | None]) -> Iterator[Link]:
    """Yield each line's equation.

    Lines of a shared function are linked to the equation of its first call.
    """
    places: list[tuple[str, str]] = []
    """The function and the equation of each line."""
    calls: dict[str, list[tuple[str, str]]] = {}
    current = ""
    for line, name in zip(module.text.split("\n"), module.names, strict=False):
        if (begun := _FUNCTION.match(line)) is not None:
            current = begun[1]
        places.append((current, equation_path(name)))
        if (call := _CALL.search(line)) is not None:
            calls.setdefault(current, []).append((call[1], equation_path(name)))
    prefixes = {_MAIN: ""}
    waiting = [_MAIN]
    for caller in waiting:  # which grows
        for called, path in calls.get(caller, ()):
            if called not in prefixes and path:
                prefixes[called] = f"{prefixes[caller]}{path}/"
                waiting.append(called)
    for number, (function, path) in enumerate(places):
        whole = prefixes[function] + path if path and function in prefixes else ""
        if whole in spans:
            yield Link(number, whole, spans[whole])


def _constants(jaxpr: object) -> Iterator[object]:
    """Yield the captured arrays of a jaxpr and its inner jaxprs, without duplicates."""
    consts = (getattr(part, "consts", ()) for part in all_jaxprs(jaxpr))
    yield from {id(value): value for value in itertools.chain.from_iterable(consts)}.values()


def _types(jaxpr: object) -> Iterator[str]:
    """Yield the types of captured arrays in HLO's notation, e.g. `s32[8]`."""
    for constant in _constants(jaxpr):
        aval = avals.of(constant)
        shape = getattr(aval, "shape", None)
        if shape is None or math.prod(shape) < 2:
            continue
        dtype = avals.text(aval).partition("[")[0]
        name = "pred" if dtype == "bool" else re.sub(r"^i(?=\d+$)", "s", dtype)
        yield f"{name}[{','.join(map(str, shape))}]"


def _trips(jaxpr: object) -> Iterator[tuple[str, int]]:
    """Yield the trip counts of scans, including those of `fori_loop`s with constant bounds."""
    for path, equation in walk(jaxpr):
        length, unroll = equation.params.get("length"), equation.params.get("unroll")
        if equation.primitive.name == "scan" and isinstance(length, int):
            yield path, length // max(unroll if isinstance(unroll, int) else 1, 1)


_BARRIERS = frozenset({"optimization_barrier", "checkpoint", "remat2", "remat"})


def _barriers(opened: Jaxpr, prefix: str = "") -> Iterator[str]:
    """Yield the paths of equations whose results go directly into an `optimization_barrier`.

    The barriers of checkpoints are included.
    """
    index_by_var: dict[Var, int] = {}
    for index, equation in enumerate(opened.eqns):
        if equation.primitive.name in _BARRIERS:
            for var in equation.invars:
                if not hasattr(var, "val") and (maker := index_by_var.get(var)) is not None:
                    yield f"{prefix}{maker}"
        for var in equation.outvars:
            index_by_var[var] = index
        for part in inner_jaxprs(equation):
            yield from _barriers(part.jaxpr, f"{prefix}{index}/{part.name}/")
