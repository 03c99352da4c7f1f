"""The shardings that the partitioner chose for expressions, whose axes are automatic.

They are read from the program before it was partitioned, and belong to equations. An expression's
value is the result of an equation that is written there and has its global type; where several have
different shardings, none is shown.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from jaxsight.figures.distributed.layout import layout, picture
from jaxsight.figures.distributed.shardings import local_type, mesh_of, partitioner, sharded_type
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.source_text import SourceText
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Range
from jaxsight.text.units import count
from jaxsight.wire.meshes import Chosen, Mesh

_TYPE = re.compile(r"(\w+)\[([\d,]*)\]")
_SIGNED = re.compile(r"i(\d+)$")


def _hlo_type(text: str) -> str:
    """Return `s32[8]` for `i32[8]`, as HLO has it (xla/primitive_util.cc); empty for no array."""
    match = _TYPE.fullmatch(text.replace(" ", "").removeprefix("~"))
    if match is None:
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
        known = [chosen for chosen in results if chosen is not None]
        if known:
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
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name) and target.id == name:
                assigned.add(target)
                yield source.range(value).shifted(chunk.first_line)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id != name or node in assigned:
            continue
        if isinstance(node.ctx, ast.Store):
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


def copies(kernels: LocatedFigures, chosen: Chosen, mesh: Mesh) -> int:
    """Return how many devices have the same part of a value."""
    sizes = dict(mesh.axes)
    parts = math.prod(sizes[name] for axes in chosen.spec for name in axes)
    return kernels.compiled.devices // max(parts, 1)


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
        parts.append(f"per device `{local_type(chosen, mesh)}`")
        if (number := copies(kernels, chosen, mesh)) > 1:
            parts.append(count(number, "copy", "copies"))
    if chosen.unreduced:
        parts.append(f"not yet summed over {', '.join(chosen.unreduced)}")
    return " · ".join([*parts, choice])


def shown_layout(kernels: LocatedFigures, chosen: Chosen) -> str:
    """Return a picture of which devices have which part of a value; empty if it is replicated."""
    mesh = mesh_of(kernels, chosen)
    grid = layout(mesh, chosen.spec) if mesh is not None and any(chosen.spec) else None
    return picture(grid) if grid is not None else ""
