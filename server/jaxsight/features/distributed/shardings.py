"""What is said about the sharding of a value, besides its type, and pictures of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxsight.features.distributed import chosen_shardings
from jaxsight.figures.distributed.layout import layout, picture
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.text import Range
from jaxsight.text.markdown import fenced, prose, span
from jaxsight.wire.meshes import MANUAL, Chosen
from jaxsight.wire.observations import Seen

_SIZES = re.compile(r"\[([^\[\]]*)\]")
_SIZE = re.compile(r"(?:^|,)(\d+)(?:@(?:\([^()]*\)|\w+))?")


def notes(value: Seen) -> list[str]:
    """Return the type on one device, the mesh, and how devices differ, in Markdown.

    A value that is not an array, or is the same on all devices, has no notes.
    """
    sharding = value.sharding
    if sharding is None:
        return []
    words: list[str] = []
    if any(sharding.spec):
        words += [f"per device {span(_local(value))}", f"mesh {span(sharding.mesh.text)}"]
    if sharding.is_given:
        words.append("sharding given, not traced")
    if MANUAL in sharding.mesh.types:
        words.append("shape per device")
    if sharding.varying:
        words.append(f"varies over {_names(sharding.varying)}")
    if sharding.unreduced:
        words.append(f"not yet summed over {_names(sharding.unreduced)}")
    return words


def _names(axes: tuple[str, ...]) -> str:
    return ", ".join(map(span, axes))


def _local(value: Seen) -> str:
    """Return the type on one device."""
    match = _SIZES.search(value.text)
    if match is None or value.sharding is None:
        return value.text
    shape = tuple(int(size) for size in _SIZE.findall(match[1]))
    local = value.sharding.local_shape(shape) if len(shape) == len(value.sharding.spec) else shape
    return f"{value.text[: match.start()]}[{','.join(map(str, local))}]"


def traced_layouts(values: Sequence[Seen]) -> str:
    """Return a picture of the parts of a value whose sharding is traced, in Markdown.

    Empty if it is replicated, not an array, or if there are several values.
    """
    shardings = {value.sharding for value in values}
    sharding = shardings.pop() if len(shardings) == 1 else None
    if sharding is None or not any(sharding.spec) or MANUAL in sharding.mesh.types:
        return ""
    grid = layout(sharding.mesh, sharding.spec)
    return fenced(picture(grid), "text") if grid is not None else ""


def chosen_layouts(kernels: LocatedFigures, place: Range, values: Sequence[Seen]) -> str:
    """Return the sharding that the partitioner chose for an expression, in Markdown.

    Empty if it is unknown, or traced, or if the expression has several values.
    """
    chosen = chosen_sharding(kernels, place, values)
    if chosen is None:
        return ""
    parts = [prose(chosen_shardings.words(kernels, chosen))]
    if drawn := chosen_shardings.shown_layout(kernels, chosen):
        parts.append(fenced(drawn, "text"))
    return "\n\n".join(parts)


def chosen_sharding(kernels: LocatedFigures, place: Range, values: Sequence[Seen]) -> Chosen | None:
    """Return the sharding that the partitioner chose for an expression, if it is known."""
    texts = {value.text for value in values}
    if len(texts) != 1 or any(value.sharding is not None for value in values):
        return None
    return chosen_shardings.of_expression(kernels, place, texts.pop())
