"""How values are divided over devices: their types, and the meshes that they are divided over."""

from __future__ import annotations

from jaxsight.figures.figures import AnyFigures
from jaxsight.meshes.divided import divided_type
from jaxsight.wire.meshes import Chosen, Mesh, Sharding


def sharded_type(chosen: Chosen) -> str:
    """Return a global type with its axes as jaxprs write them: `bf16[1024@data,4096]`."""
    unreduced = f"{{U:{','.join(chosen.unreduced)}}}" if chosen.unreduced else ""
    return f"{divided_type(chosen.type, chosen.spec)}{unreduced}"


def mesh_of(figures: AnyFigures, chosen: Chosen) -> Mesh | None:
    """Return the mesh of the axes of a sharding; `None` if several of the program have them."""
    names = {name for axes in chosen.spec for name in axes} | set(chosen.unreduced)
    fitting = [mesh for mesh in figures.meshes if names <= {name for name, _ in mesh.axes}]
    return fitting[0] if len({mesh.axes for mesh in fitting}) == 1 else None


def local_type(chosen: Chosen, mesh: Mesh) -> str:
    """Return the type on one device."""
    dtype, _, sizes = chosen.type.rstrip("]").partition("[")
    shape = tuple(map(int, sizes.split(","))) if sizes else ()
    local = Sharding(mesh, chosen.spec).local_shape(shape) if len(shape) == len(chosen.spec) else ()
    return f"{dtype}[{','.join(map(str, local or shape))}]"


def partitioner(figures: AnyFigures) -> str:
    """Return the name of the partitioner of a program."""
    distribution = figures.lowered.request.distribution
    return "Shardy" if distribution is None or distribution.is_shardy else "GSPMD"
