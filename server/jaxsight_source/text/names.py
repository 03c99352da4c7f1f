"""Names for variables and functions: the user's own if known, or else derived from the primitive.

A name never shadows another: names of a function differ from those of all enclosing functions
and of the module.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jaxsight_source.text.exprs import IMPORTS, call, dotted, is_atom, parsed, span, subscript
from jaxsight_source.text.layout import flat

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


Step = tuple[str, str]
"""An index (`[`) with its text, or an attribute (`.`) with its name."""

_FORMATTED = re.compile(r'^f".*\}"$')
"""A key that contains a loop counter."""


@dataclass(frozen=True, slots=True)
class Path:
    """A root name and the steps from it to a part."""

    root: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """A name for the part, from its last words, which are the most specific."""
        words = (_FORMATTED.sub("", text).strip("\"'") for _, text in self.steps)
        return of_path("_".join((self.root, *filter(None, words))), self.root)

    @property
    def expr(self) -> ast.expr:
        expr: ast.expr = ast.Name(self.root)
        for kind, text in self.steps:
            expr = subscript(expr, parsed(text)) if kind == "[" else ast.Attribute(expr, text)
        return expr


def path_of(expr: object) -> Path | None:
    """Return the path that an expression reads, or None for other expressions."""
    steps: list[Step] = []
    while True:
        match expr:
            case ast.Subscript(inside, at) if is_atom(at):
                steps.append(("[", flat(at)))
                expr = inside
            case ast.Attribute(inside, name):
                steps.append((".", name))
                expr = inside
            case ast.Name(root):
                return Path(root, tuple(reversed(steps)))
            case _:
                return None


def shared_end(paths: Sequence[Path | None]) -> tuple[Step, ...]:
    """Return the last steps that all paths have in common; empty if one of them is not a path."""
    first, *further = paths
    if first is None:
        return ()
    end = first.steps
    for path in further:
        if path is None:
            return ()
        count = 0
        while count < min(len(end), len(path.steps)) and end[-1 - count] == path.steps[-1 - count]:
            count += 1
        end = end[len(end) - count :]
    return end


@dataclass(frozen=True, slots=True)
class IndexedPaths:
    """Paths that differ in one step: the collection, its indices, and the steps from an element."""

    base: Path
    keys: tuple[str, ...]
    after: tuple[Step, ...]


def walk(paths: Sequence[Path | None]) -> IndexedPaths | None:
    """Return paths as a walk over one collection, or None if they differ in more than one index."""
    first = paths[0]
    if first is None or not all(
        path is not None and path.root == first.root and len(path.steps) == len(first.steps)
        for path in paths
    ):
        return None
    rows: list[tuple[Step, ...]] = [path.steps for path in paths if path is not None]
    differing = [
        position for position, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1
    ]
    if len(differing) != 1 or any(row[differing[0]][0] != "[" for row in rows):
        return None
    (position,) = differing
    keys = tuple(row[position][1] for row in rows)
    return IndexedPaths(Path(first.root, first.steps[:position]), keys, first.steps[position + 1 :])


def iterated(base: ast.expr, keys: Sequence[str], size: int | None) -> ast.expr | None:
    """Return an expression for the elements at these indices, such as `reversed(params["h"])`.

    Return None if no slice selects them.

    Args:
        size: the length of the collection, if known.
    """
    if not all(key.isdecimal() for key in keys):
        return None
    numbers = list(map(int, keys))
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    if len(steps) != 1:
        return None
    (step,) = steps
    first, last = numbers[0], numbers[-1]
    if step == 1:
        stop = None if last + 1 == size else last + 1
        return subscript(base, span(first, stop)) if first or stop else base
    if step == -1:
        if first + 1 == size and last == 0:
            return call("reversed", base)
        start = None if first + 1 == size else first
        return subscript(base, span(start, last - 1 if last else None, -1))
    return subscript(base, span(first, last + 1, step)) if step > 1 else None


_QUOTED = re.compile(r"""(["'])(\w*?)(\d+)\1$""")


def numbered(keys: Sequence[str]) -> tuple[str, range] | None:
    """Return the common prefix and the numbers of keys such as `"Block_0"`, `"Block_1"`.

    Return None for other keys, and unless the numbers are evenly spaced.
    """
    matches = [_QUOTED.match(key) for key in keys]
    if not all(matches):
        return None
    before = {match[2] for match in matches if match}
    numbers = [match[3] for match in matches if match]
    if len(before) != 1 or any(str(int(number)) != number for number in numbers):
        return None
    values = list(map(int, numbers))
    step = values[1] - values[0]
    if not step or any(b - a != step for a, b in itertools.pairwise(values)):
        return None
    return before.pop(), range(values[0], values[-1] + (1 if step > 0 else -1), step)


def element_name(base: Path) -> str:
    """Return a name for an element of a collection: `layer` for `params["layers"]`."""
    last = re.sub(r"\W", "", base.steps[-1][1]) if base.steps else base.root
    name = identifier(last, "part")
    if len(name) > 3 and name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return "p" if len(name) < 3 else f"{name}_part"
