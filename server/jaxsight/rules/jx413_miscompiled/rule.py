"""JX413: the user's version of jaxlib miscompiles the program: wrong numbers, or a crash.

Known patterns are recognized in the traced program. Each was run in nearby shapes with each
version, on Linux and x86-64, without accelerators. The rule reports what was seen to fail, so other
failing shapes may be missing. jaxlib 0.10.1, 0.11.1, 0.12.0 and 0.12.0.1 compute all of them
correctly; `tests/miscompiled` runs them again. All are bugs of the YNNPACK fusions of XLA's CPU
backend, which came with 0.10.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.view import ELEMENTWISE, Reading, is_known, numbers, parameter
from jaxsight.rules.rule import Rule
from jaxsight.wire.messages.replies import Miscompiled
from jaxsight.wire.program import Step

RULE = Rule(
    "JX413",
    "miscompiled",
    "This version of jaxlib compiles the program wrongly.",
)

_MACHINE = "linux x86_64"
_FLAG = "--xla_cpu_experimental_ynn_fusion_type="
_IS_OFF = re.compile(rf"{_FLAG}(?:\s|$)|--xla_disable_hlo_passes=\S*dot-library-rewriter")

_MOST = 130_500
"""Largest length times rows or columns of the small matrix at which products were wrong."""
_LONG = 131_072
"""Bytes of a row of the product above which it is wrong."""
_ROWS = {3: (2, 3, 6), 5: (2, 3, 4, 5), 6: (2, 3, 4, 5, 6), 7: (2, 3, 4, 5, 6, 7)}
"""By columns of the small matrix: rows with wrong products in every length up to `_MOST`."""
_SHORTER = {(4, 3): 21_500, (5, 3): 21_000}
"""By rows and columns of others: the length up to which products were seen to be wrong."""
_WIDTHS = {"bfloat16": 4, "float32": 4, "float64": 8}
"""Bytes of an element by dtype; XLA multiplies bfloat16 as float32 on CPUs."""
_KEPT = frozenset(
    {
        "abs", "ceil", "cosh", "exp", "exp2", "expm1", "erf", "floor", "integer_pow", "log",
        "log1p", "logistic", "neg", "rsqrt", "sign",
        "sqrt", "square", "stop_gradient", "tanh", "add", "div", "max", "min", "mul", "pow", "sub",
    }
)  # fmt: skip
"""Elementwise operations between product and reduction with which it was seen to be wrong.

`sin` and comparisons are not among them.
"""
_TO_EVEN = 1
"""`RoundingMethod.TO_NEAREST_EVEN`; products rounded away from zero were seen to be right."""
_FOLDED = ELEMENTWISE | {"bitcast_convert_type", "broadcast_in_dim"}
"""Operations on constants that XLA computes while compiling."""
_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min"})
_RESHAPES = frozenset({"broadcast_in_dim", "expand_dims", "reshape", "squeeze"})
_MANY = 7
"""Axes of a product from which its sum may crash the process."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield the equations that the jaxlib in use is known to miscompile."""
    runtime = reading.runtime
    if runtime.backend != "cpu" or runtime.machine != _MACHINE or _IS_OFF.search(runtime.flags):
        return
    known = [fault for fault in _FAULTS if runtime.jaxlib in fault.versions]
    if not known:
        return
    for step in reading.flow.steps.values():
        fault = next((fault for fault in known if fault.matches(reading, step)), None)
        if fault is not None:
            yield Noticed(
                f"jaxlib {runtime.jaxlib} {fault.effect} on CPUs (jax#{fault.issue})",
                step.path,
                help=f"set `XLA_FLAGS={_FLAG}`, or install jaxlib 0.11.1 or newer",
            )


def seen(wrong: Miscompiled) -> Noticed:
    """Return the finding of an error that was seen while running the function."""
    at = f" at {list(wrong.at)}" if wrong.at else ""
    return Noticed(
        f"jaxlib {wrong.jaxlib} computes {wrong.result} wrongly on this CPU",
        help=f"compile with `compiler_options={wrong.options}`",
        notes=(
            f"for random inputs it is {wrong.usual} instead of {wrong.second}{at}",
            "without `jit`, and with these options, it is right",
        ),
    )


@dataclass(frozen=True, slots=True)
class _Fault:
    """A bug of some versions: `effect` completes `jaxlib 0.10.2 …`."""

    issue: int
    versions: frozenset[str]
    effect: str
    matches: Callable[[Reading, Step], bool]


def _is_reduced_product(reading: Reading, step: Step) -> bool:
    """Whether a small matrix times a long one is reduced over the small one's rows.

    Elementwise operations may come between. The product and what comes between have no other use,
    and no equal product has one either: XLA computes equal ones once.
    """
    flow = reading.flow
    if step.primitive not in _REDUCTIONS or _axes(step) != (0,):
        return False
    fused = {step.path}
    between = set[int]()
    products: list[Step] = []
    waiting = [flow.of(step.operands[0])]
    while waiting:
        value = waiting.pop()
        if value in between or _is_scalar(reading, value):
            continue
        between.add(value)
        maker = flow.made_by(value)
        if maker is None:
            return False
        fused.add(maker.path)
        if maker.primitive == "dot_general":
            products.append(maker)
        elif _is_kept(reading, maker):
            waiting += map(flow.of, maker.operands)
        else:
            return False
    if not products or not _is_small_product(reading, products[0]):
        return False
    if {"max", "min"} <= {flow.steps[path].primitive for path in fused - {step.path}}:
        return False  # XLA makes one operation of the two, which is right.
    same = _written(reading, products[0].results[0])
    equal = [each for each in _products(reading) if _written(reading, each.results[0]) == same]
    if {each.path for each in equal} != {each.path for each in products}:
        return False
    kept = _kept(reading)
    return not between & kept and not any(
        user.path not in fused and _is_live(reading, user, kept)
        for value in between
        for user in flow.used_by(value)
    )


def _products(reading: Reading) -> Iterator[Step]:
    return (step for step in reading.flow.steps.values() if step.primitive == "dot_general")


def _written(reading: Reading, number: int, depth: int = 6) -> object:
    """Return how a value is computed: the same for two that XLA computes once."""
    value = reading.flow.of(number)
    maker = reading.flow.made_by(value)
    if maker is None or not depth:
        return value
    operands = tuple(_written(reading, each, depth - 1) for each in maker.operands)
    return maker.primitive, maker.parameters, operands, maker.results.index(value)


def _kept(reading: Reading) -> frozenset[int]:
    """Return the results of the program, its loops and branches."""
    flow = reading.flow
    bodies = [body for step in flow.steps.values() for body in step.bodies]
    inner = {flow.of(number) for body in bodies for number in body.outputs}
    return frozenset({*flow.outputs, *inner})


def _is_scalar(reading: Reading, value: int) -> bool:
    """Whether a value is one number, the same for all elements."""
    while (maker := reading.flow.made_by(value)) is not None:
        if maker.primitive not in _RESHAPES | {"convert_element_type"}:
            break
        value = reading.flow.of(maker.operands[0])
    return math.prod(reading.flow.values[value].shape) == 1


def _is_kept(reading: Reading, step: Step) -> bool:
    """Whether products followed by this operation were seen to be wrong."""
    if step.primitive == "convert_element_type":
        return reading.flow.value(step.results[0]).dtype in ("bfloat16", "float32")
    if step.primitive == "round":
        return parameter(step, "rounding_method") == _TO_EVEN
    return step.primitive in _KEPT or _is_settled(reading, step)


def _is_settled(reading: Reading, step: Step) -> bool:
    """Whether XLA evaluates a selection of arrays while compiling, as in `jnp.copysign(x, 2.0)`."""
    if step.primitive != "select_n":
        return False
    predicate, *cases = map(reading.flow.of, step.operands)
    if not _is_scalar(reading, predicate) or any(_is_scalar(reading, each) for each in cases):
        return False
    sources = reading.flow.sources(predicate, lambda maker: maker.primitive in _FOLDED)
    return sources is not None and all(is_known(reading.flow.values[each]) for each in sources)


def _is_live(reading: Reading, step: Step, kept: frozenset[int]) -> bool:
    """Whether XLA keeps an equation: a result of the program depends on it, or it has none.

    Args:
        kept: the results of the program, its loops and branches.
    """
    waiting, seen = [step], set[int]()
    while waiting:
        each = waiting.pop()
        if each.bodies or not each.results:
            return True
        for value in map(reading.flow.of, each.results):
            if value in kept:
                return True
            if value not in seen:
                seen.add(value)
                waiting += reading.flow.used_by(value)
    return False


def _is_small_product(reading: Reading, step: Step) -> bool:
    """Whether a product is of `[rows, columns]` and `[length, columns]` in the shapes that fail.

    The second operand may be transposed.
    """
    flow = reading.flow
    left, right = (flow.value(number) for number in step.operands)
    found = parameter(step, "dimension_numbers")
    if len(left.shape) != 2 or len(right.shape) != 2 or left.dtype != right.dtype:
        return False
    match found:
        case ((((1,), (1,)) | ([1], [1])), _):
            length = right.shape[0]
        case ((((1,), (0,)) | ([1], [0])), _):
            maker = flow.made_by(step.operands[1])
            if maker is None or maker.primitive != "transpose":
                return False
            length = right.shape[1]
        case _:
            return False
    maker = flow.made_by(step.operands[0])
    if maker is not None and maker.primitive == "transpose":
        return False  # It becomes a product over the first axis, which is right.
    rows, columns = left.shape
    return (
        (rows in _ROWS.get(columns, ()) or length <= _SHORTER.get((rows, columns), 0))
        and length * _WIDTHS.get(left.dtype, 0) > _LONG
        and length * max(rows, columns) <= _MOST
    )


def _product(reading: Reading, step: Step) -> Step | None:
    """Return the product of two `f32` arrays that a sum over one axis reduces, negated or not."""
    flow = reading.flow
    if step.primitive != "reduce_sum" or len(_axes(step)) != 1:
        return None
    maker = step
    while maker is step or maker.primitive == "neg":
        given = flow.made_by(maker.operands[0])
        if given is None or len(flow.used_by(maker.operands[0])) != 1:
            return None
        maker = given
    result = flow.value(maker.results[0])
    if maker.primitive != "mul" or result.dtype != "float32" or len(result.shape) < _MANY:
        return None
    one, other = map(flow.of, maker.operands)
    if one == other or _is_scalar(reading, one) or _is_scalar(reading, other):
        return None  # XLA computes a square, or multiplies by a number.
    return maker


def _is_product_with_single_axis(reading: Reading, step: Step) -> bool:
    """Whether a product is summed over an axis of 2, after an axis of 1 and before three or more.

    One operand may be broadcast.
    """
    product = _product(reading, step)
    if product is None:
        return False
    flow = reading.flow
    shape = flow.value(product.results[0]).shape
    (axis,) = _axes(step)
    shapes = [flow.value(number).shape for number in product.operands]
    return (
        shape in shapes
        and all(len(own) == len(shape) for own in shapes)
        and not _is_reshaped(reading, product)
        and shape[axis] == 2
        and 1 in shape[:axis]
        and len(shape) - axis > 3
        and _extended(shape) in (6, 7)
        and math.prod(shape) >= 4096
    )


def _is_reshaped(reading: Reading, product: Step) -> bool:
    """Whether both operands come from equal reshapes, which XLA moves after the product."""
    one, other = (_before_reshape(reading, number) for number in product.operands)
    return bool(one) and one == other


def _before_reshape(reading: Reading, number: int) -> tuple[int, ...]:
    """Return the shape of an operand before its reshape, empty if it has none."""
    flow = reading.flow
    for maker in flow.above(number, lambda maker: maker.primitive in ELEMENTWISE):
        if maker.primitive in _RESHAPES:
            return flow.value(maker.operands[0]).shape
    return ()


def _extended(shape: tuple[int, ...]) -> int:
    """Return how many axes have more than one element."""
    return sum(size > 1 for size in shape)


def _is_broadcast_product(reading: Reading, step: Step) -> bool:
    """Whether a sum is of an array times one that is broadcast along its last axes.

    Those are four axes or more, of 9 elements or more; the sum is over an axis that both have.
    """
    product = _product(reading, step)
    if product is None:
        return False
    flow = reading.flow
    shape = flow.value(product.results[0]).shape
    if _extended(shape) not in (7, 8):
        return False
    for number in product.operands:
        own = _before_broadcast(reading, number)
        given = max((axis + 1 for axis, size in enumerate(own) if size > 1), default=0)
        if (
            len(own) == len(shape)
            and 1 < given <= len(shape) - 4
            and min(shape[given:]) >= 9
            and _axes(step)[0] in (0, given - 1)
        ):
            return True
    return False


def _before_broadcast(reading: Reading, number: int) -> tuple[int, ...]:
    """Return the shape of an operand, with axes of one where it is broadcast."""
    maker = reading.flow.made_by(number)
    shape = reading.flow.value(number).shape
    if maker is None or maker.primitive != "broadcast_in_dim":
        return shape
    given = reading.flow.value(maker.operands[0]).shape
    own = [1] * len(shape)
    for axis, size in zip(numbers(maker, "broadcast_dimensions"), given, strict=False):
        own[axis] = size
    return tuple(own)


def _axes(step: Step) -> tuple[int, ...]:
    """Return the axes of a reduction.

    Axes that a batching rule returned are NumPy numbers, whose text is `np.int64(0)`.
    """
    text = dict(step.parameters).get("axes", "")
    return tuple(map(int, re.findall(r"(?<![a-z\d])\d+", text)))


_FAULTS = (
    _Fault(
        39103,
        frozenset({"0.10.2"}),
        "computes this reduced matrix product wrongly",
        _is_reduced_product,
    ),
    _Fault(
        40412,
        frozenset({"0.10.2"}),
        "computes this sum of a product wrongly, or ends the process,",
        _is_product_with_single_axis,
    ),
    _Fault(
        39257,
        frozenset({"0.10.2", "0.11.0"}),
        "ends the process in this sum of a product",
        _is_broadcast_product,
    ),
)
