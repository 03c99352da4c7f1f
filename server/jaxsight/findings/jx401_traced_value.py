"""JX401: a traced value is used as a Python bool, int, float, index, shape or NumPy array."""

from __future__ import annotations

from jaxsight.findings.explained import (
    Explained,
    aval,
    culprits,
    explained,
    is_a,
    quoted,
)
from jaxsight.tracer.protocol import Failure

CODE = "JX401"


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises JAX's conversion errors and the two `TypeError`s that mean the same."""
    message = failure.message
    kind = f" (`{aval(failure)}`)" if aval(failure) else ""
    names = culprits(failure)
    what = f"{quoted(expression)} needs a value that is only known when the function runs{kind}"
    if is_a(failure, "TracerBoolConversionError"):
        said = f"{what}: Python's `if`, `while`, `and`, `or`, `not` and `assert` cannot test it while JAX traces. "
        fix = "Choose with `jnp.where` or `jax.lax.cond`, combine with `&`, `|`, `~`"
    elif is_a(failure, "NonConcreteBooleanIndexError"):
        said = f"{what}: a boolean mask would give an array whose size is not known. "
        fix = "Keep the size with `jnp.where(mask, x, fill)`, or give `jnp.nonzero` a `size=`"
    elif is_a(failure, "TracerIntegerConversionError"):
        said = f"{what}: `range`, a Python index, or an argument of NumPy wants a Python `int`. "
        fix = "Loop with `jax.lax.fori_loop` or `jax.lax.scan`, index a `jnp` array"
    elif is_a(failure, "TracerArrayConversionError"):
        said = f"{what}: NumPy cannot compute with a traced array. "
        fix = "Use the function of the same name in `jax.numpy`"
    elif is_a(failure, "ConcretizationTypeError") and "problem arose with the" not in message:
        said = f"{what}: sizes, axes and numbers of repeats must be known while JAX traces. "
        fix = "Take the size from another array's `.shape`"
    elif is_a(failure, "ConcretizationTypeError"):
        said = f"{what}: `float`, `int`, `.item()` and the like would have to run the function. "
        fix = "Convert with `.astype(…)` or `jnp.asarray`"
    elif message.startswith("Shapes must be 1D sequences of concrete values"):
        said = f"{quoted(expression)} makes a shape from a traced value: shapes must be known while JAX traces. "
        fix = "Take the size from another array's `.shape`"
    elif is_a(failure, "IndexError") and "slice(" in message and "Tracer" in message:
        said = f"{quoted(expression)} slices with a traced value: how much is taken must be known while JAX traces. "
        fix = "Take so many from there with `jax.lax.dynamic_slice_in_dim(x, start, size)`, or keep all and choose with `jnp.where`"
        names = ""  # Only newer versions of JAX tell, and not of all bounds.
    elif "unhashable type" in message and "Tracer" in message:
        said = f"{quoted(expression)} looks a traced value up in a Python `dict` or `set`. "
        fix = "Index a `jnp` array, or choose with `jax.lax.switch`"
    else:
        return None
    static = (
        f", or make {names} static (`static_argnames`)."
        if names
        else ", or make the argument static."
    )
    return explained(CODE, said + fix + static, failure)
