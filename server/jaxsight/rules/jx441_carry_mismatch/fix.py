"""JX441: begin a loop with the dtype that its body returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.meshes.divided import array_type
from jaxsight.rules.differences import public_dtype
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx441_carry_mismatch.rule import CarryTypes
from jaxsight.rules.text.expressions import keyword, name_of
from jaxsight.source.text import Edit

_INIT = {"scan": (1, "init"), "while_loop": (2, "init_val"), "fori_loop": (3, "init_val")}
"""Where the initial carry is among the arguments, and its name."""
_DTYPE_AT = {
    "jax.numpy.zeros": 1, "jax.numpy.ones": 1, "jax.numpy.full": 2, "jax.numpy.array": 1,
    "jax.numpy.asarray": 1,
}  # fmt: skip
"""Where functions that make arrays have their dtype."""
_ITEM = re.compile(r"\[(\d+)\]")


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the call with the initial value converted, if integers become floats."""
    data = context.finding.data
    if not isinstance(data, CarryTypes):
        return
    before, after = array_type(data.before), array_type(data.after)
    if before is None or after is None or before.shape != after.shape:
        return
    if before.dtype[:3] not in ("int", "uin") or "float" not in after.dtype:
        return
    for call in context.find(ast.Call):
        at, name = _INIT.get(name_of(call), (0, ""))
        init = keyword(call, name) or (call.args[at] if name and at < len(call.args) else None)
        item = _item(init, data.path)
        if item is not None and context.jnp:
            dtype = public_dtype(after.dtype).replace("jnp", context.jnp)
            edit = _with_dtype(context, item, dtype) or context.replace(
                item, f"{context.jnp}.asarray({context.text(item)}, {dtype})"
            )
            yield Candidate(f"Begin with {after.dtype}", (edit,), same=False)
            return


def _with_dtype(context: FixContext, item: ast.expr, dtype: str) -> Edit | None:
    """Return the edit of the dtype of `jnp.zeros((), int)` and the like."""
    if not isinstance(item, ast.Call):
        return None
    at = _DTYPE_AT.get(context.called(item.func), 0)
    positional = item.args[at] if at and at < len(item.args) else None
    given = keyword(item, "dtype") or positional
    return context.replace(given, dtype) if given is not None and at else None


def _item(init: ast.expr | None, path: str) -> ast.expr | None:
    """Return the part of the initial carry at a path, if the carry is written there."""
    if init is None or not path:
        return init
    at = _ITEM.fullmatch(path)
    if at is None or not isinstance(init, ast.Tuple | ast.List) or int(at[1]) >= len(init.elts):
        return None
    return init.elts[int(at[1])]


REMEDY = Remedy("an initial carry of the result's dtype (unsafe)", candidates)
