"""What operations demand of their operands, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from jaxsight.examples.proposals.evidence import (
    UNKNOWN,
    Arr,
    Closure,
    Const,
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
from jaxsight.examples.proposals.shapes import Dim, Shape

# Values as arrays, sizes and indices


def as_array(value: Value) -> Shape | None:
    """Return the shape of a value that is used as an array; `None` if it has none."""
    match value:
        case Param(evidence):
            evidence.array += 1
            return evidence.shape
        case Arr(shape):
            return shape
    return None


def as_integer(value: object) -> None:
    """Note that a value is a Python integer."""
    match value:
        case Param(evidence):
            evidence.static = True
        case Items(values):
            for inner in values:
                as_integer(inner)


def as_shape(value: Value) -> Shape:
    """Note that a value is the shape of an array, and return that shape."""
    match value:
        case Param(evidence):
            evidence.shape_like = True
        case Items(values):
            for inner in values:
                as_integer(inner)
            return Shape.of([size_of(inner) for inner in values])
        case ShapeOf(shape, None, None):
            return shape
        case ShapeOf():
            dims = sizes_of(value)
            return Shape.of(dims) if dims is not None else Shape()
        case Size(dim):
            return Shape.of([dim])
    return Shape()


def as_index(value: Value) -> None:
    """Note that a value is an index, or an array of indices."""
    match value:
        case Param(evidence):
            evidence.integer = True
        case Items(values):
            for inner in values:
                as_index(inner)


def size_of(value: Value) -> Dim:
    """Return a value as a size."""
    match value:
        case Size(dim):
            return dim
        case Const(int() as number) if number >= 0:
            return Dim(number=number)
    return Dim()


def sizes_of(value: ShapeOf) -> list[Dim] | None:
    """Return the sizes of a shape or of a slice of it, if the rank is known."""
    dims = value.shape.dims
    return None if dims is None else dims[value.start : value.stop]


def item_of(machine: Machine, value: Value) -> Value:
    """Return what a loop over a value yields."""
    match value:
        case Param(evidence):
            evidence.sequence = max(evidence.sequence, 2)
            return Arr(evidence.items)
        case Items(values) if values:
            return values[0]
        case ShapeOf(shape):
            return Size(Dim())
        case Named("zip", Items(values)):
            return Items(tuple(item_of(machine, inner) for inner in values))
        case Named("enumerate", Items((inner,))):
            return Items((UNKNOWN, item_of(machine, inner)))
        case Arr(shape):
            return Arr(Shape())
    return UNKNOWN


def unpacked(value: Value, count: int, *, starred: bool) -> list[Value]:
    """Return the values of an assignment to several targets."""
    match value:
        case ShapeOf(shape, None, None) if starred:
            shape.at_least(count - 1)
            return [UNKNOWN] * count
        case ShapeOf(shape, None, None):
            shape.set_rank(count)
            return [Size(shape.dim(i)) for i in range(count)]
        case ShapeOf(shape, int() as start, None) if start < 0 and count == -start:
            return [Size(shape.dim(i)) for i in range(start, 0)]
        case ShapeOf(shape, None | 0, int() as stop) if stop == count:
            return [Size(shape.dim(i)) for i in range(count)]
        case Items(values) if len(values) == count and not starred:
            return list(values)
        case Param(evidence) if not starred and not evidence.array:
            evidence.sequence = count
            return [Arr(evidence.items) for _ in range(count)]
    return [UNKNOWN] * count


def attribute(value: Value, name: str) -> Value:
    """Return an attribute of a value."""
    match value:
        case Named(dotted, None):
            return Named(f"{dotted}.{name}")
        case Param() | Arr() if name in _OF_ARRAYS or name in _METHODS:
            if name == "size" and isinstance(value, Param):
                value.evidence.array += 1
                return UNKNOWN
            shape = as_array(value)
            if shape is None:
                return UNKNOWN
            return _array_attribute(value, shape, name)
        case Param(evidence) if name in ("items", "keys", "values"):
            evidence.tree = True
            return Named(f".{name}", value)
        case Param(evidence):
            evidence.attributes.add(name)
        case Named("at.", bound) if bound is not None:
            return Named("at.update", bound)
    return UNKNOWN


_OF_ARRAYS = frozenset(("shape", "ndim", "dtype", "size", "T", "mT", "at", "real", "imag"))


def _array_attribute(value: Value, shape: Shape, name: str) -> Value:
    match name:
        case "shape":
            return ShapeOf(shape)
        case "ndim":
            return RankOf(shape)
        case "dtype":
            return UNKNOWN
        case "T" | "mT":
            return _transposed(shape)
        case "real" | "imag":
            return Arr(shape)
        case "at":
            return Named("at", value)
    return Named(name, value)


def _transposed(shape: Shape) -> Arr:
    dims = shape.dims
    if dims is None:
        shape.at_least(2)
        return Arr(Shape(front={0: shape.dim(-1)}, back={0: shape.dim(0)}, likely=2, least=2))
    return Arr(Shape.of(dims[::-1]))


def joined(left: Value, right: Value) -> Value:
    """Return the sum of two tuples, one of which may be a shape."""
    parts: list[Value] = []
    for value in (left, right):
        match value:
            case Items(values):
                parts += values
            case ShapeOf():
                dims = sizes_of(value)
                if dims is None:
                    return UNKNOWN
                parts += map(Size, dims)
            case Param(evidence):
                evidence.shape_like = True
                return UNKNOWN
    return Items(tuple(parts))


def arithmetic(machine: Machine, left: Value, right: Value) -> Value:
    """Return the value of an elementwise operation on two operands."""
    if isinstance(left, Size | RankOf) or isinstance(right, Size | RankOf):
        both = (left, right)
        if not any(isinstance(value, Arr) for value in both):
            for value in both:
                if isinstance(value, Param) and not value.evidence.array:
                    value.evidence.number += 1
                    value.evidence.static = value.evidence.static or value.evidence.number > 99
            return UNKNOWN
    shapes: list[Shape] = []
    loose = False
    for value in (left, right):
        match value:
            case Param(evidence):
                evidence.number += 1
                shapes.append(evidence.shape)
            case Arr(shape, is_loose):
                loose = loose or is_loose
                if not is_loose:
                    shapes.append(shape)
            case Unknown():
                loose = True
    if len(shapes) == 2 and shapes[0].find() is not shapes[1].find():
        machine.links.append((shapes[0], shapes[1]))
    if not shapes:
        return Arr(Shape(), loose=True) if loose else UNKNOWN
    best = max(shapes, key=lambda shape: shape.find().rank or -1)
    return Arr(best, loose=loose)


# Calls

Operation = Callable[[Machine, Sequence[Value], Mapping[str, Value]], Value]

_UNARY = frozenset(
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh array asarray asin"
    " asinh astype atan atanh cbrt ceil celu clip conj conjugate copy cos cosh deg2rad digamma elu"
    " erf erf_inv erfc exp exp2 expand expit expm1 fabs flip floor full_like gammaln gelu glu"
    " hard_sigmoid hard_tanh imag is_finite isfinite isinf isnan leaky_relu lgamma log log10 log1p"
    " log2 log_sigmoid log_softmax logistic logit nan_to_num neg negative normalize ones_like"
    " ravel_multi_index real reciprocal relu relu6 rint roll round rsqrt selu sigmoid sign silu sin"
    " sinc sinh softmax softplus soft_sign softsign sort sqrt square standardize stop_gradient swish"
    " tan tanh tril triu trunc zeros_like cumsum cumprod cummax cummin convert_element_type"
    " optimization_barrier with_sharding_constraint".split()
)
_BINARY = frozenset(
    "add arctan2 atan2 bitwise_and bitwise_or bitwise_xor copysign div divide equal eq floor_divide"
    " fmax fmin fmod ge greater greater_equal gt heaviside hypot isclose ldexp le less less_equal"
    " logaddexp logaddexp2 logical_and logical_or logical_xor lt max maximum min minimum mod mul"
    " multiply ne nextafter not_equal pow power rem remainder select sub subtract true_divide where"
    " xlog1py xlogy allclose".split()
)
_REDUCTIONS = frozenset(
    "all amax amin any argmax argmin average count_nonzero logsumexp max mean median min nanmax"
    " nanmean nanmin nansum norm prod ptp std sum var reduce_max reduce_sum logmeanexp".split()
)
_SQUARE = frozenset("cho_factor cholesky det eig eigh eigvals eigvalsh expm inv lu slogdet trace".split())
_MATRICES = frozenset("qr svd pinv matrix_rank".split())
_METHODS = _REDUCTIONS | frozenset(
    "astype reshape transpose swapaxes ravel flatten squeeze dot conj clip cumsum round item copy"
    " repeat take sort argsort".split()
)


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
        return UNKNOWN
    operation = OPERATIONS.get(tail)
    if operation is not None:
        return operation(machine, arguments, keywords)
    if (dtype := keywords.get("dtype")) is not None and isinstance(dtype, Param):
        dtype.evidence.dtype = True
    if tail in _REDUCTIONS and (tail not in _BINARY or len(arguments) < 2 or "axis" in keywords):
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
            as_array(value)
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
        case Const() | Unknown() | Size():
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
    if dims is None or not (isinstance(keeps, Const) and not keeps.value):
        return Arr(Shape(), loose=True)
    removed = {number % len(dims) for number in axes} if dims else set()
    return Arr(Shape.of([dim for i, dim in enumerate(dims) if i not in removed]))


def matmul(machine: Machine, left: Value, right: Value) -> Value:
    """Return a matrix product; the contracted sizes are the same."""
    one, two = as_array(left), as_array(right)
    if one is not None:
        one.at_least(1)
    if two is not None:
        two.at_least(1)
    if one is None or two is None:
        return Arr(Shape(), loose=True)
    if two.find().rank == 1:
        one.dim(-1).unify(two.dim(-1))
        dims = one.dims
        return Arr(Shape.of(dims[:-1])) if dims else Arr(Shape(), loose=True)
    if two.find().rank is None and two.find().likely is None:
        two.find().likely = 2
    two.at_least(2)
    one.dim(-1).unify(two.dim(-2))
    last = two.dim(-1)
    dims = one.dims
    if dims is None:
        result = Shape(back={0: last}, least=1)
        if one.find().least >= 2 or one.find().likely == 2:
            result.back[1] = one.dim(-2)
        return Arr(result, loose=False)
    return Arr(Shape.of([*dims[:-1], last]))


def _matmul(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    return matmul(machine, *arguments[:2]) if len(arguments) > 1 else UNKNOWN


def _inner(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`vdot`, `inner`: operands of the same shape."""
    shapes = [shape for value in arguments[:2] if (shape := as_array(value)) is not None]
    if len(shapes) == 2:
        machine.links.append((shapes[0], shapes[1]))
    return Arr(Shape.of([]))


def _einsum(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    match arguments:
        case [Const(str() as subscripts), *operands]:
            pass
        case _:
            for value in arguments:
                as_array(value)
            return Arr(Shape(), loose=True)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    letters: dict[str, Dim] = {}
    for letter in sorted(set(subscripts) - set("->., ")):
        letters[letter] = Dim(name=letter.upper())
    for term, value in zip(inputs.split(","), operands, strict=False):
        shape = as_array(value)
        if shape is None:
            continue
        front, ellipsis, back = term.partition("...")
        if not ellipsis:
            shape.set_rank(len(front))
        shape.at_least(len(front) + len(back))
        for i, letter in enumerate(front):
            shape.dim(i).unify(letters[letter])
        for i, letter in enumerate(reversed(back), start=1):
            shape.dim(-i).unify(letters[letter])
    if not arrow or "..." in output:
        return Arr(Shape(), loose=True)
    return Arr(Shape.of([letters[letter] for letter in output if letter in letters]))


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
        return _transposed(shape)
    if len(numbers) != len(axes) or sorted(numbers) != list(range(len(numbers))):
        return Arr(Shape(), loose=True)
    shape.set_rank(len(numbers))
    return Arr(Shape.of([shape.dim(number) for number in numbers]))


def _swapaxes(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    if shape is None:
        return UNKNOWN
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
        return Arr(as_shape(sizes[0])) if not isinstance(sizes[0], Const) else Arr(Shape.of([Dim()]))
    return Arr(as_shape(Items(tuple(sizes)))) if sizes else Arr(Shape(), loose=True)


def _concatenated(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    match arguments:
        case [Items(values), *_]:
            shapes = [shape for value in values if (shape := as_array(value)) is not None]
            for one, two in zip(shapes, shapes[1:], strict=False):
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


def _square(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    if shape is None:
        return UNKNOWN
    shape.at_least(2)
    shape.dim(-1).unify(shape.dim(-2))
    return Arr(shape)


def _matrix(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    shape = as_array(arguments[0]) if arguments else None
    if shape is not None:
        shape.at_least(2)
    return UNKNOWN


def _solve(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    first, *rest = arguments or [UNKNOWN]
    first = first.values[0] if isinstance(first, Items) and first.values else first
    shape = as_array(first)
    other = as_array(rest[0]) if rest else None
    if shape is not None:
        shape.at_least(2)
        shape.dim(-1).unify(shape.dim(-2))
        if other is not None:
            other.at_least(1)
            other.dim(0 if other.find().rank in (None, 1) else -2).unify(shape.dim(-1))
    return Arr(other) if other is not None else UNKNOWN


def _mapped(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`vmap(f)`: `f` gets arrays with an axis less, where `in_axes` does not say otherwise."""
    match arguments:
        case [Closure() as function, *axes]:
            if axes or "in_axes" in keywords:
                return UNKNOWN
            return replace(function, mapped=function.mapped + 1)
        case [Param(evidence), *_]:
            evidence.called = evidence.called or ("x",)
    return UNKNOWN


def mapped_call(machine: Machine, function: Closure, arguments: Sequence[Value]) -> Value:
    """Call a function under `vmap`; arrays have at least one more axis than it asks for."""
    inner: list[Value] = []
    pairs: list[tuple[Shape, Shape]] = []
    for value in arguments:
        shape = as_array(value)
        if shape is None:
            inner.append(UNKNOWN)
            continue
        shape.at_least(1)
        dims = shape.dims
        item = Shape.of(dims[1:]) if dims else Shape()
        pairs.append((shape, item))
        inner.append(Arr(item))
    result = machine.apply(replace(function, mapped=function.mapped - 1), inner)
    batch = Dim()
    for shape, item in pairs:
        _lengthen(shape, item, batch)
    return Arr(Shape(), loose=True) if not isinstance(result, Items) else UNKNOWN


def _lengthen(shape: Shape, item: Shape, batch: Dim) -> None:
    """Give an array an axis before those of its items."""
    found = item.find()
    if found.rank is not None:
        shape.set_rank(found.rank + 1)
    shape.at_least(found.least + 1)
    if found.likely is not None and shape.find().likely is None:
        shape.find().likely = found.likely + 1
    for i, dim in found.front.items():
        shape.dim(i + 1).unify(dim)
    for i, dim in found.back.items():
        shape.dim(-i - 1).unify(dim)
    shape.dim(0).unify(batch)


def _same(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """`jit(f)`, `grad(f)` and the like: calls demand of their arguments what `f` does."""
    match arguments:
        case [Closure() as function, *_]:
            return function
        case [Param(), *_]:
            return arguments[0]
    return UNKNOWN


def _grad(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if arguments and isinstance(arguments[0], Param):
        arguments[0].evidence.differentiated = True
    return _same(machine, arguments, keywords)


def _partial(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    match arguments:
        case [Closure() as function, *given]:
            return replace(function, bound=(*function.bound, *given))
        case [Named("jit" | "jax.jit"), *_]:
            return UNKNOWN
    return UNKNOWN


def _scan(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    init = arguments[1] if len(arguments) > 1 else keywords.get("init", UNKNOWN)
    items = arguments[2] if len(arguments) > 2 else keywords.get("xs", UNKNOWN)
    as_integer(keywords.get("length"))
    match arguments[0] if arguments else UNKNOWN:
        case Param(evidence):
            evidence.scanned = True
            evidence.called = ("carry", "x")
            for value in (init, items):
                as_array(value)
        case Closure() as function:
            _scanned(machine, function, init, items)
    return UNKNOWN


def _scanned(machine: Machine, function: Closure, init: Value, items: Value) -> None:
    """Call the body of a scan with an item of what it is scanned over."""
    batch = Dim()

    def item(value: Value) -> Value:
        match value:
            case Items(values):
                return Items(tuple(map(item, values)))
            case Param() | Arr():
                shape = as_array(value)
                if shape is not None:
                    shape.dim(0).unify(batch)
                    dims = shape.dims
                    inner = Shape.of(dims[1:]) if dims else Shape()
                    pairs.append((shape, inner))
                    return Arr(inner)
        return UNKNOWN

    pairs: list[tuple[Shape, Shape]] = []
    machine.apply(function, [init, item(items)])
    for shape, inner in pairs:
        _lengthen(shape, inner, batch)


def _fori(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[:2]:
        as_integer(value)
    if len(arguments) > 3:
        machine.apply(arguments[2], [UNKNOWN, arguments[3]])
    return arguments[3] if len(arguments) > 3 else UNKNOWN


def _while(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if len(arguments) > 2:
        for function in arguments[:2]:
            machine.apply(function, [arguments[2]])
        return arguments[2]
    return UNKNOWN


def _cond(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    if len(arguments) < 3:
        return UNKNOWN
    if isinstance(arguments[0], Param):
        arguments[0].evidence.boolean = True
        arguments[0].evidence.shape.set_rank(0)
    results = [machine.apply(function, arguments[3:]) for function in arguments[1:3]]
    return results[0]


def _tree_map(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[1:]:
        if isinstance(value, Param):
            value.evidence.tree = True
    if arguments and isinstance(arguments[0], Param):
        arguments[0].evidence.called = ("x",) * (len(arguments) - 1)
    return UNKNOWN


def _tree(machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    for value in arguments[:1]:
        if isinstance(value, Param):
            value.evidence.tree = True
    return UNKNOWN


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
    match arguments:
        case [first, Const(int() as rank), *_]:
            for value in first.values if isinstance(first, Items) else (first,):
                shape = as_array(value)
                if shape is not None:
                    shape.set_rank(rank)
    return UNKNOWN


def _equal_shapes(
    machine: Machine, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    values = [v for a in arguments for v in (a.values if isinstance(a, Items) else (a,))]
    shapes = [shape for value in values if (shape := as_array(value)) is not None]
    for other in shapes[1:]:
        shapes[0].unify(other)
    return UNKNOWN


OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(("matmul", "dot"), _matmul),
    **dict.fromkeys(("vdot", "inner"), _inner),
    **dict.fromkeys(("zeros", "ones", "full", "empty"), _created),
    **dict.fromkeys(("eye", "identity", "tri"), _eye),
    **dict.fromkeys(("arange", "range"), _range),
    **dict.fromkeys(("concatenate", "stack", "hstack", "vstack", "column_stack"), _concatenated),
    **dict.fromkeys(("jit", "checkpoint", "remat", "jvp", "wraps"), _same),
    **dict.fromkeys(("grad", "value_and_grad"), _grad),
    **dict.fromkeys(("vmap", "filter_vmap"), _mapped),
    **dict.fromkeys(("tree_map", "map"), _tree_map),
    **dict.fromkeys(("tree_leaves", "tree_flatten", "ravel_pytree", "leaves", "flatten"), _tree),
    **dict.fromkeys(("solve", "cho_solve", "solve_triangular", "triangular_solve"), _solve),
    **dict.fromkeys(("assert_equal_shape", "check_shapes_equal"), _equal_shapes),
    **dict.fromkeys(("finfo", "iinfo", "canonicalize_dtype"), _dtype),
    **dict.fromkeys(_SQUARE, _square),
    **dict.fromkeys(_MATRICES, _matrix),
    "assert_rank": _rank,
    "cond": _cond,
    "einsum": _einsum,
    "enumerate": _held("enumerate"),
    "fori_loop": _fori,
    "len": _length,
    "moveaxis": _swapaxes,
    "ndim": _ndim,
    "one_hot": _one_hot,
    "partial": _partial,
    "ravel": _flat,
    "reshape": _reshape,
    "scan": _scan,
    "shape": _shape,
    "swapaxes": _swapaxes,
    "take": _take,
    "take_along_axis": _along_axis,
    "transpose": _transpose,
    "update": _update,
    "while_loop": _while,
    "zip": _held("zip"),
}
"""By the last name of a function, such as `jax.numpy.einsum`."""
