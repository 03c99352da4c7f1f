"""What functions of `jax.numpy` and others demand of their arguments, and what they return."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from jaxsight.examples.proposals.interpreting import conditions
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Dim,
    Dotted,
    Evidence,
    Items,
    Param,
    RankOf,
    Shape,
    ShapeOf,
    Size,
    UnknownValue,
    Value,
    facts_of,
)
from jaxsight.examples.proposals.interpreting.uses import (
    REDUCTIONS,
    LibraryCall,
    arithmetic,
    as_array,
    as_index,
    as_integer,
    as_shape,
    matmul,
    of_same_rank,
    size_of,
    transposed,
)
from jaxsight.text.names import words

# What products and factorizations of matrices demand of their operands.


def matmul_call(call: LibraryCall) -> Value:
    return matmul(*call.arguments[:2]) if len(call.arguments) > 1 else UNKNOWN


def einsum(call: LibraryCall) -> Value:
    match call.arguments:
        case [Const(str() as subscripts), *operands]:
            pass
        case _:
            for value in call.arguments:
                as_array(value)
            return Arr(Shape(), loose=True)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    letters: dict[str, Dim] = {}
    for letter in sorted(set(subscripts) - set("->., ")):
        letters[letter] = Dim(name=letter.upper())
    for term, value in zip(inputs.split(","), operands, strict=False):
        if (shape := as_array(value)) is None:
            continue
        front, ellipsis, back = term.partition("...")
        if not ellipsis:
            shape.set_rank(len(front))
        shape.at_least(len(front) + len(back))
        for i, letter in enumerate(front):
            shape.dim(i).unify(letters[letter])
        for i, letter in enumerate(reversed(back), start=1):
            shape.dim(-i).unify(letters[letter])
    terms = inputs.split(",")
    for i, term in enumerate(terms[: len(operands) - 1]):
        one, two = as_array(operands[i]), as_array(operands[i + 1])
        if "..." in term and terms[i + 1] == term and one is not None and two is not None:
            call.links.append((one, two))
    if not arrow or "..." in output:
        return Arr(Shape(), loose=True)
    return Arr(Shape.of([letters[letter] for letter in output if letter in letters]))


def rearranged(call: LibraryCall) -> Value:
    """`einops.rearrange(x, "b (h w) c -> b h w c")` and the like: the left side names all axes."""
    match call.get(0), call.get(1, "pattern"):
        case (Param() | Arr()) as value, Const(str() as pattern) if "->" in pattern:
            axes = re.findall(r"\([^)]*\)|\S+", pattern.partition("->")[0])
            shape = as_array(value)
            if shape is not None and not {"...", "1"} & {*axes}:
                shape.set_rank(len(axes))
                for i, axis in enumerate(axes):
                    shape.dim(i).unify(Dim(name=axis if axis.isidentifier() else ""))
    return Arr(Shape(), loose=True)


def square(call: LibraryCall, shape: Shape) -> Value:
    shape.at_least(2)
    shape.dim(-1).unify(shape.dim(-2))
    return Arr(shape)


def matrix(call: LibraryCall, shape: Shape) -> Value:
    shape.at_least(2)
    return UNKNOWN


Operation = Callable[[LibraryCall], Value]

_UNARY = words(
    """
    abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh array asarray
    asin asinh astype atan atanh cbrt ceil celu clip conj conjugate copy cos cosh deg2rad
    digamma elu erf erf_inv erfc exp exp2 expand expit expm1 fabs flip floor full_like
    gammaln gelu glu hard_sigmoid hard_tanh imag is_finite isfinite isinf isnan leaky_relu
    lgamma log log10 log1p log2 log_sigmoid log_softmax logistic logit nan_to_num neg
    negative normalize ones_like ravel_multi_index real reciprocal relu relu6 rint roll
    round rsqrt selu sigmoid sign silu sin sinc sinh softmax softplus soft_sign softsign
    sort sqrt square standardize stop_gradient swish tan tanh tril triu trunc zeros_like
    cumsum cumprod cummax cummin convert_element_type optimization_barrier
    with_sharding_constraint
    """
)
_BINARY = words(
    """
    add arctan2 atan2 bitwise_and bitwise_or bitwise_xor copysign div divide equal eq
    floor_divide fmax fmin fmod ge greater greater_equal gt heaviside hypot isclose ldexp le
    less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt max maximum
    min minimum mod mul multiply ne nextafter not_equal pow power rem remainder select sub
    subtract true_divide where xlog1py xlogy allclose
    """
)


def result_of(function: Dotted, call: LibraryCall) -> Value:
    """Return the value of a call of a library's function, or of a method of an array."""
    if function.bound is not None:
        call = replace(call, arguments=[function.bound, *call.arguments])
    path = function.dotted.split(".")
    tail = path[-1]
    if not {"random", "jrandom", "jr"}.isdisjoint(path[:-1]):
        return _random(tail, call)
    match function.dotted, call.arguments:
        case "getattr", [Param(evidence), Const(str() as name)]:
            return Param(evidence.members.setdefault(name, Evidence(name)))
        case "isinstance" | "callable" | "hasattr" | "getattr" | "map" | "filter", _:
            return UNKNOWN
    if tail == "update" and function.bound is None:
        return UNKNOWN
    if path[0] == "str" and function.bound is not None:
        return function.bound
    if (operation := OPERATIONS.get(tail)) is not None:
        return operation(call)
    if (of_an_array := ARRAY_OPERATIONS.get(tail)) is not None:
        shape = call.array(0)
        return of_an_array(call, shape) if shape is not None else UNKNOWN
    facts_of(call.keywords.get("dtype", UNKNOWN)).dtype = True
    is_binary = tail in _BINARY
    if tail in REDUCTIONS and not (
        is_binary and len(call.arguments) > 1 and "axis" not in call.keywords
    ):
        return _reduced(call)
    if is_binary:
        result: Value = UNKNOWN
        for i, value in enumerate(call.arguments):
            facts_of(value).array += 1
            result = value if i == 0 else arithmetic(call.links, result, value)
        return Arr(result.evidence.shape) if isinstance(result, Param) else result
    return _elementwise(call) if tail in _UNARY else _other(path, call.arguments)


def _other(path: Sequence[str], arguments: Sequence[Value]) -> Value:
    """Return the result of a function that is not known: its operands are arrays if it is JAX's."""
    root, tail = path[0], path[-1]
    if root in ("jax", "lax", "numpy", "scipy") and "tree" not in path:
        return Arr(Shape(), loose=True)
    if tail.startswith(("check_arraylike", "promote_", "ensure_arraylike")):
        arrays = [value for value in arguments if not isinstance(value, Const)]
        for value in arrays:
            as_array(value)
        single = len(arrays) == 1 and not tail.startswith("promote_")
        return arrays[0] if single else Items(tuple(arrays))
    return UNKNOWN


def _random(tail: str, call: LibraryCall) -> Value:
    key = call.get(0, "key")
    if tail in ("key", "PRNGKey"):
        as_integer(key)
        return UNKNOWN
    facts_of(key).random = True
    shape = call.keywords.get("shape")
    if shape is None and tail in ("normal", "uniform", "truncated_normal", "gumbel", "exponential"):
        shape = call.get(1) if len(call.arguments) > 1 else None
    if tail == "bernoulli" and len(call.arguments) > 2:
        shape = call.get(2)
    if tail == "split":
        as_integer(call.get(1))
        return UNKNOWN
    if tail in ("permutation", "categorical", "choice", "shuffle"):
        as_array(call.get(1))
    return Arr(as_shape(shape)) if shape is not None else UNKNOWN


def _elementwise(call: LibraryCall) -> Value:
    if not call.arguments:
        return UNKNOWN
    axis, first = call.keywords.get("axis", UNKNOWN), call.get(0)
    _axis(axis)
    match first:
        case Items(values):
            return Arr(Shape.of([Dim()]), loose=True) if values else UNKNOWN
        case Const() | Size():
            return Arr(Shape.of([]))
        case UnknownValue():
            return Arr(Shape(), loose=True)
    if (shape := as_array(first)) is None:
        return UNKNOWN
    for number in _integers(axis):
        shape.dim(number)
    return Arr(shape, loose=isinstance(first, Arr) and first.loose)


def _axis(axis: Value) -> None:
    """Note that a value is an axis, or several."""
    match axis:
        case Param(evidence):
            evidence.static = evidence.axis = True
        case Items(values):
            for value in values:
                _axis(value)


def _integers(*values: Value) -> list[int]:
    """Return those of the values that are integers."""
    return [v.value for v in values if isinstance(v, Const) and isinstance(v.value, int)]


def _reduced(call: LibraryCall) -> Value:
    shape = call.array(0)
    axis = call.get(1, "axis", Const(None))
    _axis(axis)
    if shape is None:
        return UNKNOWN
    keeps = call.keywords.get("keepdims", Const(False))
    loses = isinstance(keeps, Const) and not keeps.value
    if isinstance(axis, Const) and axis.value is None:
        return Arr(Shape.of([])) if loses else Arr(Shape(), loose=True)
    reduced = axis.values if isinstance(axis, Items) else (axis,)
    axes = _integers(*reduced)
    if len(axes) < len(reduced):
        return Arr(Shape(), loose=True)
    for number in axes:
        shape.dim(number)
    dims = shape.dims
    if not isinstance(keeps, Const) or dims is None:
        return Arr(Shape(), loose=True)
    removed = {number % len(dims) for number in axes} if dims else set()
    if keeps.value:
        kept = [Dim(is_one=True) if i in removed else dim for i, dim in enumerate(dims)]
        return Arr(Shape.of(kept))
    return Arr(Shape.of([dim for i, dim in enumerate(dims) if i not in removed]))


def _transpose(call: LibraryCall, shape: Shape) -> Value:
    axes: Sequence[Value] = call.arguments[1:]
    if len(axes) == 1 and isinstance(axes[0], Items):
        axes = axes[0].values
    numbers = _integers(*axes)
    if not axes:
        return transposed(shape)
    if len(numbers) != len(axes) or sorted(numbers) != list(range(len(numbers))):
        return Arr(Shape(), loose=True)
    shape.set_rank(len(numbers))
    return Arr(Shape.of([shape.dim(number) for number in numbers]))


def _swapaxes(call: LibraryCall, shape: Shape) -> Value:
    for axis in call.arguments[1:3]:
        _axis(axis)
    numbers = _integers(*call.arguments[1:3])
    for number in numbers:
        shape.dim(number)
    dims = shape.dims
    if dims is None or len(numbers) < 2 or not all(-len(dims) <= n < len(dims) for n in numbers):
        return Arr(Shape(), loose=True)
    dims = list(dims)
    one, two = numbers
    dims[one], dims[two] = dims[two], dims[one]
    return Arr(Shape.of(dims))


def _reshape(call: LibraryCall) -> Value:
    if not call.arguments:
        return UNKNOWN
    as_array(call.arguments[0])
    sizes: Sequence[Value] = call.arguments[1:]
    match sizes:
        case [Const()]:
            return Arr(Shape.of([Dim()]))
        case [size]:
            return Arr(as_shape(size))
    return Arr(as_shape(Items(tuple(sizes)))) if sizes else Arr(Shape(), loose=True)


def _concatenated(call: LibraryCall) -> Value:
    match call.arguments:
        case [Items(values), *_]:
            shapes = [shape for value in values if (shape := as_array(value)) is not None]
            for one, two in pairwise(shapes):
                call.links.append((one, two))
    _axis(call.get(1, "axis"))
    return Arr(Shape(), loose=True)


def _created(call: LibraryCall, *, dtype: int = 1) -> Value:
    """Return a new array; `dtype` is the position of that argument."""
    facts_of(call.get(dtype, "dtype")).dtype = True
    return Arr(as_shape(call.get(0, "shape")))


def _eye(call: LibraryCall) -> Value:
    for value in call.arguments[:2]:
        as_integer(value)
    dim = size_of(call.get(0))
    return Arr(Shape.of([dim, size_of(call.get(1)) if len(call.arguments) > 1 else dim]))


def _range(call: LibraryCall) -> Value:
    for value in call.arguments:
        as_integer(value)
    return Arr(Shape.of([size_of(call.get(0)) if len(call.arguments) == 1 else Dim()]))


def _one_hot(call: LibraryCall) -> Value:
    """Return the result of `one_hot`: the indices' axes, and one more at the end."""
    as_index(call.get(0))
    count = call.get(1, "num_classes")
    as_integer(count)
    if (shape := call.array(0)) is None:
        return UNKNOWN
    last, dims = size_of(count), shape.dims
    if dims is not None:
        return Arr(Shape.of([*dims, last]))
    shape.suggest(1)
    return Arr(Shape(front={0: shape.dim(0)}, back={0: last}, least=2, likely=2))


def _along_axis(call: LibraryCall) -> Value:
    array, indices = call.array(0), call.array(1)
    as_index(call.get(1))
    if array is None or indices is None:
        return Arr(Shape(), loose=True)
    call.links.append((array, indices))
    return Arr(indices)


def _take(call: LibraryCall) -> Value:
    as_array(call.get(0))
    as_index(call.get(1))
    return Arr(Shape(), loose=True)


def _length(call: LibraryCall) -> Value:
    match call.arguments:
        case [ShapeOf(shape, None, None)]:
            return RankOf(shape)
        case [Param(evidence)]:
            return Size(evidence.shape.dim(0)) if evidence.array else UNKNOWN
        case [Arr(shape)]:
            return Size(shape.dim(0))
    return UNKNOWN


def _cond(call: LibraryCall) -> Value:
    facts_of(call.get(0)).boolean = True
    facts_of(call.get(0)).shape.set_rank(0)
    return UNKNOWN


def _fori_loop(call: LibraryCall) -> Value:
    for value in call.arguments[:2]:
        as_integer(value)
    return UNKNOWN


def _update(call: LibraryCall) -> Value:
    shape = call.array(0)
    for value in call.arguments[1:]:
        as_array(value)
    return Arr(shape) if shape is not None else UNKNOWN


def _flat(call: LibraryCall) -> Value:
    as_array(call.get(0))
    return Arr(Shape.of([Dim()]))


def _updated(call: LibraryCall) -> Value:
    """Return the result of `dynamic_update_slice(operand, update, indices)`."""
    return _at_indices(call.arguments[:2], call.get(2, "start_indices"))


def _sliced(call: LibraryCall) -> Value:
    """Return the result of `dynamic_slice(operand, indices, sizes)`."""
    _at_indices(call.arguments[:1], call.get(1))
    return Arr(as_shape(call.get(2)), loose=True)


def _at_indices(arrays: Sequence[Value], indices: Value) -> Value:
    shapes = [shape for value in arrays if (shape := as_array(value)) is not None]
    if isinstance(indices, Items):
        for shape in shapes:
            shape.set_rank(len(indices.values))
        for value in indices.values:
            _scalar_index(value)
    return Arr(shapes[0]) if shapes else UNKNOWN


def _scalar_index(value: Value) -> None:
    as_index(value)
    facts_of(value).shape.set_rank(0)


def _sliced_in_dim(call: LibraryCall) -> Value:
    """Return the result of `dynamic_slice_in_dim(operand, start, size, axis)` and the like."""
    _scalar_index(call.get(1))
    as_integer(call.get(2, "slice_size"))
    shape = call.array(0)
    return of_same_rank(shape) if shape is not None else UNKNOWN


_BY_NAMES: dict[str, Operation] = {
    "dynamic_slice": _sliced,
    "dynamic_update_slice": _updated,
    "dynamic_slice_in_dim dynamic_index_in_dim": _sliced_in_dim,
    "matmul dot": matmul_call,
    "einsum": einsum,
    "rearrange": rearranged,
    "cond": _cond,
    "fori_loop": _fori_loop,
    "assert_equal_shape check_shapes_equal": conditions.equal_shapes,
    "assert_rank": conditions.has_rank,
    "assert_shape": conditions.has_shape,
    "assert_type": conditions.has_type,
    "zeros ones empty": _created,
    "full": partial(_created, dtype=2),
    "eye identity tri": _eye,
    "arange range": _range,
    "concatenate stack hstack vstack column_stack": _concatenated,
    "len": _length,
    "one_hot": _one_hot,
    "ravel": _flat,
    "reshape": _reshape,
    "take": _take,
    "take_along_axis": _along_axis,
    "update": _update,
}
_OF_AN_ARRAY: dict[str, Callable[[LibraryCall, Shape], Value]] = {
    "cho_factor cholesky det eig eigh eigvals eigvalsh expm inv lu slogdet trace": square,
    "qr svd pinv matrix_rank": matrix,
    "moveaxis swapaxes": _swapaxes,
    "ndim": lambda call, shape: RankOf(shape),
    "shape": lambda call, shape: ShapeOf(shape),
    "transpose": _transpose,
}
"""Functions that return nothing known if their first argument is no array."""
OPERATIONS = {name: operation for names, operation in _BY_NAMES.items() for name in words(names)}
"""By the last name of a function, such as `jax.numpy.einsum`."""
ARRAY_OPERATIONS = {
    name: operation for names, operation in _OF_AN_ARRAY.items() for name in words(names)
}
