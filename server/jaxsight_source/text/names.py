"""Names for variables and functions: the user's own if known, or else derived from the primitive.

A name never shadows another: names of a function differ from those of all enclosing functions
and of the module.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
import re
from collections.abc import Callable, Iterable

from jaxsight_source.text.exprs import IMPORTS, dotted

LONGEST = 30
"""The maximum length of a name, in characters; longer names leave no room on the line."""

STAND_IN = "__name_"
"""The prefix of functions that have no final name yet."""

_RESERVED = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | frozenset(IMPORTS)

_BY_PRIMITIVE = {
    "abs": "magnitude", "add_any": "add", "and": "both", "argmax": "argmax", "argmin": "argmin",
    "bitcast_convert_type": "bits", "broadcast_in_dim": "broadcast", "closed_call": "known",
    "concatenate": "joined", "eval_jaxpr": "known",
    "cond": "branch", "conv_general_dilated": "conv", "convert_element_type": "cast",
    "cumsum": "running_sum", "custom_jvp_call": "out", "custom_vjp_call": "out",
    "dot_general": "dot", "dynamic_slice": "part", "dynamic_update_slice": "updated",
    "eq": "equal", "ge": "at_least", "get": "value", "gt": "greater", "integer_pow": "power",
    "iota": "iota", "is_finite": "finite", "le": "at_most", "lt": "less", "max": "larger",
    "min": "smaller", "ne": "differs", "not": "negated", "or": "either", "pow": "power",
    "random_bits": "bits", "random_fold_in": "key", "random_seed": "key", "random_split": "keys",
    "random_unwrap": "key_data", "random_wrap": "key", "reduce_and": "all_of",
    "reduce_max": "largest", "reduce_min": "smallest", "reduce_or": "any_of",
    "reduce_precision": "rounded", "reduce_prod": "product", "reduce_sum": "total",
    "regularized_incomplete_beta": "betainc", "rem": "remainder", "remat2": "out",
    "reshape": "reshaped", "rev": "flipped", "round": "rounded", "scan": "scanned",
    "scatter": "scattered", "scatter-add": "scattered", "select_n": "chosen", "shard_map": "out",
    "slice": "part", "sort": "ordered", "square": "squared", "squeeze": "squeezed",
    "stop_gradient": "stopped", "transpose": "transposed", "while": "looped", "xor": "differing",
}  # fmt: skip


@functools.lru_cache(maxsize=1024)  # more primitives than JAX has; the others, a large text's names
def suggested(primitive: str) -> str:
    """Return a base name for the result of a primitive."""
    return _BY_PRIMITIVE.get(primitive) or identifier(primitive)


_BY_FUNCTION = {
    "abs": "magnitude", "add_jaxvals": "added", "all": "all_of", "any": "any_of",
    "arange": "numbers", "argsort": "order", "bernoulli": "drawn", "broadcast_in_dim": "broadcast",
    "broadcast_to": "broadcast", "categorical": "drawn", "clip": "clipped", "concatenate": "joined",
    "cond": "branch", "dynamic_index_in_dim": "part", "dynamic_slice": "part",
    "dynamic_slice_in_dim": "part", "dynamic_update_slice": "updated",
    "dynamic_update_slice_in_dim": "updated", "einsum": "dot", "fori_loop": "looped",
    "full": "filled", "inner": "dot", "linspace": "steps", "map": "mapped", "matmul": "dot",
    "max": "largest", "maximum": "larger", "min": "smallest", "minimum": "smaller",
    "normal": "noise", "randint": "drawn", "round": "rounded", "scan": "scanned",
    "select": "chosen", "sort": "ordered", "split": "keys", "square": "squared",
    "stack": "stacked", "sum": "total", "swapaxes": "swapped", "switch": "branch", "take": "taken",
    "take_along_axis": "taken", "tensordot": "dot", "transpose": "transposed", "tril": "lower",
    "triu": "upper", "uniform": "noise", "where": "chosen", "while_loop": "looped",
}  # fmt: skip

_BY_METHOD = {
    "T": "transposed", "mT": "transposed", "astype": "cast", "reshape": "reshaped",
    "squeeze": "squeezed", "swapaxes": "swapped", "transpose": "transposed",
}  # fmt: skip


def after_expression(expr: ast.expr) -> str | None:
    """Return a base name for an expression's value if its function or method suggests one."""
    match expr:
        case ast.Call(function) if "." in (path := dotted(function)):
            last = path.rpartition(".")[2]
            if path == "jnp.split":
                return "part"
            return None if last == "bind" else _BY_FUNCTION.get(last) or suggested(last)
        case ast.Call(ast.Attribute(ast.Subscript(ast.Attribute(_, "at")))):
            return "updated"
        case ast.Call(ast.Attribute(_, method)) | ast.Attribute(_, method):
            return _BY_METHOD.get(method)
        case ast.Subscript():
            return "part"
        case ast.Call(ast.Name(name)) if name.startswith(STAND_IN):
            return "out"
        case ast.Call(ast.Name("closed_call"), [ast.Name(name), *_]):
            return f"{name}_out"
        case ast.Call(ast.Name(name)):
            return f"{name.strip('_')}_out"
        case _:
            return None


@functools.lru_cache(maxsize=1024)
def identifier(text: str, fallback: str = "value") -> str:
    """Return an identifier made from a name, an attribute chain, an index or a qualified name."""
    short = re.sub(r"\W+", "_", text.replace("<lambda>", "function").replace("<locals>", ""))
    short = short.strip("_")[:LONGEST].rstrip("_")
    if not short or not short.isascii():
        return fallback
    if short[0].isdigit():
        return f"_{short}"
    return f"{short}_" if keyword.iskeyword(short) else short


@functools.lru_cache(maxsize=1024)
def of_path(text: str, fallback: str = "value") -> str:
    """Return an identifier for a part of an argument, from the path that reads it.

    A path that is too long is cut at the start, because its last words are the most specific.
    """
    short = re.sub(r"\W+", "_", text).strip("_")
    while len(short) > LONGEST and "_" in short:
        short = short.partition("_")[2].lstrip("_0123456789")
    return identifier(short or text, fallback)


_NUMBERED = re.compile(r"(?<=[A-Za-z])_\d+$")
"""The suffix that `fresh` appends."""


def without_number(name: str) -> str:
    """Return a name without the suffix of `fresh`."""
    return _NUMBERED.sub("", name)


class Names:
    """The names of a function that is being written."""

    def __init__(self, around: Names | None, everywhere: set[str], module: set[str]) -> None:
        self._own: set[str] = set()
        self._around = around
        self._everywhere = everywhere
        self._module = module
        self._count: dict[str, int] = {}
        self._promised: set[str] = set()

    def promise(self, names: Iterable[str]) -> None:
        """Reserve the user's names for their values; `fresh` returns them for no others."""
        self._promised.update(names)

    def taken(self, name: str) -> bool:
        if name in self._own or name in self._module or name in _RESERVED:
            return True
        return self._around is not None and self._around.taken(name)

    def fresh(self, base: str, *, promised: bool = False) -> str:
        """Return `base`, or `base_1`, `base_2` … if it is taken, or reserved and not `promised`."""
        name, count = base, self._count.get(base, 0)
        while self.taken(name) or (not promised and name in self._promised):
            count += 1
            name = f"{base}_{count}"
        self._count[base] = count
        self._own.add(name)
        self._everywhere.add(name)
        return name

    def owns(self, name: str) -> bool:
        """Return whether a name belongs to this function, not to an enclosing one."""
        return name in self._own

    def keep(self, name: str) -> None:
        """Take a given name, such as that of a parameter."""
        self._own.add(name)
        self._everywhere.add(name)


def unused(base: str, is_taken: Callable[[str], bool]) -> str:
    """Return `base`, or the first of `base_1`, `base_2` … that is not taken."""
    name, count = base, 0
    while is_taken(name):
        count += 1
        name = f"{base}_{count}"
    return name


class ModuleNames:
    """The names at the top of the module, which no function may reuse."""

    def __init__(self) -> None:
        self.everywhere: set[str] = set()
        self.module: set[str] = set()

    def fresh(self, base: str) -> str:
        taken = (self.everywhere, self.module, _RESERVED)
        name = unused(base, lambda name: any(name in names for names in taken))
        self.module.add(name)
        return name

    def keep(self, name: str) -> None:
        self.module.add(name)

    def function(self, around: Names | None = None) -> Names:
        return Names(around, self.everywhere, self.module)
