"""`with` statements for the context of an equation.

A context may set a mesh, a compute type, metadata for XLA, or how random bits are generated.
"""

from __future__ import annotations

import ast
from typing import Any

import jax

from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import call, is_identifier
from jaxsight_source.text.layout import flat
from jaxsight_source.values import public_names, spelling


def contexts(context: Any) -> list[ast.expr]:
    """Return context managers for the settings of an equation that are not the defaults.

    Most equations need none. Raise `Unwritable` for a mesh of devices that are not present, and for
    metadata whose names are not Python identifiers.
    """
    managers: list[ast.expr] = []
    config: Any = jax.config
    if context is None:
        return managers
    mesh = getattr(context, "cur_abstract_mesh", None)
    if mesh is not None and mesh.axis_names and mesh != jax.sharding.get_abstract_mesh():
        managers.append(call("jax.sharding.use_abstract_mesh", spelling.abstract_mesh(mesh)))
    if context.threefry_partitionable != config.jax_threefry_partitionable:
        managers.append(
            call("jax.threefry_partitionable", spelling.value(context.threefry_partitionable))
        )
    if context.compute_type is not None:
        managers.append(
            call(
                public_names.imported("jax.experimental.compute_on", "compute_on"),
                ast.Constant(context.compute_type),
            )
        )
    if context.xla_metadata:
        managers.append(metadata([], dict(context.xla_metadata)))
    return managers


def metadata(operands: list[ast.expr], entries: dict[str, object]) -> ast.expr:
    """Return a call of `set_xla_metadata`, on a value or as a context."""
    if not all(is_identifier(name) for name in entries):
        raise Unwritable(entries, "its names are not Python identifiers")
    named = {name: spelling.value(part) for name, part in entries.items()}
    return call(
        public_names.imported("jax.experimental.xla_metadata", "set_xla_metadata"),
        *operands,
        **named,
    )


def put_under(body: list[ast.stmt], start: int, managers: list[ast.expr]) -> None:
    """Move the statements from `start` on under `managers`, or into the same `with` before them."""
    if not managers or start == len(body):
        return
    before, inside = (body[start - 1] if start else None), body[start:]
    del body[start:]
    if isinstance(before, ast.With) and len(managers) == 1 and (
        flat(before.items[0].context_expr) == flat(managers[0])
    ):  # fmt: skip
        before.body.extend(inside)
        return
    for manager in reversed(managers):
        inside = [ast.With([ast.withitem(manager)], inside)]
    body.extend(inside)
