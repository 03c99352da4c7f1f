"""Write the arguments of a call as the lines of an *Example inputs* section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import jax

from jaxsight.meshes.compat import shardings
from jaxsight.recording.expressions import Built, Expressions, Reachable, not_built
from jaxsight.recording.notation import Meshes, Notation, UnwritableError
from jaxsight.wire.meshes import MANUAL

_MESH = "mesh"


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as text."""

    text: str
    """The lines of a section. Arguments that cannot be written have none."""
    unwritten: tuple[tuple[str, str], ...] = ()
    """These arguments, each with the reason."""


def write_call(
    arguments: Iterable[tuple[str, object]],
    namespace: Mapping[str, object],
    built: Built = not_built,
) -> WrittenCall:
    """Return the arguments of a call as text.

    Args:
        arguments: by parameter, in order: `*args` with a star as a tuple, `**kwargs` with two as a
            dict. Arrays may be concrete, traced or abstract.
        namespace: the globals of the function's module, which expressions read.
        built: returns the call that built an object, where it was observed.
    """
    expressions = Expressions(Reachable(namespace), built)
    lines: list[str] = []
    unwritten: list[tuple[str, str]] = []
    meshes = Meshes()
    notation = Notation(meshes)
    # The mesh that `jax.set_mesh` has put in effect.
    context = jax.sharding.get_abstract_mesh()
    if not context.empty:
        mesh = shardings.mesh(context)
        if MANUAL in mesh.types:
            raise UnwritableError("it is called inside a `shard_map`")
        meshes.take(mesh)
    for name, value in arguments:
        if name == _MESH and isinstance(value, jax.sharding.Mesh):
            meshes.take(shardings.mesh(value))
            continue
        try:
            lines.append(f"{name}: {notation.write(value, name)}")
            continue
        except UnwritableError as error:
            reason = str(error)
        try:
            if name.startswith("*"):
                raise UnwritableError(reason)
            lines.append(f"{name} = {expressions.write(value, name)}")
        except UnwritableError as error:
            unwritten.append((name, str(error)))
    if meshes.text:
        lines.insert(0, f"{_MESH}: {meshes.text}")
    return WrittenCall("\n".join(lines), tuple(unwritten))
