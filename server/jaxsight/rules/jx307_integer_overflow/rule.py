"""JX307: integer arithmetic that wraps around.

JAX integers wrap silently, and arithmetic keeps small dtypes: `uint8 + uint8` is uint8, and so are
`jnp.cumsum` and matrix products of uint8, while NumPy accumulates sums in 64 bits. Code that wraps
on purpose (hashes, generators of random numbers, bit masks) is not reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from jaxsight.rules.exceptions import first_sentence, is_a, jax_page, quoted
from jaxsight.rules.jx307_integer_overflow.recurrences import overflows
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.intervals import Range, limits
from jaxsight.rules.program.matrices import product
from jaxsight.rules.program.ranges import Ranges
from jaxsight.rules.program.view import ELEMENTWISE, SHAPED, Flow, Reading, numbers, parameter
from jaxsight.rules.rule import Rule
from jaxsight.wire.observations import Failure
from jaxsight.wire.program import LITERAL, Step

RULE = Rule(
    "JX307",
    "integer-overflow",
    "Integer arithmetic wraps around.",
    severity="warning",
)

Expression = ast.expr | ast.AugAssign

_OPERATORS: dict[type[ast.operator], frozenset[str]] = {
    ast.Add: frozenset({"add"}),
    ast.Sub: frozenset({"sub"}),
    ast.Mult: frozenset({"mul"}),
    ast.Pow: frozenset({"integer_pow", "square"}),
    ast.LShift: frozenset({"shift_left"}),
    ast.MatMult: frozenset({"dot_general"}),
}
_CALLS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("add",), frozenset({"add"})),
    **dict.fromkeys(("sub", "subtract"), frozenset({"sub"})),
    **dict.fromkeys(("diff", "ediff1d"), frozenset({"sub"})),
    **dict.fromkeys(("arange", "iota"), frozenset({"iota", "add", "mul"})),
    **dict.fromkeys(("mul", "multiply", "outer", "kron"), frozenset({"mul"})),
    **dict.fromkeys(("square", "power", "pow"), frozenset({"integer_pow", "square"})),
    **dict.fromkeys(("neg", "negative"), frozenset({"neg"})),
    **dict.fromkeys(("sum", "nansum"), frozenset({"reduce_sum"})),
    **dict.fromkeys(("prod", "nanprod"), frozenset({"reduce_prod"})),
    **dict.fromkeys(("cumsum", "nancumsum"), frozenset({"cumsum"})),
    **dict.fromkeys(("cumprod", "nancumprod"), frozenset({"cumprod"})),
    **dict.fromkeys(
        ("dot", "matmul", "einsum", "vdot", "inner", "tensordot", "vecdot"),
        frozenset({"dot_general", "mul"}),
    ),
    **dict.fromkeys(
        ("left_shift", "shift_left"),
        frozenset({"shift_left"}),
    ),
    **dict.fromkeys(
        ("astype", "asarray", "array", "convert_element_type", "int8", "int16", "uint8", "uint16",
         "uint32"),
        frozenset({"convert_element_type"}),
    ),
}  # fmt: skip
"""Primitives of the user's operators and calls."""

_PRIMITIVES = frozenset().union(*_OPERATORS.values(), *_CALLS.values()) | {
    "iota", "broadcast_in_dim", "scatter", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "and",
}  # fmt: skip
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_ACCUMULATES = frozenset({"reduce_sum", "reduce_prod", "cumsum", "cumprod", "dot_general"})
_BITS = frozenset(
    {"and", "or", "xor", "not", "shift_left", "shift_right_logical", "shift_right_arithmetic",
     "population_count", "bitcast_convert_type", "clz", "random_bits", "threefry2x32"}
)  # fmt: skip
_MIXES = re.compile(
    r"hash|crc|checksum|digest|prng|rng|random|lcg|xorshift|seed|fnv|murmur|adler|fletcher|parity|"
    r"scramble|modular|modulo|wrap|overflow",
    re.IGNORECASE,
)
"""Names of code that wraps on purpose."""
_TOO_LARGE = re.compile(
    r"Python int(?:eger)? (?P<number>-?\d{1,300}) (?:out of bounds for|too large to convert to) "
    r"(?P<dtype>\w+)|"
    r"Got <class 'int'> with value (?P<value>-?\d{1,300})\b"
)
_LATER = re.compile(
    r"end|stop|\bhi\b|high|upper|max|last|next|after|now|total|indptr|offset|cum", re.IGNORECASE
)
"""Names of what is not less than what is subtracted from it."""
_EARLIER = re.compile(
    r"(?:^|[^a-z])(?:lower|low|lo|least|min|minimum|begin|start|starts|first|floor|origin)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""Names of what is not greater than what it is subtracted from."""
_NEAR = 6
_MOVES = SHAPED | {"convert_element_type", "copy", "stop_gradient", "rev", "concatenate", "pad"}
_HASH = 1 << 16
"""Odd factors from here on are those of hashes and random generators."""
_ABSOLUTE = frozenset({"abs", "absolute", "fabs"})


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognize the `OverflowError` of a Python integer that does not fit in its dtype."""
    if not is_a(failure, "OverflowError"):
        return None
    found = _TOO_LARGE.search(failure.message)
    number = int(found["number"] or found["value"]) if found else None
    if found is None or number is None:
        return None
    dtype = found["dtype"] or "int32"
    within = limits(dtype)
    if within is None:
        return None
    if dtype != "int32":
        help = f"use an integer from {within[0]} to {within[1]}, or a wider dtype"
    elif _indexes(expression, number):
        help = 'enable 64-bit types with `jax.config.update("jax_enable_x64", True)`'
    else:
        help = f"use a float: `{float(number)!r}`"
    return Noticed(
        f"Python integer {_figure(number)} does not fit in {dtype}",
        help=help,
        notes=(first_sentence(failure.message),),
        url=jax_page(failure),
    )


def _indexes(expression: str, number: int) -> bool:
    """Return whether an expression indexes an array with more elements than int32 counts.

    JAX adds the size of the axis to negative indices, which have 32 bits unless 64-bit types are
    enabled (`_normalize_index` in `jax/_src/numpy/indexing.py`). A number that is written in the
    expression is no such size.
    """
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    if any(isinstance(part, ast.Constant) and part.value == number for part in ast.walk(node)):
        return False
    match node:
        case ast.Subscript():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at")))):
            return True
        case _:
            return False


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield arithmetic that certainly wraps, and forms that wrap for ordinary values."""
    flow = reading.flow
    ranges = Ranges(flow, reading.exact)
    checks = _Checks(reading, flow, ranges)
    reported: set[object] = set()
    for step in flow.steps.values():
        if step.backward or step.span is None or step.span in reported:
            continue
        if step.primitive == "scan":
            found = checks.carried(step)
        elif step.primitive in _PRIMITIVES and checks.is_of_integers(step):
            found = checks.of(step)
        else:
            continue
        if found is not None:
            reported.add(step.span)
            yield found


class _Checks:
    def __init__(self, reading: Reading, flow: Flow, ranges: Ranges) -> None:
        self._reading = reading
        self._flow = flow
        self._ranges = ranges

    def is_of_integers(self, step: Step) -> bool:
        """Whether an equation computes or compares integers."""
        return bool(step.results) and _bits(self._dtype(step)) > 1

    def _dtype(self, step: Step) -> str:
        number = step.operands[-1] if step.primitive in _COMPARISONS else step.results[0]
        return self._flow.value(number).dtype

    def of(self, step: Step) -> Noticed | None:
        """Return what is wrong with one equation."""
        dtype = self._dtype(step)
        usual = _bits(dtype) >= 32 and not dtype.startswith("uint") and step.primitive != "and"
        if usual and self._certain(step) is None:
            return None  # most integers have 32 bits and are not known: spare reading the text
        node = _expression(self._reading.quote(step.path))
        if node is None:
            return None
        if (found := self._literal(step, node)) is not None:
            return found
        if step.primitive == "and":
            return None if self._is_meant(step) else self._power(step, node)
        if step.primitive not in _meant(node):
            return None
        checks = (self._certain, self._accumulated, self._difference, self._average)
        found = next(filter(None, (check(step, node) for check in checks)), None)
        return None if found is None or self._is_meant(step) else found

    def carried(self, loop: Step) -> Noticed | None:
        """Return what overflows in what a loop carries: a factorial, Fibonacci numbers."""
        for found in overflows(self._ranges, self._flow, loop):
            step = found.step
            node = _expression(self._reading.quote(step.path))
            if node is None or step.primitive not in _meant(node) or self._is_meant(step):
                return None
            dtype = self._dtype(step)
            return Noticed(
                f"{self._quoted(step)} overflows {dtype} in iteration {found.iteration}: "
                f"it reaches {_figure(found.value)}",
                step.path,
                help=_wider(dtype),
                notes=(_holds(dtype),),
            )
        return None

    def _quoted(self, step: Step) -> str:
        return quoted(self._reading.quote(step.path), "this")

    def _certain(self, step: Step, node: Expression | None = None) -> Noticed | None:
        """Arithmetic of known integers whose result does not fit."""
        known = self._exact(step)
        dtype = self._dtype(step)
        within = limits(dtype)
        if known is None or within is None:
            return None
        if step.primitive == "shift_left":
            by = self._ranges.of(step.operands[1])
            if by is None or by.high < _bits(dtype):
                return None  # the sign bit of a mask
        if (
            step.primitive == "convert_element_type"
            and known.one is not None
            and (known.one < 0 or _bits(dtype) >= 32)
        ):
            return None  # all bits of a mask
        return self._overflow(step, dtype, known)

    def _exact(self, step: Step) -> Range | None:
        """Return what an equation computes before it wraps around."""
        match step.primitive:
            case "convert_element_type":
                return self._ranges.of(step.operands[0])
            case "iota":
                axis, shape = numbers(step, "dimension"), self._flow.value(step.results[0]).shape
                return Range.listed([0, max(shape[axis[0]] - 1, 0)]) if axis else None
            case _:
                return self._ranges.result(step)

    def _overflow(self, step: Step, dtype: str, known: Range) -> Noticed | None:
        within = limits(dtype)
        if within is None:
            return None
        if known.high > within[1]:
            message = f"{self._quoted(step)} overflows {dtype}: it reaches {_figure(known.high)}"
        elif known.low < within[0]:
            message = (
                f"{self._quoted(step)} wraps below zero in {dtype}: it falls to "
                f"{_figure(known.low)}"
                if within[0] == 0
                else f"{self._quoted(step)} overflows {dtype}: it falls to {_figure(known.low)}"
            )
        else:
            return None
        below = known.high <= within[1] and within[0] == 0
        advice = _signed(dtype) if below else _wider(dtype)
        if step.primitive == "iota":
            advice = "use a wider dtype: `dtype=jnp.int32`"
        return Noticed(
            message,
            step.path,
            help=advice,
            notes=(_holds(dtype),),
        )

    def _power(self, step: Step, node: Expression) -> Noticed | None:
        """`2 ** k`: JAX multiplies by the squares that the bits of the exponent choose."""
        match node:
            case ast.BinOp(op=ast.Pow(), left=base):
                pass
            case ast.Call(func=ast.Attribute(attr="power" | "pow"), args=[base, _]):
                pass
            case _:
                return None
        number = _integer(base)
        exponent, lowest = (self._ranges.of(each) for each in step.operands)
        if number is None or number < 2 or exponent is None or lowest is None:
            return None
        if lowest.one != 1 or not 0 <= exponent.high <= 512 or exponent.high < exponent.least:
            return None
        reached = number**exponent.high
        least = number ** max(exponent.least, 0)
        return self._overflow(step, self._dtype(step), Range(least, reached, least, reached))

    def _literal(self, step: Step, node: Expression) -> Noticed | None:
        """Find a Python integer that does not fit in the dtype that JAX converts it to."""
        dtype = self._dtype(step)
        within = limits(dtype)
        if within is None:
            return None
        if step.primitive == "convert_element_type":
            value = self._flow.value(step.operands[0])
            known = self._ranges.of(step.operands[0]) if value.origin == LITERAL else None
            literals = _literals(node, known.one) if known is not None else []
        else:
            literals = [each for each in _arguments(node) if not _may_be(each, node, within)]
        for number in literals:
            if within[0] <= number <= within[1]:
                continue
            used = _wrapped(number, within)
            if not self._reads(step, used, number):
                continue
            what = "compares with" if step.primitive in _COMPARISONS else "uses"
            return Noticed(
                f"`{number}` does not fit in {dtype}: JAX {what} {used} instead",
                step.path,
                help=f"use an integer from {within[0]} to {within[1]}, or convert the array to "
                "a wider dtype first",
                notes=(_holds(dtype),),
            )
        return None

    def _reads(self, step: Step, used: int, written: int) -> bool:
        if step.primitive == "convert_element_type":
            return True
        for number in step.operands:
            value = self._flow.value(number)
            if value.origin == LITERAL and value.said in (str(used), str(written)):
                return True
        return False

    def _accumulated(self, step: Step, node: Expression) -> Noticed | None:
        """Find sums and products of many small integers in their own dtype."""
        dtype, known = self._dtype(step), self._ranges.result(step)
        within = limits(dtype)
        if step.primitive not in _ACCUMULATES or _bits(dtype) > 16 or within is None:
            return None
        operand = self._flow.value(step.operands[0])
        length = max(operand.shape, default=0)
        if step.primitive in ("cumprod", "reduce_prod"):
            return None
        if known is None or (within[0] <= known.least and known.most <= within[1]):
            return None
        if step.primitive == "dot_general":
            matrices = product(step)
            if matrices is not None and not matrices.contracted[0]:
                return None  # an outer product adds nothing up
            if any(not self._is_any(number) for number in step.operands):
                return None
            asked = str(parameter(step, "preferred_element_type") or dtype)
            if asked != dtype:
                return None
            return Noticed(
                f"{dtype} matrix product is accumulated in {dtype}",
                step.path,
                help="pass `preferred_element_type=jnp.int32`",
                notes=(_holds(dtype),),
            )
        if length < 4:
            return None
        return Noticed(
            f"{self._quoted(step)} accumulates {length:,} elements in {dtype}",
            step.path,
            help="pass `dtype=jnp.int32`",
            notes=(
                _holds(dtype),
                *(
                    ("`jnp.cumsum` keeps small dtypes, unlike `jnp.sum`",)
                    if step.primitive == "cumsum"
                    else ()
                ),
            ),
        )

    def _is_any(self, number: int) -> bool:
        """Whether a value may be any integer of its dtype, as arguments are."""
        known, within = self._ranges.of(number), limits(self._flow.value(number).dtype)
        return known is not None and (known.least, known.most) == within

    def _is_given(self, number: int) -> bool:
        """Return whether a value is an argument, an element of one, or a converted one.

        Other values may be computed such that they are less or greater than others.
        """
        for _ in range(20):
            step = self._flow.made_by(number)
            if step is None:
                return self._is_any(number)
            if step.primitive not in _MOVES | {"gather", "dynamic_slice"}:
                return False
            if limits(self._flow.value(step.operands[0]).dtype) is None:
                return True
            number = step.operands[0]
        return False

    def _difference(self, step: Step, node: Expression) -> Noticed | None:
        """`abs(a - b)`, `(a - b) ** 2`, `(a - b) < 0` and `(a - b).astype(float)` of unsigned."""
        dtype = self._dtype(step)
        if step.primitive != "sub" or not dtype.startswith("uint"):
            return None
        a, b = step.operands
        known = self._ranges.of(a), self._ranges.of(b)
        if known[0] is None or known[1] is None or known[0].least >= known[1].most:
            return None
        either = all(map(self._is_given, (a, b)))
        literal = known[1].one is not None and self._is_given(a)
        if self._is_absolute(step, node) and (either or literal):
            return Noticed(
                f"`abs` has no effect on the unsigned difference {self._quoted(step)}",
                step.path,
                help="use `jnp.maximum(a, b) - jnp.minimum(a, b)`, or convert both to a signed "
                "type first",
                notes=(f"{dtype} differences below zero wrap around",),
            )
        for user in self._flow.used_by(step.results[0]):
            orders = literal and user.primitive in ("gt", "le") and self._has_zero(user, 1)
            if orders or ((either or literal) and self._compares_with_zero(user)):
                return Noticed(
                    f"{self._quoted(step)} is never below zero: {dtype} differences wrap around",
                    step.path,
                    help=_INSTEAD[user.primitive],
                )
            if not either or _bits(dtype) > 16 or _is_later(node):
                continue
            if _squares(user):
                return Noticed(
                    f"square of a {dtype} difference wraps around",
                    step.path,
                    help=_signed(dtype),
                    notes=(_holds(dtype),),
                )
            if self._widens(user):
                return Noticed(
                    f"{self._quoted(step)} wraps around in {dtype} before it is converted",
                    step.path,
                    help="convert the operands, not the difference: "
                    "`a.astype(jnp.float32) - b.astype(jnp.float32)`",
                    notes=(f"{dtype} differences below zero wrap around",),
                )
        return None

    def _average(self, step: Step, node: Expression) -> Noticed | None:
        """Find `(a + b) // 2` of small integers."""
        dtype = self._dtype(step)
        if step.primitive != "add" or _bits(dtype) > 16:
            return None
        if not all(self._is_given(each) and self._is_any(each) for each in step.operands):
            return None
        match self._parent(step, node):
            case ast.BinOp(op=ast.FloorDiv() | ast.Div() | ast.RShift(), left=left):
                divides = ast.dump(left) == ast.dump(node)
            case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=float(factor))):
                divides = factor < 1
            case ast.BinOp(op=ast.Mult(), right=ast.Constant(value=float(factor))):
                divides = factor < 1
            case _:
                divides = False
        if not divides:
            return None
        return Noticed(
            f"{self._quoted(step)} may overflow {dtype} before it is divided",
            step.path,
            help=_wider(dtype),
            notes=(_holds(dtype),),
        )

    def _widens(self, user: Step) -> bool:
        """Whether an equation converts to a dtype with a sign and more bits, or to floats."""
        if user.primitive != "convert_element_type":
            return False
        before = self._flow.value(user.operands[0]).dtype
        after = self._flow.value(user.results[0]).dtype
        return after.startswith(("float", "bfloat", "complex")) or _bits(after) > _bits(before)

    def _compares_with_zero(self, user: Step) -> bool:
        if user.primitive == "max":
            return self._has_zero(user, 0) or self._has_zero(user, 1)
        return user.primitive in ("lt", "ge") and self._has_zero(user, 1)

    def _has_zero(self, step: Step, place: int) -> bool:
        known = self._ranges.of(step.operands[place]) if len(step.operands) == 2 else None
        return known is not None and known.one == 0

    def _is_absolute(self, step: Step, node: Expression) -> bool:
        """Whether the user takes the absolute value of an expression, which is no equation."""
        match self._parent(step, node):
            case ast.Call() as call:
                return _name(call) in _ABSOLUTE
            case ast.Assign(targets=[ast.Name(id=name)]):
                function = self._function(step)
                calls = [
                    each
                    for each in ast.walk(function)
                    if isinstance(each, ast.Call)
                    and _name(each) in _ABSOLUTE
                    and any(isinstance(a, ast.Name) and a.id == name for a in each.args)
                ]
                stores = [
                    each
                    for each in ast.walk(function)
                    if isinstance(each, ast.Name)
                    and each.id == name
                    and isinstance(each.ctx, ast.Store)
                ]
                return bool(calls) and len(stores) == 1
            case _:
                return False

    def _parent(self, step: Step, node: Expression) -> ast.AST | None:
        """Return the syntax around the user's expression."""
        nodes = self._reading.around(step.path)
        text = ast.dump(node)
        for place, each in enumerate(nodes[:-1]):
            if ast.dump(each) == text:
                return nodes[place + 1]
        return None

    def _function(self, step: Step) -> ast.AST:
        nodes = self._reading.around(step.path)
        functions = [each for each in nodes if isinstance(each, ast.FunctionDef)]
        return functions[0] if functions else ast.Module([], [])

    def _is_meant(self, step: Step) -> bool:
        """Whether code wraps on purpose: it mixes bits, or is called so."""
        names = [self._reading.name, *_names(self._reading.around(step.path))]
        if any(map(_MIXES.search, names)):
            return True
        if step.primitive == "mul" and any(map(self._is_hash, step.operands)):
            return True
        through = (ELEMENTWISE | SHAPED) - {"select_n"}
        bits = _BITS - {"shift_left"} if step.primitive == "shift_left" else _BITS
        unsigned = self._dtype(step).startswith("uint")
        if step.primitive == "and":
            return False
        near = [step, *self._below(step, through)]
        for number in step.operands:
            near += self._flow.above(number, lambda each: each.primitive in through, _NEAR)
        return any(
            (each.primitive in bits and _bits(self._flow.value(each.results[0]).dtype) > 1)
            or (each.primitive == "rem" and unsigned)
            or (each.primitive == "mul" and any(map(self._is_hash, each.operands)))
            for each in near
        )

    def _is_hash(self, number: int) -> bool:
        known = self._ranges.of(number)
        one = known.one if known is not None else None
        return one is not None and abs(one) >= _HASH and one % 2 == 1

    def _below(self, step: Step, through: frozenset[str]) -> Sequence[Step]:
        found: list[Step] = []
        waiting = [(number, 0) for number in step.results]
        while waiting and len(found) < 50:
            number, far = waiting.pop()
            for user in self._flow.used_by(number):
                found.append(user)
                if user.primitive in through and far < _NEAR:
                    waiting += [(result, far + 1) for result in user.results]
        return found


def _is_later(node: Expression) -> bool:
    """Return whether a difference is of an end and a start, as one of their names says."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.Call(args=[left, right]):
            later = _LATER.search(ast.unparse(left)) is not None
            return later or _EARLIER.search(ast.unparse(right)) is not None
        case _:
            return False


_INSTEAD = {
    "lt": "compare the operands instead: `a < b`",
    "ge": "compare the operands instead: `a >= b`",
    "gt": "compare the operands instead: `a > b`",
    "le": "compare the operands instead: `a <= b`",
    "max": "subtract where the result is positive: `jnp.where(a > b, a - b, 0)`",
}


def _bits(dtype: str) -> int:
    """Return the bits of an integer dtype, 1 of booleans, 0 of others."""
    within = limits(dtype)
    return 0 if within is None else (within[1] - within[0]).bit_length()


def _expression(text: str) -> Expression | None:
    try:
        statement = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    match statement:
        case [ast.Expr(value=value)]:
            return value
        case [ast.AugAssign() as changed]:
            return changed
        case _:
            return None


def _meant(node: Expression) -> frozenset[str]:
    """Return the primitives that an expression itself stands for."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            return _OPERATORS.get(type(op), frozenset())
        case ast.UnaryOp(op=ast.USub()):
            return frozenset({"neg"})
        case ast.Call() as call:
            return _CALLS.get(_name(call), frozenset())
        case _:
            return frozenset()


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (each.id for each in targets if isinstance(each, ast.Name))


def _integer(node: ast.expr) -> int | None:
    """Return the number of a literal integer."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case _:
            return None


_FILLS = {"full": 1, "full_like": 1, "clip": 1, "where": 1, "maximum": 0, "minimum": 0, "set": 0}
"""By name of a call, the first argument that may be an element of its result."""


def _arguments(node: Expression) -> list[int]:
    """Return the literals that an expression converts to the dtype of its array."""
    match node:
        case ast.BinOp(left=left, right=right):
            nodes = [left, right]
        case ast.AugAssign(value=value):
            nodes = [value]
        case ast.Compare(left=left, comparators=[right]):
            nodes = [left, right]
        case ast.Call(args=args) if _name(node) in _FILLS:
            keywords = [
                each.value
                for each in node.keywords
                if each.arg in ("fill_value", "min", "max", "a_min", "a_max", "x", "y")
            ]
            nodes = [*args[_FILLS[_name(node)] :], *keywords]
        case _:
            nodes = []
    return [number for each in nodes if (number := _integer(each)) is not None]


def _may_be(number: int, node: Expression, within: tuple[int, int]) -> bool:
    """Return whether a literal that does not fit gives the right result all the same.

    Such are `x + -1`, and `-1` as a marker of missing values.
    """
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            span = within[1] - within[0]
            if isinstance(op, ast.Add | ast.Sub):
                return within[0] == 0 and -span <= number < 0
            return not isinstance(op, ast.Mult)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            return number == -1
        case _:
            return False


def _literals(node: Expression, number: int | None) -> list[int]:
    """Return a number if a call is given it as a literal."""
    if number is None or not isinstance(node, ast.Call) or _name(node) == "astype":
        return []
    given = [*node.args, *(each.value for each in node.keywords)]
    return [number] if any(_integer(each) == number for each in given) else []


def _wrapped(number: int, within: tuple[int, int]) -> int:
    return (number - within[0]) % (within[1] - within[0] + 1) + within[0]


def _squares(user: Step) -> bool:
    match user.primitive:
        case "square":
            return True
        case "integer_pow":
            exponent = parameter(user, "y")
            return isinstance(exponent, int) and exponent % 2 == 0
        case "mul":
            return user.operands[0] == user.operands[1]
        case _:
            return False


def _figure(number: int) -> str:
    if abs(number) < 10**15:
        return f"{number:,}"
    digits = str(abs(number))
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1]}e{len(digits) - 1}"


def _holds(dtype: str) -> str:
    within = limits(dtype)
    assert within is not None
    return f"{dtype} holds {within[0]:,} to {within[1]:,}; JAX wraps around silently"


def _wider(dtype: str) -> str:
    if _bits(dtype) < 32:
        return "convert to a wider dtype first: `.astype(jnp.int32)`"
    return (
        "compute in floating point, or enable 64-bit types with "
        '`jax.config.update("jax_enable_x64", True)`'
    )


def _signed(dtype: str) -> str:
    return "convert to a signed type first: `.astype(jnp.int32)`"
