"""Abstract values with other shapes, dtypes and meshes. Applies to JAX 0.8 to 0.12.

Private API used: `core.ShapedArray`, which has no public constructor, and `core.ManualAxisType` of
what it varies over, which was `vma` before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
from jax._src import core
from jax._src.interpreters import partial_eval as pe

from jaxsight_repro.compat.mesh_equations import nonempty_spec, varying
from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Atom, Aval, DType, Equation, Var
from jaxsight_source.compat.pallas import is_reference
from jaxsight_source.compat.parameters import has_mesh
from jaxsight_source.compat.staging import stage


def retyped(
    aval: Aval, shape: tuple[int, ...], dtype: DType, axes: Mapping[str, int] | None = None
) -> Aval:
    """Return the type of an array, or of a reference to one, with another shape and dtype.

    It stays weak or strong.

    If the type has a mesh and `axes` are given, it gets the current mesh, without axes of size 0.

    Raises:
        TypeError: it is the type of something else, such as a token.
    """
    if is_reference(aval):
        of: Any = aval
        return cast(Aval, of.update(inner_aval=retyped(of.inner_aval, shape, dtype, axes)))
    if not isinstance(aval, core.ShapedArray):
        raise TypeError(f"{aval} is no type of arrays")
    mesh = jax.sharding.get_abstract_mesh()
    over: dict[str, Any] = {}
    if axes is not None and has_mesh(aval) and not mesh.empty:
        spec = nonempty_spec(cast(Any, aval).sharding.spec, axes)
        over["sharding"] = jax.sharding.NamedSharding(mesh, spec)
        left = frozenset(name for name in varying(aval) if axes.get(name, 1))
        manual: Any = getattr(core, "ManualAxisType", None)
        over |= {"vma": left} if manual is None else {"manual_axis_type": manual(varying=left)}
    make: Any = core.ShapedArray
    return cast(Aval, make(shape, dtype, weak_type=avals.weak(aval), **over))


def needed(
    inputs: Sequence[Var], equations: Sequence[Equation], outputs: Sequence[Atom]
) -> tuple[list[Equation], list[bool]]:
    """Return the equations that outputs need, and which inputs they read."""
    blank = stage(lambda *values: list(values), [var.aval for var in inputs]).program.jaxpr
    effects = frozenset(effect for equation in equations for effect in equation.effects)
    jaxpr = blank.replace(
        invars=list(inputs), outvars=list(outputs), eqns=list(equations), effects=effects
    )
    pruned, used, *_ = pe.dce_jaxpr(cast(Any, jaxpr), [True] * len(outputs))
    return list(cast(Any, pruned).eqns), list(used)
