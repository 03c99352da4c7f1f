"""What functions of `jax.numpy` and others demand of their arguments, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from jaxsight.examples.proposals.interpreting import control, layers, linear
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Evidence,
    Items,
    Machine,
    Named,
    Param,
    RankOf,
    ShapeOf,
    Size,
    Unknown,
    Value,
)
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.interpreting.uses import (
    REDUCTIONS,
    arithmetic,
    as_array,
    as_index,
    as_integer,
    as_shape,
    size_of,
    transposed,
    words,
)

# Calls

Operation = Callable[[Machine, Sequence[Value], Mapping[str, Value]], Value]

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
_SQUARE = words(
    """
    cho_factor cholesky det eig eigh eigvals eigvalsh expm inv lu slogdet trace
    """
)
_MATRICES = frozenset(["qr", "svd", "pinv", "matrix_rank"])


def call(
    machine: Machine, function: Named, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    """Return the value of a call of a library's function, or of a method of an array."""
    if function.bound is not None:
        arguments = [function.bound, *arguments]
    path = function.dotted.split(".")
    tail = path[-1]
    if "random" in path[:-1] or "jrandom" in path[:-1] or "jr" in path[:-1]:
        return _random(tail, arguments, keywords)
    if function.dotted in ("isinstance", "callable", "hasattr", "getattr"):
        match function.dotted, arguments:
            case "getattr", [Param(evidence), Const(str() as name)]:
                evidence.attributes.add(name)
                return Param(evidence.members.setdefault(name, Evidence(name)))
        return UNKNOWN
    if function.dotted in ("map", "filter"):
        return UNKNOWN
    if tail == "update" and function.bound is None:
        return UNKNOWN
    if path[0] == "str" and function.bound is not None:
        return function.bound
    operation = OPERATIONS.get(tail)
    if operation is not None:
        return operation(machine, arguments, keywords)
    if (dtype := keywords.get("dtype")) is not None and isinstance(dtype, Param):
        dtype.evidence.dtype = True
    if tail in REDUCTIONS and (tail not in _BINARY or len(arguments) < 2 or "axis" in keywords):
        return _reduced(arguments, keywords)
    if tail in _BINARY:
        return _broadcast(machine, arguments)
    if tail in _UNARY:
        return _elementwise(arguments, keywords)
    return _other(path, arguments)


def _other(path: Sequence[str], arguments: Sequence[Value]) -> Value:
    """Return the result of a function that is not known: its operands are arrays if it is JAX's."""
    root, tail = path[0], path[-1]
    if root in ("jax", "lax", "numpy", "scipy") and "tree" not in path:
        for value in arguments:
            if isinstance(value, Param):
                value.evidence.passed += 1
        return Arr(Shape(), loose=True)
    if tail.startswith(("check_arraylike", "promote_", "ensure_arraylike")):
        arrays = [value for value in arguments if not isinstance(value, Const)]
        for value in arrays:
            as_array(value)
        single = len(arrays) == 1 and not tail.startswith("promote_")
        return arrays[0] if single else Items(tuple(arrays))
    return UNKNOWN


def _random(tail: str, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    first = arguments[0] if arguments else keywords.get("key", UNKNOWN)
    if tail in ("key", "PRNGKey"):
        as_integer(first)
        return UNKNOWN
    if isinstance(first, Param):
        first.evidence.key = True
    shape = keywords.get("shape")
    if shape is None and tail in ("normal", "uniform", "truncated_normal", "gumbel", "exponential"):
        shape = arguments[1] if len(arguments) > 1 else None
    if tail == "bernoulli" and len(arguments) > 2:
        shape = arguments[2]
    if tail == "split":
        if len(arguments) > 1:
            as_integer(arguments[1])
        return UNKNOWN
    if tail in ("permutation", "categorical", "choice", "shuffle") and len(arguments) > 1:
        as_array(arguments[1])
    return Arr(as_shape(shape)) if shape is not None else UNKNOWN


def _elementwise(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if not arguments:
        return UNKNOWN
    axis = keywords.get("axis")
    _axis(axis)
    match arguments[0]:
        case Items(values):
            return Arr(Shape.of([Dim(), *[Dim() for _ in ()]]), loose=True) if values else UNKNOWN
        case Const() | Size():
            return Arr(Shape.of([]))
        case Unknown():
            return Arr(Shape(), loose=True)
        case first:
            shape = as_array(first)
    if shape is None:
        return UNKNOWN
    if isinstance(axis, Const) and isinstance(axis.value, int):
        shape.dim(axis.value)
    return Arr(shape, loose=isinstance(arguments[0], Arr) and arguments[0].loose)


def _axis(axis: Value | None) -> None:
    match axis:
        case Param(evidence):
            evidence.static = evidence.axis = True
        case Items(values):
            for value in values:
                _axis(value)


def _broadcast(machine: Machine, arguments: Sequence[Value]) -> Value:
    result: Value = UNKNOWN
    for i, value in enumerate(arguments):
        if isinstance(value, Param):
            value.evidence.array += 1
        result = value if i == 0 else arithmetic(machine, result, value)
    if isinstance(result, Param):
        return Arr(result.evidence.shape)
    return result


def _reduced(arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    axis = keywords.get("axis", arguments[1] if len(arguments) > 1 else Const(None))
    _axis(axis)
    if shape is None:
        return UNKNOWN
    keeps = keywords.get("keepdims", Const(False))
    match axis:
        case Const(None):
            kept = not (isinstance(keeps, Const) and not keeps.value)
            return Arr(Shape(), loose=True) if kept else Arr(Shape.of([]))
        case Const(int() as number):
            axes = [number]
        case Items(values) if all(
            isinstance(v, Const) and isinstance(v.value, int) for v in values
        ):
            axes = [v.value for v in values if isinstance(v, Const) and isinstance(v.value, int)]
        case _:
            return Arr(Shape(), loose=True)
    for number in axes:
        shape.dim(number)
    dims = shape.dims
    if not isinstance(keeps, Const) or (dims is None and keeps.value):
        return Arr(Shape(), loose=True)
    if dims is None:
        return Arr(shape.tied(-len(axes), {}, {}), loose=True)
    if keeps.value:
        kept_axes = {number % len(dims) for number in axes} if dims else set()
        return Arr(
            Shape.of([Dim(is_one=True) if i in kept_axes else dim for i, dim in enumerate(dims)])
        )
    removed = {number % len(dims) for number in axes} if dims else set()
    return Arr(Shape.of([dim for i, dim in enumerate(dims) if i not in removed]))


def _transpose(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    if shape is None:
        return UNKNOWN
    axes: Sequence[Value] = arguments[1:]
    if len(axes) == 1 and isinstance(axes[0], Items):
        axes = axes[0].values
    numbers = [a.value for a in axes if isinstance(a, Const) and isinstance(a.value, int)]
    if not axes:
        return transposed(shape)
    if len(numbers) != len(axes) or sorted(numbers) != list(range(len(numbers))):
        return Arr(Shape(), loose=True)
    shape.set_rank(len(numbers))
    return Arr(Shape.of([shape.dim(number) for number in numbers]))


def _swapaxes(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    if shape is None:
        return UNKNOWN
    for axis in arguments[1:3]:
        _axis(axis)
    numbers = [a.value for a in arguments[1:3] if isinstance(a, Const) and isinstance(a.value, int)]
    for number in numbers:
        shape.dim(number)
    dims = shape.dims
    if dims is None or len(numbers) < 2 or not all(-len(dims) <= n < len(dims) for n in numbers):
        return Arr(Shape(), loose=True)
    dims = list(dims)
    one, two = numbers
    dims[one], dims[two] = dims[two], dims[one]
    return Arr(Shape.of(dims))


def _reshape(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if not arguments:
        return UNKNOWN
    as_array(arguments[0])
    sizes: Sequence[Value] = arguments[1:]
    if len(sizes) == 1:
        return (
            Arr(as_shape(sizes[0])) if not isinstance(sizes[0], Const) else Arr(Shape.of([Dim()]))
        )
    return Arr(as_shape(Items(tuple(sizes)))) if sizes else Arr(Shape(), loose=True)


def _concatenated(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    match arguments:
        case [Items(values), *_]:
            shapes = [shape for value in values if (shape := as_array(value)) is not None]
            for one, two in pairwise(shapes):
                machine.links.append((one, two))
        case [Param(evidence), *_]:
            evidence.sequence = max(evidence.sequence, 2)
    _axis(keywords.get("axis", arguments[1] if len(arguments) > 1 else None))
    return Arr(Shape(), loose=True)


def _created(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = arguments[0] if arguments else keywords.get("shape", UNKNOWN)
    for dtype in (keywords.get("dtype"), *arguments[1:2]):
        if isinstance(dtype, Param):
            dtype.evidence.dtype = True
    return Arr(as_shape(shape))


def _full(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    return _created(machine, [*arguments[:1], *arguments[2:3]], keywords)


def _eye(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[:2]:
        as_integer(value)
    dim = size_of(arguments[0]) if arguments else Dim()
    return Arr(Shape.of([dim, size_of(arguments[1]) if len(arguments) > 1 else dim]))


def _range(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments:
        as_integer(value)
    if len(arguments) == 1:
        return Arr(Shape.of([size_of(arguments[0])]))
    return Arr(Shape.of([Dim()]))


def _one_hot(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if not arguments:
        return UNKNOWN
    as_index(arguments[0])
    shape = as_array(arguments[0])
    count = arguments[1] if len(arguments) > 1 else keywords.get("num_classes", UNKNOWN)
    as_integer(count)
    if shape is None:
        return UNKNOWN
    return _Longer.of(shape, size_of(count))


class _Longer:
    """A shape with one more axis at its end."""

    @staticmethod
    def of(shape: Shape, last: Dim) -> Arr:
        """Return it; the rank of the shorter one is likely one less than that of an array."""
        dims = shape.dims
        if dims is not None:
            return Arr(Shape.of([*dims, last]))
        if shape.find().likely is None:
            shape.find().likely = 1
        front = {0: shape.dim(0)}
        return Arr(Shape(front=front, back={0: last}, least=2, likely=2))


def _along_axis(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    shapes = [shape for value in arguments[:2] if (shape := as_array(value)) is not None]
    for value in arguments[1:2]:
        as_index(value)
    if len(shapes) == 2:
        machine.links.append((shapes[0], shapes[1]))
    return Arr(shapes[1]) if len(shapes) == 2 else Arr(Shape(), loose=True)


def _take(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if arguments:
        as_array(arguments[0])
    for value in arguments[1:2]:
        as_index(value)
    return Arr(Shape(), loose=True)


def _length(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    match arguments:
        case [ShapeOf(shape, None, None)]:
            return RankOf(shape)
        case [Param(evidence)]:
            evidence.sequence = evidence.sequence or 2
            return Size(evidence.shape.dim(0)) if evidence.array else UNKNOWN
        case [Arr(shape)]:
            return Size(shape.dim(0))
    return UNKNOWN


def _held(name: str) -> Operation:
    def hold(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        return Named(name, Items(tuple(arguments)))

    return hold


def _shape(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    return ShapeOf(shape) if shape is not None else UNKNOWN


def _ndim(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    return RankOf(shape) if shape is not None else UNKNOWN


def _update(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    for value in arguments[1:]:
        as_array(value)
    return Arr(shape) if shape is not None else UNKNOWN


def _dtype(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[:1]:
        if isinstance(value, Param) and not value.evidence.array:
            value.evidence.dtype = True
    return UNKNOWN


def _flat(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if arguments:
        as_array(arguments[0])
    return Arr(Shape.of([Dim()]))


def _rank(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`chex.assert_rank(x, 2)`, `chex.assert_rank([x, y], [2, 1])`."""
    for value, wanted in _asserted(arguments):
        shape = as_array(value)
        if shape is not None and isinstance(wanted, Const) and isinstance(wanted.value, int):
            shape.set_rank(wanted.value)
    return UNKNOWN


def _has_shape(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    """`chex.assert_shape(x, (None, 3))`."""
    for value, wanted in _asserted(arguments):
        shape = as_array(value)
        if shape is not None and isinstance(wanted, Items | ShapeOf):
            shape.unify(as_shape(wanted))
    return UNKNOWN


def _has_type(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`chex.assert_type([x, y], [float, int])`."""
    for value, wanted in _asserted(arguments):
        if isinstance(wanted, Named) and wanted.dotted == "int":
            as_index(value)
    return UNKNOWN


def _asserted(arguments: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
    """Yield the arrays that an assertion is about, each with what is asserted of it."""
    match arguments:
        case [Items(values), Items(wanted), *_] if len(wanted) == len(values) and not all(
            isinstance(w, Const) and w.value is None for w in wanted
        ):
            yield from zip(values, wanted, strict=True)
        case [Items(values), wanted, *_]:
            yield from ((value, wanted) for value in values)
        case [value, wanted, *_]:
            yield value, wanted


def _equal_shapes(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    values = [v for a in arguments for v in (a.values if isinstance(a, Items) else (a,))]
    shapes = [shape for value in values if (shape := as_array(value)) is not None]
    for other in shapes[1:]:
        shapes[0].unify(other)
    return UNKNOWN


OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(
        ("segment_sum", "segment_max", "segment_min", "segment_prod", "segment_mean"),
        layers.segments,
    ),
    "softmax_cross_entropy_with_integer_labels": layers.labelled,
    **dict.fromkeys(("convolve", "correlate"), layers.vectors),
    "conv_general_dilated": layers.convolved,
    "dynamic_slice": layers.sliced,
    "dynamic_update_slice": layers.updated,
    **dict.fromkeys(("dynamic_slice_in_dim", "dynamic_index_in_dim"), layers.sliced_in_dim),
    **dict.fromkeys(("matmul", "dot"), linear.matmul_call),
    **dict.fromkeys(("vdot", "inner"), linear.inner),
    **dict.fromkeys(("zeros", "ones", "empty"), _created),
    "full": _full,
    **dict.fromkeys(("eye", "identity", "tri"), _eye),
    **dict.fromkeys(("arange", "range"), _range),
    **dict.fromkeys(("concatenate", "stack", "hstack", "vstack", "column_stack"), _concatenated),
    **dict.fromkeys(("jit", "checkpoint", "remat", "jvp", "wraps"), control.same),
    "differentiated": control.differentiable,
    **dict.fromkeys(("grad", "value_and_grad"), control.grad),
    **dict.fromkeys(("vmap", "filter_vmap"), control.vmap),
    **dict.fromkeys(
        ("jacfwd", "jacrev", "jacobian", "hessian", "linearize", "vjp"), control.differentiated
    ),
    **dict.fromkeys(("tree_map", "map"), control.tree_map),
    **dict.fromkeys(
        ("tree_leaves", "tree_flatten", "ravel_pytree", "leaves", "flatten"), control.tree_leaves
    ),
    **dict.fromkeys(("solve", "cho_solve", "solve_triangular", "triangular_solve"), linear.solve),
    **dict.fromkeys(("assert_equal_shape", "check_shapes_equal"), _equal_shapes),
    **dict.fromkeys(("finfo", "iinfo", "canonicalize_dtype"), _dtype),
    **dict.fromkeys(_SQUARE, linear.square),
    **dict.fromkeys(_MATRICES, linear.matrix),
    "assert_rank": _rank,
    "assert_shape": _has_shape,
    "assert_type": _has_type,
    "cond": control.cond,
    "dot_general": linear.dot_general,
    "einsum": linear.einsum,
    "enumerate": _held("enumerate"),
    "fori_loop": control.fori_loop,
    "len": _length,
    "moveaxis": _swapaxes,
    "ndim": _ndim,
    "one_hot": _one_hot,
    "partial": control.partial,
    "ravel": _flat,
    "reshape": _reshape,
    "scan": control.scan,
    "shape": _shape,
    "swapaxes": _swapaxes,
    "reduce_window": layers.windows,
    "resize": layers.resized,
    "take": _take,
    "take_along_axis": _along_axis,
    "transpose": _transpose,
    "update": _update,
    "vectorize": linear.vectorize,
    "vectorized": linear.vectorized,
    "while_loop": control.while_loop,
    "zip": _held("zip"),
}
"""By the last name of a function, such as `jax.numpy.einsum`."""
