"""What an equation was made under, as `with` statements: where it computes, metadata for the compiler, the generator of random bits."""

from __future__ import annotations

from typing import Any

import jax

from jaxsight.sourcerizer import spelling
from jaxsight.sourcerizer.exprs import Expr, call, is_identifier
from jaxsight.sourcerizer.layout import flat
from jaxsight.sourcerizer.module import Statement, With


def contexts(context: Any) -> list[Expr]:
    """Managers that an equation's context asks for, beyond what holds anyway; none for most.

    Raises `Unwritable` for metadata whose names are no names of Python.
    """
    found: list[Expr] = []
    config: Any = jax.config
    if context is None:
        return found
    if context.threefry_partitionable != config.jax_threefry_partitionable:
        found.append(
            call("jax.threefry_partitionable", spelling.value(context.threefry_partitionable))
        )
    if context.compute_type is not None:
        found.append(
            call(
                _imported("jax.experimental.compute_on", "compute_on"),
                spelling.text(context.compute_type),
            )
        )
    if context.xla_metadata:
        found.append(metadata([], dict(context.xla_metadata)))
    return found


def metadata(operands: list[Expr], given: dict[str, Any]) -> Expr:
    """`set_xla_metadata`, of a value or as a context."""
    if not all(is_identifier(name) for name in given):
        raise spelling.Unwritable(given, "its names are no names of Python")
    named = {name: spelling.value(part) for name, part in given.items()}
    return call(_imported("jax.experimental.xla_metadata", "set_xla_metadata"), *operands, **named)


def _imported(module: str, name: str) -> str:
    path = f"{module}.{name}"
    spelling.modules[path] = module
    return path


def place(body: list[Statement], start: int, managers: list[Expr]) -> None:
    """Puts the statements from `start` on under `managers`, together with those before that stand there already."""
    if not managers or start == len(body):
        return
    inside = body[start:]
    for manager in reversed(managers):
        inside = [With(manager, inside)]
    (made,) = inside
    before = body[start - 1] if start else None
    del body[start:]
    if (
        isinstance(before, With)
        and isinstance(made, With)
        and len(managers) == 1
        and flat(before.context) == flat(made.context)
    ):
        before.body.extend(made.body)
    else:
        body.append(made)
