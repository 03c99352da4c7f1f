"""JX333: operands of different dtypes or ranks where JAX does not promote them."""

from __future__ import annotations

import re

from jaxsight.rules.differences import public_dtype
from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "Operands of dtypes or ranks that JAX does not promote or accept.")

_SMALL = "8-bit floats and 4-bit integers are never promoted"
_STRICT = '`jax_numpy_dtype_promotion` is "strict" here: only Python numbers are promoted'


ERRORS = ErrorTable(RULE, "TypeError", "TypePromotionError", "ValueError")


@ERRORS.explains(
    r"Input dtypes \((?P<dtypes>[^)]*)\) have no available implicit dtype promotion path"
)
def of_promotion(error: Matched) -> Violation:
    operands, help = _operands(error)
    return Violation(
        f"JAX does not promote {operands} here",
        help=help,
        notes=(_STRICT if "=strict" in error.message else _SMALL,),
    )


@ERRORS.explains(
    r"(?P<function>lax\.\w+) requires arguments to have the same dtypes, got "
    r"(?P<dtypes>[\w, ]+)\."
)
def of_lax(error: Matched) -> Violation:
    operands, help = _operands(error)
    return Violation(
        f"`{error['function']}` needs operands of one dtype, not {operands}",
        help=f"{help}, or use the function of `jnp`, which promotes",
    )


def _operands(error: Matched) -> tuple[str, str]:
    """Return which operand has which dtype, and how to convert one of them."""
    found = re.findall(r"\w+", re.sub(r"<class '(\w+)'>", r"\1", error["dtypes"]))
    seen = error.arrays
    if len(seen) != 2 or len(found) != 2 or seen[0][1].dtype == seen[1][1].dtype:
        operands = " and ".join(map(quoted, found[:3]))
        return operands, "convert the operands to one dtype with `.astype(…)`"
    (first, a), (second, b) = seen
    widths = {
        dtype: ("float8" not in dtype, "float" in dtype, int(bits[0]) if bits else 0)
        for dtype in found
        for bits in [re.search(r"\d+", dtype)]
    }
    wanted = max(found, key=widths.__getitem__)
    digits = re.search(r"\d+", wanted)
    is_second = b.dtype.endswith(digits[0] if digits else wanted) and b.dtype[0] == wanted[0]
    converted = short(first if is_second else second)
    return (
        f"{quoted(first, most=20)} ({a.dtype}) and {quoted(second, most=20)} ({b.dtype})",
        f"convert one operand: `{converted}.astype({public_dtype(wanted)})`",
    )


@ERRORS.explains(
    r"(?P<function>and|or|xor|not) does not accept dtype (?P<dtype>\w+)(?: at position \d+)?\. "
    r"Accepted dtypes"
)
def of_dtype(error: Matched) -> Violation:
    sign = {"and": "&", "or": "|", "xor": "^", "not": "~"}[error["function"]]
    return Violation(
        f"{error.quoted(f'`{sign}`')} needs booleans or integers, not {error['dtype']}",
        help="put comparisons in parentheses, as in `(x > 0) & (y < 1)`; select numbers with "
        "`jnp.where`",
        notes=(f"`{sign}` binds tighter than comparisons",),
    )


ERRORS.table(r"""
\w+ does not accept dtype bool(?: at position \d+)?\. Accepted dtypes
    {value} computes with booleans
    help: convert them with `.astype(jnp.int32)`, or use `^` for a difference, `~` for a negation
\w+ does not accept dtype (?P<dtype>u?int\w*)(?: at position \d+)?\. Accepted dtypes
    {value} needs a float, not {dtype}
    help: convert it with `.astype(jnp.float32)`, or use the function of `jnp`, which does
pad operand and padding_value must be same dtype: got (?P<first>\w+) and (?P<second>\w+)
    `lax.pad` pads {first} with {second}
    help: pass the padding value in the dtype of the array: `jnp.zeros((), x.dtype)`
data type '(?P<name>[^']*)' not understood
    {name:q} is not the name of a dtype
    help: use a dtype such as `jnp.float32`, `jnp.bfloat16` or `jnp.int32`
""")


@ERRORS.explains(
    r"Operands could not be broadcast together for \w+ on shapes (?P<shapes>[\d, ()]+?) and "
    r"with the config option jax_numpy_rank_promotion='raise'"
)
def of_ranks(error: Matched) -> Violation:
    found = re.findall(r"\([\d, ]*\)", error["shapes"])
    ranks = [len(re.findall(r"\d+", shape)) for shape in found]
    low = ranks.index(min(ranks))
    named = [source for source, _ in error.arrays]
    name = named[low] if len(named) == len(found) else "x"
    axes = [*["None"] * (max(ranks) - ranks[low]), *["..."] * (ranks[low] > 0)]
    return Violation(
        f"{error.quoted('this operation')} needs more axes for shape {found[low]}",
        help=f"write the axes: `{short(name)}[{', '.join(axes)}]`",
        notes=(
            f"the shapes are {' and '.join(found)}",
            '`jax_numpy_rank_promotion` is "raise" here: operands need the same rank',
        ),
    )
