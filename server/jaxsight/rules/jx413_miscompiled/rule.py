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

from jaxsight.rules.program.steps import is_known, numbers, parameter
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.messages.replies import Miscompiled
from jaxsight.wire.primitives import ELEMENTWISE, RESHAPES
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
"""Bytes of an element by dtype; XLA multiplies bfloat16 as float32 on CPUs
(`FloatNormalization`, `xla/hlo/transforms/simplifiers/float_normalization.cc`)."""
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
_RESHAPES = RESHAPES | {"broadcast_in_dim"}
_MANY = 7
"""Axes of a product from which its sum may crash the process."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the equations that the jaxlib in use is known to miscompile."""
    runtime = view.runtime
    if runtime.backend != "cpu" or runtime.machine != _MACHINE or _IS_OFF.search(runtime.flags):
        return
    faults = [fault for fault in _FAULTS if runtime.jaxlib in fault.versions]
    if not faults:
        return
    for step in view.flow.steps.values():
        fault = next((fault for fault in faults if fault.matches(view, step)), None)
        if fault is not None:
            yield Violation(
                f"jaxlib {runtime.jaxlib} {fault.effect} on CPUs (jax#{fault.issue})",
                step.path,
                help=f"set `XLA_FLAGS={_FLAG}`, or install jaxlib 0.11.1 or newer",
            )


@RULE.explains_wrong_result
def explain(wrong: Miscompiled) -> Violation:
    """Return the finding of an error that was seen while running the function."""
    at = f" at {list(wrong.at)}" if wrong.at else ""
    return Violation(
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
    matches: Callable[[ProgramView, Step], bool]


def _is_reduced_product(view: ProgramView, step: Step) -> bool:
    """Whether a small matrix times a long one is reduced over the small one's rows.

    Elementwise operations may come between. The product and what comes between have no other use,
    and no equal product has one either: XLA computes equal ones once (`xla/service/hlo_cse.cc`).
    """
    flow = view.flow
    if step.primitive not in _REDUCTIONS or _axes(step) != (0,):
        return False

    def goes_on(maker: Step) -> bool:
        return _is_kept(view, maker) and not _is_scalar(view, flow.of(maker.results[0]))

    above = list(flow.backwards(step.operands[0], goes_on))
    products = [maker for maker in above if maker.primitive == "dot_general"]
    made = {flow.of(product.results[0]) for product in products}
    sources = flow.sources(step.operands[0], goes_on)
    if sources is None or not all(n in made or _is_scalar(view, n) for n in sources):
        return False
    kept = [*products, *filter(goes_on, above)]
    fused = {step.path, *(maker.path for maker in kept)}
    between = {flow.of(maker.results[0]) for maker in kept}
    if not products or not _is_small_product(view, products[0]):
        return False
    if {"max", "min"} <= {flow.steps[path].primitive for path in fused - {step.path}}:
        return False  # XLA makes one operation of the two, which is right.
    same = _written(view, products[0].results[0])
    equal = {
        step.path
        for step in flow.steps.values()
        if step.primitive == "dot_general" and _written(view, step.results[0]) == same
    }
    if equal != {product.path for product in products}:
        return False
    live = flow.returned
    return not between & live and not any(
        user.path not in fused and _is_live(view, user, live)
        for value in between
        for user in flow.used_by(value)
    )


def _written(view: ProgramView, number: int, depth: int = 6) -> object:
    """Return how a value is computed, in a few steps: the same for two that XLA computes once."""
    value = view.flow.of(number)
    maker = view.flow.made_by(value)
    if maker is None or not depth:
        return value
    operands = tuple(_written(view, operand, depth - 1) for operand in maker.operands)
    return maker.primitive, maker.parameters, operands, maker.results.index(value)


def _is_scalar(view: ProgramView, value: int) -> bool:
    """Whether a value is one number, the same for all elements."""
    value = view.flow.before(value, _RESHAPES | {"convert_element_type"})
    return math.prod(view.flow.values[value].shape) == 1


def _is_kept(view: ProgramView, step: Step) -> bool:
    """Whether products followed by this operation were seen to be wrong."""
    if step.primitive == "convert_element_type":
        return view.flow.value(step.results[0]).dtype in ("bfloat16", "float32")
    if step.primitive == "round":
        return parameter(step, "rounding_method") == _TO_EVEN
    if step.primitive != "select_n":
        return step.primitive in _KEPT
    # XLA evaluates a selection of arrays while compiling, as in `jnp.copysign(x, 2.0)`.
    predicate, *cases = map(view.flow.of, step.operands)
    if not _is_scalar(view, predicate) or any(_is_scalar(view, case) for case in cases):
        return False
    sources = view.flow.sources(predicate, _FOLDED)
    return sources is not None and all(is_known(view.flow.values[source]) for source in sources)


def _is_live(view: ProgramView, step: Step, live: frozenset[int]) -> bool:
    """Whether XLA keeps an equation: a result of the program depends on it, or it has none.

    Args:
        live: the results of the program, its loops and branches.
    """
    flow = view.flow

    def is_kept(step: Step) -> bool:
        return (
            bool(step.bodies) or not step.results or not live.isdisjoint(map(flow.of, step.results))
        )

    return is_kept(step) or any(
        is_kept(user)
        for result in step.results
        for _, user in flow.forwards(result, lambda _: True, most=len(flow.steps))
    )


def _is_small_product(view: ProgramView, step: Step) -> bool:
    """Whether a product is of `[rows, columns]` and `[length, columns]` in the shapes that fail.

    The second operand may be transposed.
    """
    flow = view.flow
    left, right = (flow.value(number) for number in step.operands)
    dimensions = parameter(step, "dimension_numbers")
    if len(left.shape) != 2 or len(right.shape) != 2 or left.dtype != right.dtype:
        return False
    match dimensions:
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


def _product(view: ProgramView, step: Step) -> Step | None:
    """Return the product of two `f32` arrays that a sum over one axis reduces, negated or not."""
    flow = view.flow
    if step.primitive != "reduce_sum" or len(_axes(step)) != 1:
        return None
    maker = step
    while maker is step or maker.primitive == "neg":
        broadcast = flow.made_by(maker.operands[0])
        if broadcast is None or len(flow.used_by(maker.operands[0])) != 1:
            return None
        maker = broadcast
    value = flow.value(maker.results[0])
    if maker.primitive != "mul" or value.dtype != "float32" or len(value.shape) < _MANY:
        return None
    first, second = map(flow.of, maker.operands)
    if first == second or _is_scalar(view, first) or _is_scalar(view, second):
        return None  # XLA computes a square, or multiplies by a number.
    return maker


def _is_product_with_single_axis(view: ProgramView, step: Step) -> bool:
    """Whether a product is summed over an axis of 2, after an axis of 1 and before three or more.

    It has 6 or 7 axes of more than one element, and at least 4,096 elements. One operand may be
    broadcast.
    """
    product = _product(view, step)
    if product is None:
        return False
    flow = view.flow
    shape = flow.value(product.results[0]).shape
    (axis,) = _axes(step)
    shapes = [flow.value(number).shape for number in product.operands]
    first, second = (_before_reshape(view, number) for number in product.operands)
    return (
        shape in shapes
        and all(len(own) == len(shape) for own in shapes)
        and not (first and first == second)  # XLA moves equal reshapes after the product
        and shape[axis] == 2
        and 1 in shape[:axis]
        and len(shape) - axis > 3
        and _extended(shape) in (6, 7)
        and math.prod(shape) >= 4096
    )


def _before_reshape(view: ProgramView, number: int) -> tuple[int, ...]:
    """Return the shape of an operand before its reshape, empty if it has none."""
    flow = view.flow
    for maker in flow.backwards(number, ELEMENTWISE):
        if maker.primitive in _RESHAPES:
            return flow.value(maker.operands[0]).shape
    return ()


def _extended(shape: tuple[int, ...]) -> int:
    """Return how many axes have more than one element."""
    return sum(size > 1 for size in shape)


def _is_broadcast_product(view: ProgramView, step: Step) -> bool:
    """Whether a sum is of an array times one that is broadcast along its last axes.

    Those are four axes or more, of 9 elements or more; the sum is over an axis that both have. The
    product has 7 or 8 axes of more than one element.
    """
    product = _product(view, step)
    if product is None:
        return False
    flow = view.flow
    shape = flow.value(product.results[0]).shape
    if _extended(shape) not in (7, 8):
        return False
    for number in product.operands:
        own = _before_broadcast(view, number)
        rank = max((axis + 1 for axis, size in enumerate(own) if size > 1), default=0)
        if (
            len(own) == len(shape)
            and 1 < rank <= len(shape) - 4
            and min(shape[rank:]) >= 9
            and _axes(step)[0] in (0, rank - 1)
        ):
            return True
    return False


def _before_broadcast(view: ProgramView, number: int) -> tuple[int, ...]:
    """Return the shape of an operand, with axes of one where it is broadcast."""
    maker = view.flow.made_by(number)
    shape = view.flow.value(number).shape
    if maker is None or maker.primitive != "broadcast_in_dim":
        return shape
    shape_before = view.flow.value(maker.operands[0]).shape
    own = [1] * len(shape)
    for axis, size in zip(numbers(maker, "broadcast_dimensions"), shape_before, strict=False):
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
