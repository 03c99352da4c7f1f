"""Programs with symbolic dimensions: each is a program for every assignment of sizes to names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jax import export

from jaxsight.interpreters.compat import avals
from jaxsight.sourcerizer.programs import dimensions, lowered
from jaxsight.sourcerizer.programs.dimensions import Sizes
from jaxsight.sourcerizer.programs.given import EverySize, GivenProgram
from jaxsight.sourcerizer.stablehlo import DynamicShapes, UnreadableProgram, refinement

MOST_NAMES = 4
"""The maximum number of named sizes. A choice: a text is written for two sizes more than names."""

_FAMILIES = (
    ((13, 18, 23), (17, 20, 27), (11, 16, 25), (15, 22, 29)),
    ((11, 14, 21), (15, 20, 25), (17, 22, 29), (19, 24, 33)),
    ((19, 24, 33), (17, 22, 29), (15, 20, 25), (11, 14, 21)),
    ((24, 36, 60), (48, 84, 72), (12, 96, 60), (60, 24, 84)),
    ((112, 176, 208), (144, 240, 304), (160, 272, 368), (192, 336, 400)),
    ((384, 640, 896), (512, 768, 640), (128, 896, 256), (256, 384, 768)),
)
"""Sizes that a text is written for: of both parities, with different products and quotients; then
in orders, and divisible as constraints ask for."""

_FURTHER = (
    ((1,) * MOST_NAMES),
    (2, 3, 5, 4),
    (7, 9, 10, 12),
    (31, 37, 41, 43),
    (36, 60, 24, 48),
    (4, 3, 2, 1),
    (64, 80, 96, 128),
    (1024, 512, 256, 128),
)
"""Sizes that the text is also compared for. Those that the program does not take are skipped."""


def further(every: EverySize) -> Iterator[tuple[Sizes, GivenProgram]]:
    """Yield other sizes that the program takes, with its program for them."""
    for values in _FURTHER:
        sizes = dict(zip(every.names, values, strict=False))
        if sizes not in every.samples and (program := _taken(every.at, sizes)) is not None:
            yield sizes, program


def of_exported(exported: export.Exported) -> GivenProgram:
    """Return an exported function, for every size if it has symbolic ones.

    Raises:
        UnreadableProgram: it has an operation that JAX lacks, or sizes that depend on data.
    """
    if all(isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
        return lowered.of_exported(exported)
    artifact = exported.mlir_module_serialized
    shapes = tuple(tuple(map(_spelled, aval.shape)) for aval in exported.in_avals)

    def at(sizes: Sizes) -> GivenProgram:
        static = [_static(shape, sizes) for shape in shapes]
        kept = [static[position] for position in exported.module_kept_var_idx]
        platform = [()] * (len(exported.platforms) > 1)
        text = refinement.refined(artifact, [*platform, *kept])
        leaves = [
            avals.struct(shape, aval.dtype, avals.weak(aval))
            for aval, shape in zip(exported.in_avals, static, strict=True)
        ]
        return lowered.of_exported(exported, text, leaves)

    return _for_every_size(shapes, at, artifact, exported)


def of_stablehlo(
    artifact: str | bytes,
    *,
    is_exact: bool = True,
    names: Sequence[str] = (),
    linked: bool = False,
) -> GivenProgram:
    """Return a StableHLO program, for every size if it has dynamic dimensions.

    With `linked`, lines of a text are recorded in equations, unless it has such dimensions.

    JAX's assertions name them. Others are `n`, `n_1`, … if they can differ from each other,
    otherwise all of one axis, or all, are the same.

    Raises:
        UnreadableProgram: it is none, or has an operation that JAX lacks, or other sizes.
    """
    try:
        return lowered.of_stablehlo(artifact, is_exact=is_exact, names=names, linked=linked)
    except DynamicShapes:
        known = refinement.inputs(artifact)
    failure: UnreadableProgram | None = None
    for shapes in _guesses(artifact, known):

        def at(sizes: Sizes, shapes: tuple[tuple[str, ...], ...] = shapes) -> GivenProgram:
            static = [_static(shape, sizes) for shape in shapes]
            text = refinement.refined(artifact, static)
            return lowered.of_stablehlo(text, is_exact=is_exact, names=names)

        try:
            return _for_every_size(shapes, at, artifact, None)
        except UnreadableProgram as error:
            failure = failure or error
    raise failure or UnreadableProgram("its dimensions are unknown")


def _for_every_size(
    shapes: tuple[tuple[str, ...], ...],
    at: Callable[[Sizes], GivenProgram],
    artifact: str | bytes,
    symbolic: export.Exported | None,
) -> GivenProgram:
    names = dimensions.names([size for shape in shapes for size in shape])
    if len(names) > MOST_NAMES:
        raise UnreadableProgram(f"it has {len(names)} symbolic sizes, more than {MOST_NAMES}")
    failure: UnreadableProgram | None = None
    for family in _FAMILIES:
        columns = [dict(zip(names, column, strict=False)) for column in zip(*family, strict=True)]
        first, second, third = columns
        changed = [{**first, name: second[name]} for name in names]
        samples = (first, *changed, third)
        try:
            programs = [at(sizes) for sizes in samples]
        except refinement.WrongSizes as error:
            failure = failure or error
            continue
        found = EverySize(names, shapes, samples, at, artifact, symbolic)
        return replace(programs[0], every_size=found)
    raise failure or UnreadableProgram("no sizes were found that it takes")


def _taken(at: Callable[[Sizes], GivenProgram], sizes: Sizes) -> GivenProgram | None:
    try:
        return at(sizes)
    except refinement.WrongSizes:
        return None


def _spelled(size: object) -> str:
    return dimensions.spelled(str(size))


def _static(shape: Sequence[str], sizes: Sizes) -> tuple[int, ...]:
    static = tuple(dimensions.size(one, sizes) for one in shape)
    if any(one < 0 for one in static):
        raise refinement.WrongSizes("a size is negative")
    return static


def _guesses(
    artifact: str | bytes, known: Sequence[Sequence[int | None]]
) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield expressions for the sizes of a module's inputs."""
    words = re.findall(r"\.shape = \(((?:[^()]|\([^()]*\))*)\)", refinement.described(artifact))
    if words:
        given = iter([re.split(r", *(?![^()]*\))", one.rstrip(", ")) for one in words])
        yield tuple(
            tuple(map(_spelled, next(given, [])))
            if None in shape
            else tuple(str(size) for size in shape)
            for shape in known
        )
        return
    for same in ("", "axis", "all"):
        listed: dict[object, str] = {}

        def name(
            place: int, axis: int, same: str = same, listed: dict[object, str] = listed
        ) -> str:
            key: object = {"": (place, axis), "axis": axis, "all": 0}[same]
            return listed.setdefault(key, f"n_{len(listed)}" if listed else "n")

        yield tuple(
            tuple(
                name(place, axis) if size is None else str(size) for axis, size in enumerate(shape)
            )
            for place, shape in enumerate(known)
        )
