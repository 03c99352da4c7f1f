"""A text for every size, and its proof."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import jax
from jax import export

from jaxsight.interpreters.compat import avals
from jaxsight.sourcerizer.calls.signature import BoundCall
from jaxsight.sourcerizer.errors import NotTheSame, Unsourceable
from jaxsight.sourcerizer.every_size.fitting import fitted
from jaxsight.sourcerizer.every_size.texts import (
    DifferentTexts,
    identifiers,
    merged,
    with_sizes,
)
from jaxsight.sourcerizer.programs import dimensions
from jaxsight.sourcerizer.programs.dimensions import Sizes
from jaxsight.sourcerizer.programs.every_size import further
from jaxsight.sourcerizer.programs.given import EverySize, GivenProgram
from jaxsight.sourcerizer.programs.lowering import lowers_again
from jaxsight.sourcerizer.stablehlo.canonical import canonical
from jaxsight.sourcerizer.stablehlo.proof import first_difference
from jaxsight.sourcerizer.stablehlo.refinement import INSIDE
from jaxsight.sourcerizer.text.exprs import quoted
from jaxsight.sourcerizer.text.layout import flat
from jaxsight.sourcerizer.written import Written, load

_LEAST = 2
"""The number of further sizes that a text is compared for, at least."""

_MOST = 3
"""The number of further sizes at most. A choice: each is compiled twice."""

_WAYS = (("{}", "np"), ("{}", "jnp"), ("float({})", "np"))
"""How a size is written in place of a floating-point number, and which scalars have sizes: those of
`jnp` take symbolic ones, those of `np` are numbers while a function is traced."""

FOR_EVERY_SIZE = "for every size"
"""The proof that the text has the same StableHLO with symbolic dimensions."""


def generalized(
    written: Written,
    given: GivenProgram,
    every: EverySize,
    write: Callable[[GivenProgram], Written],
) -> Written:
    """Return the text for every size, proved.

    Args:
        written: the text for the first sizes.
        given: the program for these.
        every: how it depends on sizes.
        write: writes the program for other sizes.

    Raises:
        Unsourceable: the texts for several sizes differ in more than numbers.
        NotTheSame: the text for every size is not the program.
    """
    programs = [given, *(every.at(sizes) for sizes in every.samples[1:])]
    texts = [written.text, *(write(program).text for program in programs[1:])]
    call = given.call()
    known = [size for shape in every.shapes for size in shape if len(size) > 1]
    renamed = _renamed(every, texts[0])
    failure: Exception | None = None
    compared: Written | None = None
    for floating, module in _WAYS:

        def fit(values: Sequence[int]) -> str | None:
            found = fitted(values, every.samples, known)
            return found and _with_names(found, renamed)

        try:
            text = merged(texts, fit, floating)
        except DifferentTexts as error:
            raise Unsourceable(written.name, f"{error}; help: export it for sizes") from None
        if module == "jnp":
            scalars = rf"\bnp(\.\w+\([^()]*\b(?:{'|'.join(renamed.values())})\b)"
            text, count = re.subn(scalars, r"jnp\1", text)
            if not count:
                continue
        try:
            text = with_sizes(
                text, written.name, [*renamed.values()], [*_definitions(every, call, renamed, text)]
            )
            found = _proved(replace(written, text=text, lines=()), every, programs)
        except Unsourceable as error:
            failure = failure or error
        except Exception as error:  # noqa: BLE001 - whatever the text raises, it is another program
            failure = failure or NotTheSame(written.name, " ".join(str(error).split())[:200])
        else:
            if FOR_EVERY_SIZE in found.as_stablehlo:
                return found
            compared = compared or found
    if compared is None:
        raise failure or NotTheSame(written.name, "it is another program for other sizes")
    return compared


def _renamed(every: EverySize, text: str) -> dict[str, str]:
    """Return names of the sizes that the text does not have."""
    taken = identifiers(text)
    return {name: name if name not in taken else f"{name}_size" for name in every.names}


def _with_names(expression: str, names: dict[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), expression)


def _definitions(
    every: EverySize, call: BoundCall, names: dict[str, str], text: str
) -> Iterator[str]:
    """Yield statements that name the sizes that are used, and check the shapes that have them."""
    leaves = [flat(argument.expr) for argument in call.arguments]
    read: dict[tuple[int, int], str] = {}
    sizes: dict[str, str] = {}
    for name in every.names:
        place, axis, factor, summand = min(
            (
                (place, axis, *found)
                for place, shape in enumerate(every.shapes)
                for axis, size in enumerate(shape)
                if (found := dimensions.linear(size, name)) is not None
            ),
            key=lambda found: (found[2:] != (1, 0), found),
            default=(-1, 0, 1, 0),
        )
        if place < 0:
            raise Unsourceable("a size", f"no argument's shape has {name} alone")
        size = f"{leaves[place]}.shape[{axis}]"
        if summand:
            size = f"({size} {'-' if summand > 0 else '+'} {abs(summand)})"
        size = f"{size} // {factor}" if factor > 1 else size.strip("()") if summand else size
        sizes[names[name]] = f"{names[name]} = {size}"
        if (factor, summand) == (1, 0):
            read[place, axis] = name
    checks: list[str] = []
    for place, shape in enumerate(every.shapes):
        depends = [axis for axis, size in enumerate(shape) if dimensions.names([size])]
        if any((place, axis) not in read for axis in depends):
            listed = ", ".join(_with_names(size, names) for size in shape)
            expected = f"({listed}{',' if len(shape) == 1 else ''})"
            message = quoted(f"expected {leaves[place]} of shape {expected}")
            checks += (
                f"if {leaves[place]}.shape != {expected}:",
                f"    raise ValueError({message})",
            )
    used = identifiers("\n".join([text, *checks]))
    yield from (definition for name, definition in sizes.items() if name in used)
    yield from checks


def _proved(written: Written, every: EverySize, programs: Sequence[GivenProgram]) -> Written:
    """Compare a text with its program for the samples, further sizes, and symbolic ones."""
    proofs: list[set[str]] = []
    sizes: list[Sizes] = [*every.samples]
    for program in programs:
        _check_jaxpr(written, program)
        proofs.append(_compared(written, program))
    for found, program in further(every):
        proofs.append(_compared(written, program))
        sizes.append(found)
        if len(sizes) == len(programs) + _MOST:
            break
    if len(sizes) < len(programs) + _LEAST:
        raise NotTheSame(written.name, "the program takes too few sizes to compare")
    common = set.intersection(*proofs)
    ways: list[str] = [way for way in ("stablehlo", "bits") if way in common]
    if every.symbolic is not None and _is_same_symbolically(written, programs[0], every):
        ways.append(FOR_EVERY_SIZE)
        holds = f"Holds for every size of {', '.join(every.names)}."
    else:
        listed = [", ".join(f"{name}={size}" for name, size in one.items()) for one in sizes]
        ways.append(f"for {'; '.join(listed)}")
        holds = f"Compared for {'; '.join(listed)}."
    text = written.text.replace('\n"""\n', f'\n{textwrap.fill(holds, 88)}\n"""\n', 1)
    return replace(written, text=text, as_stablehlo=tuple(ways))


def _check_jaxpr(written: Written, program: GivenProgram) -> None:
    """Check that the text has the program's jaxpr, as that which was written for these sizes."""
    call = replace(program.call(), function=load(written))
    values = [argument.value for argument in call.arguments]
    with program.types():
        ours = written.counterpart(program.traced().jaxpr)
        difference = written.differs(ours, jax.make_jaxpr(call.flat)(*values))
    if difference is not None:
        raise NotTheSame(written.name, str(difference))


def _compared(written: Written, program: GivenProgram) -> set[str]:
    if program.origin is None:
        raise NotTheSame(written.name, "it has no StableHLO")
    with program.types():
        return {*lowers_again(written, program.call(), program.origin).as_stablehlo}


def _is_same_symbolically(written: Written, program: GivenProgram, every: EverySize) -> bool:
    """Return whether the text, exported with symbolic dimensions, is the same StableHLO."""
    original = every.symbolic
    if original is None:
        return False
    call = replace(program.call(), function=load(written))
    structs = [avals.struct(aval.shape, aval.dtype, avals.weak(aval)) for aval in original.in_avals]
    args, kwargs = jax.tree.unflatten(original.in_tree, structs)
    try:
        with program.types():
            exported = export.export(jax.jit(call.function), platforms=original.platforms)
            again = exported(*args, **kwargs)
    except Exception:  # noqa: BLE001 - JAX cannot trace each function for symbolic dimensions
        return False
    artifacts = (original.mlir_module_serialized, again.mlir_module_serialized)
    return not first_difference(*(canonical(artifact, INSIDE) for artifact in artifacts))
