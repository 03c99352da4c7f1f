"""What is said about the sharding of a value, besides its type, and pictures of it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from jaxsight.figures.shardings import (
    layout,
    local_type,
    mesh_of,
    partitioner,
    picture,
    sharded_type,
)
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Range, SourceText
from jaxsight.text.markdown import fenced, prose, span
from jaxsight.text.units import count
from jaxsight.wire.meshes import MANUAL, Chosen, Mesh, Sharding, Spec
from jaxsight.wire.observations import ExprValue


def notes(value: ExprValue) -> list[str]:
    """Return the type on one device, the mesh, and how devices differ, in Markdown.

    A value that is not an array, or is the same on all devices, has no notes.
    """
    if (sharding := value.sharding) is None:
        return []
    words: list[str] = []
    if any(sharding.spec):
        words += [
            f"per device {span(local_type(value.text, sharding))}",
            f"mesh {span(sharding.mesh.text)}",
        ]
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


def traced_layouts(values: Sequence[ExprValue]) -> str:
    """Return a picture of the parts of a value whose sharding is traced, in Markdown.

    Empty if it is replicated, not an array, or if there are several values.
    """
    shardings = {value.sharding for value in values}
    sharding = shardings.pop() if len(shardings) == 1 else None
    if sharding is None or not any(sharding.spec) or MANUAL in sharding.mesh.types:
        return ""
    return _picture(sharding.mesh, sharding.spec)


def _picture(mesh: Mesh | None, spec: Spec) -> str:
    """Return which devices have which part of a value; empty if it is replicated, or unknown."""
    grid = layout(mesh, spec) if mesh is not None and any(spec) else None
    return fenced(picture(grid), "text") if grid is not None else ""


def chosen_layouts(kernels: LocatedFigures, place: Range, values: Sequence[ExprValue]) -> str:
    """Return the sharding that the partitioner chose for an expression, in Markdown.

    Empty if it is unknown, or traced, or if the expression has several values.
    """
    if (chosen := chosen_sharding(kernels, place, values)) is None:
        return ""
    drawn = _picture(mesh_of(kernels, chosen), chosen.spec)
    return "\n\n".join(filter(None, (prose(words(kernels, chosen)), drawn)))


def chosen_sharding(
    kernels: LocatedFigures, place: Range, values: Sequence[ExprValue]
) -> Chosen | None:
    """Return the sharding that the partitioner chose for an expression, if it is known."""
    texts = {value.text for value in values}
    if len(texts) != 1 or any(value.sharding is not None for value in values):
        return None
    return of_expression(kernels, place, texts.pop())


# The shardings that the partitioner chose for expressions, whose axes are automatic.


_TYPE = re.compile(r"(\w+)\[([\d,]*)\]")
_SIGNED = re.compile(r"i(\d+)$")


def _hlo_type(text: str) -> str:
    """Return `s32[8]` for `i32[8]`, as HLO has it (xla/primitive_util.cc); empty for no array."""
    if (match := _TYPE.fullmatch(text.replace(" ", "").removeprefix("~"))) is None:
        return ""
    dtype = "pred" if match[1] == "bool" else _SIGNED.sub(r"s\1", match[1])
    return f"{dtype}[{match[2]}]"


def of_expression(kernels: LocatedFigures, place: Range, type: str) -> Chosen | None:
    """Return the sharding of the value of an expression, target or parameter, if it is known.

    Args:
        kernels: of the current text.
        place: the range of the expression.
        type: the global type, as in jaxprs.
    """
    if kernels.compiled.devices == 1 or not (wanted := _hlo_type(type)):
        return None
    name = kernels.view.module.slice_text(place)
    bound = list(_bound(kernels, place, name)) if name.isidentifier() else []
    # The value of a name is looked at, too, if exactly one statement assigns it.
    values = [value for value in bound if value is not None and len(bound) == 1]
    for range in (place, *values):
        results = (kernels.sharding(path, wanted) for path in kernels.written.get(range, ()))
        if known := [chosen for chosen in results if chosen is not None]:
            is_certain = len({(chosen.spec, chosen.unreduced) for chosen in known}) == 1
            return known[0] if is_certain else None
    # A parameter of the function by its name, unless it is bound again.
    chunk = kernels.view.module.chunk_at(place.start)
    is_inside = name.isidentifier() and place.start in kernels.view.subject_range
    if not is_inside or any(bound) or chunk is None or chunk.broken is not None:
        return None
    nodes = ast.walk(tree_of(chunk.text))
    if sum(isinstance(node, ast.arg) and node.arg == name for node in nodes) != 1:
        return None  # an inner function has such a parameter too
    named = (chosen for own, chosen in kernels.argument_shardings if own == name)
    return next((chosen for chosen in named if chosen.type == wanted), None)


def _bound(kernels: LocatedFigures, place: Range, name: str) -> Iterator[Range | None]:
    """Yield the range of the value of each binding of a name in the statement at a place.

    `None` for a binding that is not a plain assignment.
    """
    view = kernels.view
    chunk = view.module.chunk_at(place.start)
    if chunk is None or chunk.broken is not None:
        return
    source = SourceText(chunk.text)
    assigned: set[ast.AST] = set()
    tree = tree_of(chunk.text)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=bound) as target], value=value) if bound == name:
                assigned.add(target)
                yield source.range(value).shifted(chunk.first_line)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=bound, ctx=ast.Store()) if bound == name and node not in assigned:
                yield None


def chosen_axes(chosen: Chosen) -> str:
    """Return the axes of a sharding after a type, as the compiler's choice: `@ (data, -)`.

    Each dimension has its axis, or `-`, or several as `(data, model)`.
    """
    names = [
        f"({', '.join(axes)})" if len(axes) > 1 else next(iter(axes), "-") for axes in chosen.spec
    ]
    unreduced = f" unreduced {', '.join(chosen.unreduced)}" if chosen.unreduced else ""
    return f"@ ({', '.join(names)}){unreduced}"


def is_replicated(chosen: Chosen) -> bool:
    """Return whether every device has the whole value."""
    return not any(chosen.spec) and not chosen.unreduced


def words(kernels: LocatedFigures, chosen: Chosen) -> str:
    """Return how a value is distributed, in words for a hover: one line of Markdown's prose.

    The text is ``bf16[1024@data,4096]`, per device `bf16[512,4096]`, 4 copies``.
    """
    choice = f"the compiler's choice ({partitioner(kernels)})"
    devices = kernels.compiled.devices
    if is_replicated(chosen):
        return f"replicated on {devices} devices · {choice}"
    mesh = mesh_of(kernels, chosen)
    parts = [f"`{sharded_type(chosen)}`"]
    if mesh is not None:
        parts.append(f"per device `{local_type(chosen.type, Sharding(mesh, chosen.spec))}`")
        sizes = dict(mesh.axes)
        different = math.prod(sizes[name] for axes in chosen.spec for name in axes)
        if (copies := devices // max(different, 1)) > 1:
            parts.append(count(copies, "copy", "copies"))
    if chosen.unreduced:
        parts.append(f"not yet summed over {', '.join(chosen.unreduced)}")
    return " · ".join([*parts, choice])
