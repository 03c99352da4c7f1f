"""JX330: shapes that do not fit an operation: broadcasts, products, reshapes, joins, axes."""

# Longer than most rules: a table of 36 errors, of which ten need the shapes of the call.

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from jaxsight.rules.differences import shape_text
from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import parsed_statement, unpacked
from jaxsight.rules.wording import fitting, quoted, short

RULE = Rule(__name__, "Shapes that do not fit an operation.")

Shape = tuple[int, ...]
_MOST = 6
"""Axes of the longer shape for which places of new axes are tried: more have no one place."""
_SCALAR = (
    "make it an array or a tuple where it is made: the initial carry of a loop has the structure "
    "that its body takes apart, such as `(a, b)`"
)
_ALIGNED = "axes are aligned from the right, and each pair must be equal or 1"
_CONTRACTED = "make the last axis of the first operand and the second to last of the other equal"

ERRORS = ErrorTable(RULE, "TypeError", "ValueError", "IndexError")


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize values that are unpacked, then JAX's own errors."""
    match parsed_statement(error.line.strip()):
        case ast.Assign(value=value) if error.is_key(value):
            return None  # JX334's
    return _of_unpacked(error) or ERRORS.explain(error)


def _of_unpacked(error: RaisedError) -> Violation | None:
    """Return what is said of an array that is unpacked into another number of names."""
    if (parts := unpacked(error.line)) is None:
        return None
    targets, value = parts
    type = error.operand(value)
    if type is None or any(isinstance(each, ast.Starred) for each in targets):
        return None
    names, source, shape = len(targets), quoted(ast.unparse(value), most=30), type.shape
    if error.message.startswith("iteration over a 0-d array") and not shape:
        return Violation(f"{source} is a scalar, but unpacked into {names} values", help=_SCALAR)
    if not re.match(r"too many values to unpack|not enough values to unpack", error.message):
        return None
    if not shape or shape[0] == names:
        return None
    items = "rows" if len(shape) > 1 else "items"
    columns = "; unpack columns with `.T`" if names in shape[1:2] else ""
    return Violation(
        f"{source} has {shape[0]} {items}, but is unpacked into {names} values",
        help=f"unpacking takes axis 0 apart: use as many names as it is long{columns}",
        notes=(f"its shape is {shape_text(shape)}",),
    )


def _conflict(shapes: Sequence[Shape]) -> tuple[int, Shape, Shape] | None:
    """Return the first axis from the right, from 1, with two sizes but 1, and the two shapes."""
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        sized = [shape for shape in shapes if len(shape) >= axis and shape[-axis] != 1]
        for one, other in combinations(sized, 2):
            if one[-axis] != other[-axis]:
                return axis, one, other
    return None


def _added_axes(first: Shape, second: Shape) -> list[str]:
    """Return the indices that add axes to the shorter shape so that both broadcast: `:, None`."""
    low, high = sorted((first, second), key=len)
    if not low or len(low) == len(high) or len(high) > _MOST or 1 in low:
        return []
    return [
        ", ".join(":" if at in kept else "None" for at in range(kept[0], len(high)))
        for kept in combinations(range(len(high)), len(low))
        if all(high[at] == size for at, size in zip(kept, low, strict=True))
    ]


def _shape(text: str) -> Shape:
    return tuple(int(size) for size in re.findall(r"-?\d+", text))


def _shapes(text: str) -> list[Shape]:
    return [_shape(each) for each in re.findall(r"\([\d, ]*\)", text)]


def _listed(shapes: Sequence[Shape]) -> str:
    return ", ".join(map(shape_text, shapes[:3]))


def _source(error: Matched, shape: Shape) -> str:
    """Return the source of the only operand of a shape, or an empty string."""
    found = {source for source, type in error.arrays if type.shape == shape}
    return found.pop() if len(found) == 1 else ""


def _rewritten(source: str, suffix: str) -> str:
    return f"{source if source.isidentifier() else f'({source})'}{suffix}"


@ERRORS.explains(
    r"(?:\w+ got incompatible shapes for broadcasting: |operands could not be broadcast together "
    r"with shapes |Incompatible shapes for broadcasting: "
    r"(?:shapes=\[)?)(?P<shapes>(?:np\.int64|[\d, ()])+)\]?\.?$"
)
def of_broadcast(error: Matched) -> Violation | None:
    if error.name.startswith("conv"):
        return None  # of the windows: JAX computes with their sizes
    shapes = _shapes(re.sub(r"np\.int64\((\d+)\)", r"\1", error["shapes"]))
    found = _conflict(shapes)
    if found is None:
        return Violation(f"cannot broadcast {_listed(shapes)}", notes=(_ALIGNED,))
    axis, *pair = found
    sizes = [shape[-axis] for shape in pair]
    names, texts = [_source(error, shape) for shape in pair], list(map(shape_text, pair))
    subjects = [
        f"{quoted(name, most=20)} {text}" if name else text
        for name, text in zip(names, texts, strict=True)
    ]
    says = "cannot broadcast {} and {}: axis -{} is {} and {}".format
    shortened = abs(sizes[0] - sizes[1]) == 1 and (
        min(sizes) > 8 or any("diff(" in name or ":]" in name for name in names)
    )
    help, data = _made_equal(names, pair, shortened=shortened)
    message = fitting(says(*subjects, axis, *sizes), says(*texts, axis, *sizes))
    return Violation(message, help=help, notes=(_ALIGNED,), data=data)


def _made_equal(
    names: Sequence[str], shapes: Sequence[Shape], *, shortened: bool
) -> tuple[str, tuple[str, str] | None]:
    """Return what makes two operands broadcast, and its edit if there is only one."""
    first, second = shapes
    shorter, axes = names[len(first) > len(second)], _added_axes(first, second)
    if axes and shorter:
        rewritten = [_rewritten(shorter, f"[{each}]") for each in axes[:2]]
        choices = " or ".join(f"`{short(each)}`" for each in rewritten)
        return f"add an axis: {choices}", (shorter, rewritten[0]) if len(axes) == 1 else None
    if len(first) == len(second) == 2 and first == second[::-1] and names[1]:
        return f"transpose one of them: `{short(_rewritten(names[1], '.T'))}`", None
    if shortened:
        return "slice the longer one, as in `x[1:]` or `x[:-1]`, or pad the shorter", None
    if len(first) == len(second) == 1 and names[0]:
        pairs = short(_rewritten(names[0], "[:, None]"))
        return f"make the axes equal; for all pairs add an axis: `{pairs}`", None
    return (
        "make the axes equal or 1: an index with `None`, as in `x[..., None, :]`, gives sizes that "
        "differ an axis of their own"
    ), None


@ERRORS.explains(
    r"Incompatible (?:shapes|types) for broadcasting: (?:input type=\w+\[)?\(?(?P<given>[\d, ]*)"
    r"[\])] and requested (?:shape |type=\w+\[)\(?(?P<wanted>[\d, ]*)[\])]"
)
def of_requested(error: Matched) -> Violation:
    given, wanted = _shape(error["given"]), shape_text(_shape(error["wanted"]))
    name = _source(error, given)
    subject = f"{f'{quoted(name, most=24)} of shape' if name else 'shape'} {shape_text(given)}"
    match error.call:
        case ast.Call(func=ast.Attribute(value=ast.Subscript() as items)):
            place = quoted(ast.unparse(items), most=24)
            return Violation(
                f"cannot write {subject} to {place} of shape {wanted}",
                help="index as many items as are written, or give the value the shape of the items",
            )
    return Violation(
        f"cannot broadcast {subject} to {wanted}",
        help="make its axes equal or 1, aligned from the right, or add axes with `[..., None]`",
    )


@ERRORS.explains(
    r"dot_general requires contracting dimensions to have the same shape, got "
    r"\((?P<left>[\d, ]*)\) and \((?P<right>[\d, ]*)\)"
)
def of_product(error: Matched) -> Violation:
    sizes = f"{error['left'].rstrip(',')} and {error['right'].rstrip(',')}"
    if len(error.arrays) < 2:
        message = f"{error.quoted('product')} contracts axes of different sizes: {sizes}"
        return Violation(message, help=_CONTRACTED)
    (first, a), (second, b) = ((source, type.shape) for source, type in error.arrays[-2:])
    texts = [shape_text(a), shape_text(b)]
    named = f"{quoted(first, most=20)} {texts[0]} and {quoted(second, most=20)} {texts[1]}"
    says = f"product of {{}} contracts axes of {sizes}".format
    old = ""
    if len(a) == len(b) == 2:
        old = second if a[1] == b[1] != a[0] else first if a[0] == b[0] != b[1] else ""
    new = _rewritten(old, ".T")
    return Violation(
        fitting(says(named), says(" and ".join(texts))),
        help=f"transpose one of them: `{short(new)}`" if old else _CONTRACTED,
        data=(old, new) if old else None,
    )


@ERRORS.explains(
    r"cannot reshape array of shape \((?P<shape>[\d, ]*)\) \(size (?P<size>\d+)\) into shape "
    r"[\[(]?(?P<wanted>[-\d, ]*)[\])]?"
)
def of_reshape(error: Matched) -> Violation:
    size, wanted = int(error["size"]), _shape(error["wanted"])
    many = f" to {math.prod(wanted):,}" if -1 not in wanted else ""
    return Violation(
        f"cannot reshape ({error['shape']}) into {shape_text(wanted)}: {size:,} elements{many}",
        help=_reshaped(size, wanted, error.call),
    )


def _reshaped(size: int, wanted: Shape, call: ast.Call | None) -> str:
    """Return which shape may be meant: several arguments as one tuple, or a size as -1."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="jnp")), args=[array, _, _, *_] as given
        ):
            sizes = ", ".join(map(ast.unparse, given[1:]))
            text = f"jnp.reshape({ast.unparse(array)}, ({sizes}))"
            return f"pass the shape as one tuple: `{short(text)}`"
    for at in (len(wanted) - 1, 0) if -1 not in wanted and len(wanted) > 1 else ():
        others = math.prod(wanted[:at]) * math.prod(wanted[at + 1 :])
        if others and size % others == 0:
            sizes = ", ".join(str(-1 if at == i else each) for i, each in enumerate(wanted))
            return f"let -1 stand for the size that follows, here {size // others}: `({sizes})`"
    return "use sizes whose product is that of the array, one of which may be -1"


@ERRORS.explains(
    r"Cannot concatenate arrays with different numbers of dimensions: got (?P<shapes>[\d, ()]+)"
)
def of_ranks(error: Matched) -> Violation:
    shapes = _shapes(error["shapes"])
    low = min(shapes, key=len)
    last = ", ".join(["...", *["None"] * (max(map(len, shapes)) - len(low))])
    added = f"{short(_source(error, low) or 'x')}[{last}]"
    return Violation(
        f"cannot join arrays of different rank: {_listed(shapes)}",
        help=f"add an axis, as in `{added}`, or join along a new axis: `jnp.stack`",
    )


@ERRORS.explains(
    r"Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
    r"concatenated: concatenating along dimension (?P<axis>\d+) for shapes (?P<shapes>[\d, ()]+)"
)
def of_join(error: Matched) -> Violation:
    shapes, axis = _shapes(error["shapes"]), int(error["axis"])
    sizes = enumerate(zip(*shapes, strict=False))
    differing = [at for at, of_axis in sizes if len(set(of_axis)) > 1]
    help = "make all other axes equal: slice or pad"
    if len(differing) == 1:
        help = f"join along the axis in which they differ: `axis={differing[0]}`"
    others = ", ".join(str(at) for at in differing if at != axis)
    return Violation(
        f"cannot join along axis {axis}: shapes {_listed(shapes)} differ in axis {others}",
        help=help,
    )


@ERRORS.explains(r"All input arrays must have the same shape\.(?: Got (?P<shapes>[\d, ()]+))?")
def of_stack(error: Matched) -> Violation:
    shapes = _shapes(error["shapes"]) or [type.shape for _, type in error.arrays]
    return Violation(
        f"cannot stack arrays of different shapes: {_listed(shapes)}".rstrip(": "),
        help="pad them to one shape, or join them along an axis with `jnp.concatenate`",
    )


@ERRORS.explains(
    r"Too many indices: (?:array is )?(?P<rank>\d+)-dimensional(?:,| array) (?:but|indexed with) "
    r"(?P<count>\d+) "
)
def of_indices(error: Matched) -> Violation | None:
    if error.is_key(next(iter(error.operands), None)):
        return None  # JX334's
    axes = "one axis" if error["count"] == "1" else f"{int(error['count'])} axes"
    if error["rank"] == "0":
        return Violation(f"{error.quoted()} indexes {axes} of a scalar", help=_SCALAR)
    return Violation(
        f"{error.quoted()} indexes {axes} of an array of rank {error['rank']}",
        help="use one index for each axis; `None` adds an axis, `...` stands for those in between",
    )


@ERRORS.explains(r"Cannot interpret '(?P<given>[-\d.]+)' as a data type")
def of_sizes(error: Matched) -> Violation:
    sizes = [
        ast.unparse(each)
        for each in error.arguments
        if (error.operand_text(each) or ast.unparse(each)).isdecimal()
    ]
    name = quoted(error.called, "this function", most=30)
    return Violation(
        f"{name} gets {error['given']} as its dtype: the shape is not a tuple",
        help=f"pass the shape as one tuple: `({', '.join(sizes)})`"
        if len(sizes) > 1
        else "a shape is one argument: write a tuple, as in `jnp.zeros((3, 4))`",
    )


ERRORS.table(r"""
dot_general requires lhs batch dimensions and rhs batch dimensions to have the same shape, got
        (?P<left>\([\d, ]*\)) and (?P<right>\([\d, ]*\))
    batch axes of the operands of {expression:q} differ: {left} and {right}
    help: make the leading axes equal, or 1 for `jnp.matmul`
axis (?P<axis>-?\d+) is out of bounds for array of dimension 0\b
    axis {axis} of {value}, whose array has no axis
    help: remove `axis=`: a scalar has no axis
axis (?P<axis>-?\d+) is out of bounds for array of dimension (?P<rank>\d+)
    axis {axis} of {value}, whose array has rank {rank}
    help: use an axis of the array: they count from 0, and -1 is the last one
    unless: \b[vp]map\(
Shapes must be 1D sequences of concrete values of integer type, got
        (?P<sizes>\([-\d., ]*\d\.[-\d., ]*\))
    {expression:q} has a size that is a float: {sizes}
    help: use integers: `//` divides without a remainder, `int(…)` converts a number
shape argument of (?P<function>[\w.]+) must be a sequence, got (?P<size>\d+)
    shape of `{function}` is the number {size}, not a tuple
    help: pass the shape as a tuple: `({size},)`
(?:'float' object cannot be interpreted as an integer)
    {expression:q} gets a float where a size, a count or an axis is needed
    help: use integers: `//` divides without a remainder, `int(…)` converts a number
can only specify one unknown axis size with a `-1` value, got (?P<wanted>\([-\d, ]*\))
    shape {wanted} has several sizes of -1
    help: write all sizes but one: -1 stands for the only unknown one
\w+ shape must have every element be nonnegative, got (?P<wanted>\([-\d, ]*\))
    shape {wanted} of {expression:q} has a negative size
    help: use sizes of at least 0; -1 stands for a size only in `reshape`
(?P<function>\w+): arrays must have the same number of dimensions, got \{(?P<ranks>[\d, ]+)\}
    `lax.{function}` gets arrays of ranks {ranks}, and does not broadcast
    help: use the operator or the function of `jnp`, which broadcast, or add axes with `[None]`
select `which` must be scalar or have the same shape as cases, got `which` shape (?P<which>\([\d,
        ]*\)) but case shape (?P<case>\([\d, ]*\))
    `lax.select` gets a condition of shape {which} for cases of shape {case}
    help: use `jnp.where`, which broadcasts, or add axes to the condition with `[:, None]`
Incompatible types for matmul arguments: \w+\[(?P<left>[\d,]*)\] and \w+\[(?P<right>[\d,]*)\]
    product of shapes ({left}) and ({right}): batch or contracted axes differ
    help: multiply `(..., n, k)` by `(..., k, m)`: leading axes are equal or 1; for other axes use
        `jnp.einsum`
matmul input operand (?P<which>\d) must have ndim at least 1, but it has ndim 0
    operand {which} of {expression:q} is a scalar
    help: multiply by a scalar with `*`: `@` needs at least one axis
inconsistent size for core dimension '\w': (?P<one>\d+) vs (?P<other>\d+) on vectorized function .*?
        and signature=(?P<signature>'[^']*')
    axes of {expression:q} differ in size: {one} and {other}
    help: give axes of one letter one size: {signature}
Argument to (?P<function>\w+) must have shape \[\.\.\., n, n\], got (?P<shape>\([\d, ]*\))
    `{function}` needs square matrices, not shape {shape}
    help: make the last two axes equal; for others use `jnp.linalg.lstsq` or `jnp.linalg.pinv`
(?P<function>dynamic_update_slice) update must have the same rank as operand, got update shape
        (?P<update>\([\d, ]*\)) for operand shape (?P<shape>\([\d, ]*\))
    `{function}` writes shape {update} into an array of shape {shape}
    help: add the axes that are missing with `[None]`, or write `x.at[i].set(row)`
(?:\w+ )?slice_sizes must be less than or equal to operand shape, got slice_sizes (?P<sizes>\([\d,
        ]*\)) for operand shape (?P<shape>\([\d, ]*\))
    slice of sizes {sizes} does not fit into shape {shape}
    help: take at most the whole axis: pad the array, or make the size smaller
(?P<function>dynamic_update_slice) update shape must be smaller than operand shape, got update shape
        (?P<update>\([\d, ]*\)) for operand shape (?P<shape>\([\d, ]*\))
    `{function}` writes shape {update} into an array of shape {shape}
    help: write at most as much as the array has: slice the update, or allocate more
Length of slice indices must match number of operand dimensions \((?P<count>\d+) vs (?P<shape>\([\d,
        ]*\))\)
    {count} start indices for an array of shape {shape}
    help: give one index for each axis, or slice along one axis: `jax.lax.dynamic_slice_in_dim(x,
        start, size, axis)`
array split does not result in an equal division
    {expression:q} has sections of different sizes
    help: split into a number that divides the axis, pass the indices of the cuts, or use
        `jnp.array_split`
cannot select an axis to squeeze out which has size not equal to one, got shape=(?P<shape>\([\d,
        ]*\)) and dimensions=(?P<axes>\([\d, ]*\))
    {expression:q} removes axes {axes} of shape {shape}, which are not 1
    help: squeeze axes of size 1; take an item of another with an index, or reduce it
indices and arr must have the same number of dimensions; (?P<one>\d+) vs\. (?P<other>\d+)
    `take_along_axis` gets indices of rank {one} for an array of rank {other}
    help: add the axis with `indices[..., None]`: the result has the shape of the indices
k argument to top_k must be no larger than size along axis; got k=(?P<k>\d+) with
        shape=(?P<shape>\[[\d, ]*\])
    `top_k` takes {k} of an axis that is shorter: {shape}
    help: use `min(k, x.shape[axis])`
Indexer must have integer or boolean type, got indexer with type (?P<type>\w+)
    {expression:q} indexes with {type}
    help: index with integers: `.astype(jnp.int32)`, or `//` in place of `/`
JAX does not support string indexing; got idx=(?P<name>'[^']*')
    {expression:q} indexes an array by a name
    help: index by position; keep named arrays in a `dict` or a dataclass, which is a pytree
(?:len\(\) of unsized object|iteration over a 0-d array)
    {expression:q} needs an axis, but its array is a scalar
    help: use `jnp.atleast_1d(x)`, or `x.size`; do not loop over a scalar
jnp\.pad: pad_width with \w+=(?P<rank>\d+) has unsupported shape (?P<shape>\([\d, ]*\))
    `pad_width` of shape {shape} for an array of rank {rank}
    help: write one pair `(before, after)` for each axis
transpose permutation isn't a permutation of operand dimensions, got permutation (?P<axes>\([-\d,
        ]*\)) for operand shape (?P<shape>\([\d, ]*\))
    axes {axes} of {expression:q} do not order the axes of shape {shape}
    help: name each axis once, counted from 0, or swap two with `jnp.swapaxes`
conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs
        input feature dimension size, but (?P<lhs>\d+) // (?P<groups>\d+) != (?P<rhs>\d+)
    convolution of {lhs} channels with a kernel for {rhs} ({groups} groups)
    help: check `dimension_numbers`: the kernel's `I` axis is the image's `C` axis divided by
        `feature_group_count`
""")


# The fix: add an axis, or transpose, where that makes shapes fit in one way only.


@RULE.fixes("an added axis, or a transpose (unsafe)")
def candidates(context: FixContext, operand: tuple[str, str]) -> Iterator[Candidate]:
    """Yield the expression with the operand rewritten."""
    old, new = operand
    for node in context.nodes:
        if isinstance(node, ast.expr) and ast.unparse(node) == old:
            yield context.replaced(node, new, f"Write `{new}`", safe=False, same=False)
            return
