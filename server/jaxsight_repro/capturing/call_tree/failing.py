"""Finds the step of a user's function that raised an error.

It is the first function of JAX below the innermost frame of the user's: a public function, a method
or an operator of an array, with its arguments as the frame has them.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from jaxsight.text.parsing import expression_in
from jaxsight_repro.capturing.call_tree import public_functions
from jaxsight_repro.capturing.call_tree.apis import CallArguments
from jaxsight_repro.capturing.call_tree.packing import Values
from jaxsight_repro.capturing.call_tree.records import Arguments, FailedStep, JaxCall, StepKind
from jaxsight_repro.capturing.call_tree.wrapping import is_jax_file, is_ours
from jaxsight_repro.failures import raised_of

Jitted = Callable[[object], CallArguments | None]
"""Returns the arguments of `jax.jit` for a function that it returned, or None."""

_CONVERSIONS = {
    "__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex",
    "__index__": "operator.index", "__array__": "np.asarray", "__iter__": "list", "__len__": "len",
    "__hash__": "hash", "__round__": "round",
}  # fmt: skip
"""The functions that call a method of tracers."""

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip


def step_of(
    error: BaseException, values: Values, tracer: type, jitted: Jitted, *, eagerly: bool = False
) -> FailedStep | JaxCall | None:
    """Return the step that raised an error in a user's function; None if it is not known.

    `jitted` returns the options of a jitted function; `eagerly` says that no function of the
    user's is being traced.
    """
    frames: list[FrameType] = []
    instructions: list[int] = []
    part = error.__traceback__
    while part is not None:
        if not is_ours(part.tb_frame.f_code.co_filename):
            frames.append(part.tb_frame)
            instructions.append(part.tb_lasti)
        part = part.tb_next
    users = _users(frames)
    below = frames[users[-1] + 1 :] if users else frames
    if not below:
        called = _called(frames[-1], instructions[-1], values, jitted) if frames else None
        if called is not None or isinstance(error, KeyboardInterrupt):
            return called
        return FailedStep("raise", "", Arguments(), raised_of(error))
    if eagerly and users:  # arguments that JAX traced itself are not in memory any more
        called = _called(frames[users[-1]], instructions[users[-1]], values, jitted)
        if called is not None:
            return called
    caller = (frames[users[-1]], instructions[users[-1]]) if users else None
    for frame in below:
        step = _step(frame, values, tracer, caller)
        if step is not None:
            return step
    return None


_DEPENDENCIES = frozenset({"opt_einsum", "ml_dtypes"})
"""The packages whose functions JAX calls."""


def _users(frames: Sequence[FrameType]) -> list[int]:
    """Return which frames are neither JAX's nor those of packages that it calls."""
    indices: list[int] = []
    in_jax = False
    for index, frame in enumerate(frames):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if is_jax_file(frame.f_code.co_filename):
            in_jax = True
        elif not (in_jax and package in _DEPENDENCIES):
            indices.append(index)
    return indices


def _called(
    frame: FrameType, instruction: int, values: Values, jitted: Jitted
) -> FailedStep | JaxCall | None:
    """Return the call or the operation of a frame that raised an error, if it is one of JAX's."""
    call = call_at(frame, instruction)
    if call is None:
        operation = operands_at(frame, instruction)
        if operation is None:
            return None
        symbol, *operands = operation
        return FailedStep("operator", symbol, values.arguments(operands, {}))
    options = jitted(call.function)
    inner = values.arguments(call.args, call.kwargs)
    if options is not None:
        return JaxCall("jax.jit", values.arguments(*options), inner, failed=True)
    path = public_functions.path_of(call.function)
    return None if path is None else FailedStep("function", path, inner)


def _step(
    frame: FrameType, values: Values, tracer: type, caller: tuple[FrameType, int] | None
) -> FailedStep | None:
    """Return the step of a frame of JAX, below the user's frame and its instruction."""
    code, local = frame.f_code, frame.f_locals
    if code.co_name == "reraise_with_filtered_traceback":
        return _bounded(local, values)
    own = local.get("self")
    if isinstance(own, (tracer, values.array_type)) and code.co_name.startswith("__"):
        return _of_method(code.co_name, own, local, values)
    if code.co_name == "op" and {"name", "args", "self"} <= local.keys():
        # Special methods give their argument these names.
        named = {"other": local["args"][0], "idx": local["args"][0]} if local["args"] else {}
        return _of_method(f"__{local['name']}__", own, local | named, values)
    if code.co_name == "_unimplemented_setitem":
        return FailedStep("set", "", values.arguments((own, local.get("i"), local.get("x")), {}))
    if code.co_name == "__call__" and (path := public_functions.path_of(own)) is not None:
        return FailedStep("function", path, values.arguments(local.get("args", ()), {}))
    method = public_functions.method_of_code(code)
    path = None if method else public_functions.path_of_code(code)
    if method is None and path is None:
        return None
    args, kwargs = _arguments(frame, caller)
    if method is not None and args:
        return FailedStep("method", method, values.arguments(args, kwargs))
    return FailedStep("function", path or "", values.arguments(args, kwargs))


def _bounded(local: Mapping[str, Any], values: Values) -> FailedStep | None:
    """Return the step of a function that JAX wraps to shorten tracebacks."""
    fun = local.get("fun")
    code = getattr(fun, "__code__", None)
    if code is not None and code.co_name == "cache_miss" and "fun" in code.co_freevars:
        fun = fun.__closure__[code.co_freevars.index("fun")].cell_contents  # type: ignore[union-attr]
    code = getattr(inspect.unwrap(fun), "__code__", None) if callable(fun) else None
    path = public_functions.path_of_code(code) if code is not None else None
    if path is None:
        return None
    return FailedStep("function", path, values.arguments(local["args"], local["kwargs"]))


def _of_method(
    name: str, own: object, local: Mapping[str, object], values: Values
) -> FailedStep | None:
    """Return the step that called a special method of an array."""
    conversion = _CONVERSIONS.get(name)
    if conversion is not None:
        return FailedStep("function", conversion, values.arguments((own,), {}))
    if name in ("__getitem__", "__getattr__"):
        key = local.get("idx", local.get("name", local.get("item")))
        kind: StepKind = "index" if name == "__getitem__" else "attribute"
        return FailedStep(kind, "", values.arguments((own, key), {}))
    short = name.strip("_")
    other = local.get("other")
    if short.startswith("r") and short[1:] in _OPERATORS and short not in _OPERATORS:
        return FailedStep("operator", _OPERATORS[short[1:]], values.arguments((other, own), {}))
    if short in _OPERATORS and "other" in local:
        return FailedStep("operator", _OPERATORS[short], values.arguments((own, other), {}))
    return None


def _arguments(
    frame: FrameType, caller: tuple[FrameType, int] | None
) -> tuple[list[object], dict[str, object]]:
    """Return the arguments of a function as its frame has them, without absent ones.

    Those that it has deleted, as `with_sharding_constraint` does, are read from its call.
    """
    code, local = frame.f_code, frame.f_locals
    count = code.co_argcount
    names = code.co_varnames[:count]
    args = [
        local.get(name) if name in local or caller is None else argument_at(*caller, position, name)
        for position, name in enumerate(names)
    ]
    star = code.co_flags & inspect.CO_VARARGS
    keyword_names = code.co_varnames[count : count + code.co_kwonlyargcount]
    kwargs = {
        name: local[name]
        for name in keyword_names
        if not (name.startswith("_") or _is_absent(local.get(name)))
    }
    rest = count + code.co_kwonlyargcount
    if star:
        others = local.get(code.co_varnames[rest], ())
        if code.co_name == "einsum" and args and others and others[0] is args[-1]:
            args.pop()  # `jnp.einsum` has put its first argument there, too
        args.extend(others)
    else:
        while args and _is_absent(args[-1]):
            args.pop()
        if any(map(_is_absent, args)):
            first = next(index for index, arg in enumerate(args) if _is_absent(arg))
            named = zip(names[first:], args[first:], strict=False)
            kwargs |= {name: arg for name, arg in named if not _is_absent(arg)}
            args = args[:first]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= local.get(code.co_varnames[rest + bool(star)], {})
    return args, kwargs


def _is_absent(value: object) -> bool:
    """Return whether an argument is likely the default, which need not be written."""
    return value is None or type(value) is object


class SourceCall(NamedTuple):
    """A function and the arguments that it was called with."""

    function: object
    args: tuple[object, ...]
    kwargs: dict[str, object]


class _Unknown(Exception):
    """A part of an expression cannot be evaluated without running the user's code."""


def call_at(frame: FrameType, instruction: int) -> SourceCall | None:
    """Return the call at an instruction of a frame, or None if it cannot be read."""
    node = _node_at(frame, instruction)
    try:
        return _call(node, frame) if isinstance(node, ast.Call) else None
    except _Unknown:
        return None


def operands_at(frame: FrameType, instruction: int) -> tuple[str, object, object] | None:
    """Return the operator at an instruction of a frame with its operands, if they can be read."""
    node = _node_at(frame, instruction)
    symbol = _SYMBOLS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if symbol is None:
        return None
    assert isinstance(node, ast.BinOp)
    try:
        return symbol, _value(node.left, frame), _value(node.right, frame)
    except _Unknown:
        return None


_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip


def argument_at(frame: FrameType, instruction: int, position: int, name: str) -> object:
    """Return one argument of the call at an instruction of a frame, or None if it cannot be read.

    Args:
        position: its position among the parameters of the function.
        name: its name, if it is passed by it.
    """
    node = _node_at(frame, instruction)
    if not isinstance(node, ast.Call):
        return None
    named = [keyword.value for keyword in node.keywords if keyword.arg == name]
    positional = [] if any(isinstance(arg, ast.Starred) for arg in node.args) else node.args
    try:
        for argument in (*positional[position : position + 1], *named):
            return _value(argument, frame)
    except _Unknown:
        pass
    return None


def _node_at(frame: FrameType, instruction: int) -> ast.expr | None:
    text = _text_at(frame, instruction)
    return expression_in(textwrap.dedent(text)) if text is not None else None


def _text_at(frame: FrameType, instruction: int) -> str | None:
    """Return the source of the expression at an instruction."""
    positions = list(frame.f_code.co_positions())
    if not 0 <= instruction // 2 < len(positions):
        return None
    line, last, column, end = positions[instruction // 2]
    if line is None or last is None or column is None or end is None:
        return None
    file = frame.f_code.co_filename
    lines = [linecache.getline(file, number, frame.f_globals) for number in range(line, last + 1)]
    if not lines or not all(lines):
        return None
    cut = [text.encode() for text in lines]
    cut[-1] = cut[-1][:end]
    cut[0] = cut[0][column:]
    return b"".join(cut).decode(errors="replace")


def _call(node: ast.Call, frame: FrameType) -> SourceCall:
    if any(keyword.arg is None for keyword in node.keywords):
        raise _Unknown
    return SourceCall(
        _value(node.func, frame),
        tuple(_value(arg, frame) for arg in node.args),
        {str(keyword.arg): _value(keyword.value, frame) for keyword in node.keywords},
    )


def _value(node: ast.expr, frame: FrameType) -> object:
    match node:
        case ast.Constant(constant):
            return constant
        case ast.Name(name):
            for names in (frame.f_locals, frame.f_globals, vars(builtins)):
                if name in names:
                    return names[name]
        case ast.Attribute(inside, name):
            own = _value(inside, frame)
            if name in getattr(own, "__dict__", {}) or hasattr(type(own), name):
                return getattr(own, name)
        case ast.List(items):
            return [_value(item, frame) for item in items]
        case ast.Tuple(items):
            return tuple(_value(item, frame) for item in items)
        case ast.Dict(keys, items) if all(keys):
            pairs = zip(keys, items, strict=True)
            return {_value(key, frame): _value(item, frame) for key, item in pairs if key}
        case ast.Call():
            function, args, kwargs = _call(node, frame)
            module = str(getattr(function, "__module__", "")).partition(".")[0]
            if module in ("jax", "numpy", "jaxlib") and callable(function):
                return function(*args, **kwargs)
        case _:
            pass
    raise _Unknown
