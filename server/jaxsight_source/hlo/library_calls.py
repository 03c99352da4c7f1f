"""Write calls of compute libraries, which optimized HLO has, as the operations that they stand for.

XLA's GPU compiler replaces matrix products and convolutions by custom calls of cuBLAS and cuDNN,
whose `backend_config` has what the call computes (`xla/service/gpu/backend_configs.proto`,
`cublas_cudnn.h`), and `top_k` by `TopK`. A call whose configuration asks for more than is known
here stays a custom call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_CALL = re.compile(
    r"^(?P<indent> *)(?P<root>ROOT )?(?P<name>%[\w.-]+) = (?P<shape>\(.*?\)|\S+) "
    r"custom-call\((?P<operands>[^)]*)\)(?P<rest>, .*)$",
    re.MULTILINE,
)
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\](\{[^}]*\})?")
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
_CONFIG = re.compile(r"backend_config=(\{.*\})")
_COMPARATORS = re.compile(
    r"^(%[\w.-]+) \(.*?\{\n((?: .*\n)*?) *ROOT .*? compare\((.*?)\), direction=(\w+)", re.MULTILINE
)
_FLOAT = re.compile(r"bf16|f\d+")


def replaced(text: str) -> str:
    """Return a module's text, as XLA prints it, without the library calls that are known."""
    if "custom-call(" not in text:
        return text
    descending = {
        match[1]
        for match in _COMPARATORS.finditer(text)
        if match[4] == "GT" and _in_order(match[2], match[3])
    }

    def write(match: re.Match[str]) -> str:
        target, config = _TARGET.search(match["rest"]), _CONFIG.search(match["rest"])
        if target is None or target[1] not in _WRITERS:
            return match[0]
        call = _ComputeCall(
            match["name"],
            [(kind, dims, layout or "") for kind, dims, layout in _SHAPE.findall(match["shape"])],
            re.findall(r"%[\w.-]+", match["operands"]),
            match["rest"],
            json.loads(config[1]) if config else {},
            descending,
            text,
        )
        try:
            lines = list(_WRITERS[target[1]](call))
        except (_UnknownCall, KeyError, TypeError, ValueError):
            return match[0]
        lines.append(f"{match['root'] or ''}{_results(call, match['shape'])}")
        return "\n".join(f"{match['indent']}{line}" for line in lines)

    return _CALL.sub(write, text)


class _UnknownCall(Exception):
    """A call computes something that is not known here."""


@dataclass(frozen=True, slots=True)
class _ComputeCall:
    """A custom call of a library.

    Attributes:
        shapes: element type, dimensions and layout of each result.
        rest: the text after the operands.
        descending: the comparators that sort the largest numbers first.
    """

    name: str
    shapes: list[tuple[str, str, str]]
    operands: list[str]
    rest: str
    config: dict[str, Any]
    descending: set[str]
    text: str

    @property
    def shape(self) -> str:
        """The first result's shape."""
        kind, dims, layout = self.shapes[0]
        return f"{kind}[{dims}]{layout}"

    @property
    def plain(self) -> str:
        """The first result's shape, without its layout."""
        kind, dims, _ = self.shapes[0]
        return f"{kind}[{dims}]"

    def fresh(self, suffix: str) -> str:
        """Return a name for a part of the call."""
        return f"{self.name}.{suffix}"

    def shape_of(self, operand: str) -> tuple[str, str]:
        """Return an operand's element type and dimensions."""
        found = re.search(
            rf"^ *(?:ROOT )?{re.escape(operand)} = (\w+)\[([\d,]*)\]", self.text, re.MULTILINE
        )
        if found is None:
            raise _UnknownCall
        return found[1], found[2]

    def splat(self, suffix: str, number: float, element: str) -> Iterator[str]:
        """Yield the lines of an array of equal numbers, of the first result's dimensions."""
        scalar = self.fresh(f"{suffix}.scalar")
        yield f"{scalar} = {element}[] constant({number:.17g})"
        dims = self.shapes[0][1]
        yield f"{self.fresh(suffix)} = {element}[{dims}] broadcast({scalar}), dimensions={{}}"


def _results(call: _ComputeCall, shape: str) -> str:
    """Return the line that gives a call's results its name; workspaces are empty."""
    value = call.fresh("value")
    if not shape.startswith("("):
        return f"{call.name} = {call.shape} copy({value})"
    parts = [value, *(call.fresh(f"part{index}") for index in range(1, len(call.shapes)))]
    return f"{call.name} = {shape} tuple({', '.join(parts)})"


def _workspaces(call: _ComputeCall) -> Iterator[str]:
    """Yield the lines of the results after the first one: memory without a meaning."""
    for index, (kind, dims, layout) in enumerate(call.shapes[1:], start=1):
        if kind not in ("u8", "s8"):
            raise _UnknownCall
        scalar = call.fresh(f"zero{index}")
        yield f"{scalar} = {kind}[] constant(0)"
        yield (
            f"{call.fresh(f'part{index}')} = {kind}[{dims}]{layout} broadcast({scalar}), "
            "dimensions={}"
        )


_ACTIVATIONS = {"kNone": "", "kRelu": "maximum"}


def _convolution(call: _ComputeCall) -> Iterator[str]:
    """Yield the lines of a forward convolution, with its bias, side input and activation."""
    config = call.config.get("cudnn_conv_backend_config", call.config)
    kind, dims, _ = call.shapes[0]
    known = {"activation_mode", "conv_result_scale", "side_input_scale", "leakyrelu_alpha"}
    if unknown := set(config) - known - {"algorithm", "reordered_int8_nchw_vect"}:
        raise _UnknownCall(unknown)
    if config.get("reordered_int8_nchw_vect") or not _FLOAT.fullmatch(kind):
        raise _UnknownCall
    activation = _ACTIVATIONS[config.get("activation_mode", "kNone")]
    window = re.search(r"window=\{[^}]*\}", call.rest)
    labels = re.search(r"dim_labels=[\w?]+->\w+|dim_labels=\w+_\w+->\w+", call.rest)
    groups = re.search(r"feature_group_count=\d+", call.rest)
    if labels is None:
        raise _UnknownCall
    settings = [each[0] for each in (window, labels, groups) if each]
    left, right, *others = call.operands
    chain = _Chain(call, kind, dims)
    yield chain.set("conv", f"convolution({left}, {right}), {', '.join(settings)}")
    scale = float(config.get("conv_result_scale", 1))
    if scale != 1:
        yield from call.splat("scale", scale, kind)
        yield chain.then("scaled", "multiply", call.fresh("scale"))
    if others:
        feature = labels[0].rpartition("->")[2].index("f")
        bias, *side = others
        if call.shape_of(bias)[0] != kind:
            raise _UnknownCall
        spread = call.fresh("bias")
        yield f"{spread} = {chain.shape} broadcast({bias}), dimensions={{{feature}}}"
        yield chain.then("biased", "add", spread)
        if side:
            (extra,) = side
            yield from call.splat("side", float(config.get("side_input_scale", 0)), kind)
            sided = call.fresh("sided")
            yield f"{sided} = {chain.shape} multiply({extra}, {call.fresh('side')})"
            yield chain.then("both", "add", sided)
    if activation:
        yield from call.splat("zero", 0, kind)
        yield chain.then("active", activation, call.fresh("zero"))
    yield f"{call.fresh('value')} = {call.shape} copy({chain.value})"
    yield from _workspaces(call)


_EPILOGUES = {"DEFAULT": (False, False), "BIAS": (True, False), "RELU": (False, True)} | {
    "BIAS_RELU": (True, True)
}
"""Whether a matrix product has a bias, and whether negative results become zero."""


def _product(call: _ComputeCall) -> Iterator[str]:
    """Yield the lines of `alpha * dot(lhs, rhs) + beta * addend`, with bias and activation."""
    config = call.config.get("gemm_backend_config", call.config)
    has_bias, has_relu = _EPILOGUES[config.get("epilogue", "DEFAULT")]
    if float(config.get("alpha_imag", 0)) or config.get("damax_output"):
        raise _UnknownCall
    kind, dims, _ = call.shapes[0]
    is_scaled = '"__cublas$lt$matmul$f8"' in call.rest
    left, right, *others = call.operands
    beta = float(config.get("beta", 0))
    addend = others.pop(0) if beta else ""
    chain = _Chain(call, "f32" if is_scaled else kind, dims)
    numbers = _numbers(config["dot_dimension_numbers"])
    yield chain.set("dot", f"dot({left}, {right}), {numbers}")
    result_scale = ""
    if is_scaled:
        # The scales of both operands, then maybe of an fp8 addend, and of an fp8 result.
        scales = [operand for operand in others if not call.shape_of(operand)[1]]
        others = [operand for operand in others if operand not in scales]
        if addend and call.shape_of(addend)[0].startswith("f8"):
            raise _UnknownCall
        result_scale = scales[-1] if kind.startswith("f8") and len(scales) > 2 else ""
        for index, scale in enumerate(scales[:2]):
            yield from chain.scaled(f"scale{index}", scale)
    alpha = float(config.get("alpha_real", 0))
    if alpha != 1:
        yield from call.splat("alpha", alpha, chain.element)
        yield chain.then("times", "multiply", call.fresh("alpha"))
    if addend:
        wide, part = call.fresh("wide"), call.fresh("part")
        yield f"{wide} = {chain.shape} convert({addend})"
        yield from call.splat("beta", beta, chain.element)
        yield f"{part} = {chain.shape} multiply({wide}, {call.fresh('beta')})"
        yield chain.then("sum", "add", part)
    if has_bias:
        bias = others.pop(0)
        long, spread = call.fresh("long"), call.fresh("bias")
        yield f"{long} = {chain.element}[{call.shape_of(bias)[1]}] convert({bias})"
        yield f"{spread} = {chain.shape} broadcast({long}), dimensions={{{dims.count(',')}}}"
        yield chain.then("biased", "add", spread)
    if has_relu:
        yield from call.splat("zero", 0, chain.element)
        yield chain.then("active", "maximum", call.fresh("zero"))
    if result_scale:
        yield from chain.scaled("out", result_scale)
    if others:
        raise _UnknownCall
    yield f"{call.fresh('value')} = {call.shape} convert({chain.value})"
    yield from _workspaces(call)


def _numbers(config: dict[str, list[str]]) -> str:
    """Return the dimension numbers of a product as HLO writes them."""
    return ", ".join(
        f"{side}_{role}_dims={{{','.join(map(str, dims))}}}"
        for role in ("contracting", "batch")
        for side in ("lhs", "rhs")
        if (dims := config.get(f"{side}_{role}_dimensions"))
    )


@dataclass(slots=True)
class _Chain:
    """The lines of a call's result, of which each changes the value of the one before."""

    call: _ComputeCall
    element: str
    dims: str
    value: str = ""

    @property
    def shape(self) -> str:
        return f"{self.element}[{self.dims}]"

    def set(self, suffix: str, expression: str) -> str:
        """Return the line of a new value."""
        self.value = self.call.fresh(suffix)
        return f"{self.value} = {self.shape} {expression}"

    def then(self, suffix: str, operation: str, other: str) -> str:
        """Return the line of an operation of the value and another array."""
        return self.set(suffix, f"{operation}({self.value}, {other})")

    def scaled(self, suffix: str, scalar: str) -> Iterator[str]:
        """Yield the lines of the value times a scalar of its element type."""
        spread = self.call.fresh(suffix)
        yield f"{spread} = {self.shape} broadcast({scalar}), dimensions={{}}"
        yield self.then(f"{suffix}.scaled", "multiply", spread)


def _top_k(call: _ComputeCall) -> Iterator[str]:
    """Yield the line of the largest numbers and their positions."""
    comparator = re.search(r"(?:called_computations=\{|to_apply=)(%[\w.-]+)", call.rest)
    if comparator is None or comparator[1] not in call.descending or len(call.shapes) != 2:
        raise _UnknownCall
    shapes = ", ".join(f"{kind}[{dims}]" for kind, dims, _ in call.shapes)
    count = call.shapes[0][1].rpartition(",")[2]
    top = call.fresh("top")
    yield f"{top} = ({shapes}) topk({call.operands[0]}), k={count}, largest=true"
    yield f"{call.fresh('value')} = {call.shape} get-tuple-element({top}), index=0"
    kind, dims, layout = call.shapes[1]
    yield f"{call.fresh('part1')} = {kind}[{dims}]{layout} get-tuple-element({top}), index=1"


def _in_order(parameters: str, compared: str) -> bool:
    """Return whether a comparator compares its first parameter with its second one."""
    numbers = dict(re.findall(r"(%[\w.-]+) = \S+ parameter\((\d+)\)", parameters))
    names = [each.split()[-1] for each in compared.split(", ")]
    return [numbers.get(name) for name in names] == ["0", "1"]


_WRITERS: dict[str, Callable[[_ComputeCall], Iterator[str]]] = {
    "__cudnn$convForward": _convolution,
    "__cudnn$convBiasActivationForward": _convolution,
    "__cublas$gemm": _product,
    "__cublas$lt$matmul": _product,
    "__cublas$lt$matmul$f8": _product,
    "TopK": _top_k,
}
"""Without backward convolutions, whose windows HLO writes in terms of the forward one."""
