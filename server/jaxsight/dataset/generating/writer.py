"""Writes one program: its parameters, helpers and lines."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from jaxsight.dataset.generating.layout import WIDTH, wrapped
from jaxsight.dataset.generating.types import COMPLEX, FLOATS, SHORT, Value
from jaxsight.dataset.program import Argument, Array
from jaxsight.dataset.spec import Spec

T = TypeVar("T")

SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64)
RANGES = {
    "normal": (-4.5, 4.5),
    "uniform": (0.0, 1.0),
    "positive": (0.5, 2.0),
    "unit": (-0.9, 0.9),
    "booleans": (0.0, 1.0),
}
_RESERVED = {"jax", "jnp", "lax", "jsp", "np", "partial", "math"}


class Writer:
    """Collects the text of a program while a template writes it.

    Attributes:
        random: where all choices come from.
        spec: what the dataset contains.
        transformations: those of JAX that the program uses.
        labels: what a reader should know.
        is_blocked: whether an operation has no derivative although its operand has one.
    """

    def __init__(self, spec: Spec, choices: random.Random) -> None:
        self.random = choices
        self.spec = spec
        self.imports: set[str] = set()
        self.blocks: list[str] = []
        self.parameters: dict[str, Argument] = {}
        self.lines: list[str] = []
        self.indent = 4
        self.names: set[str] = set(_RESERVED)
        self.transformations: set[str] = set()
        self.labels: set[str] = set()
        self.is_blocked = False
        self.results: list[Value] = []
        self.title = ""
        self.words: list[str] = []

    # Choices

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`."""
        return options[int(self.random.random() * len(options))]

    def chance(self, probability: float) -> bool:
        """Return whether something of this probability happens."""
        return self.random.random() < probability

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + int(self.random.random() * (high - low + 1))

    def dtype(self, *options: str) -> str:
        """Return one of the dtypes, among those of the specification where possible."""
        return self.pick([each for each in options if each in self.spec.dtypes] or options[:1])

    def floating(self) -> str:
        """Return a dtype of real numbers, mostly `float32`."""
        if self.chance(0.45) and "float32" in self.spec.dtypes:
            return "float32"
        return self.dtype(*FLOATS)

    def wide(self) -> str:
        """Return a dtype that linear algebra accepts."""
        return self.dtype("float32", "float32", "float64")

    def index(self) -> str:
        """Return a dtype of indices."""
        return self.dtype("int32", "int32", "int64")

    def size(self, low: int = 2, high: int = 64) -> int:
        """Return a size in [low, high]."""
        return self.pick([size for size in SIZES if low <= size <= high])

    def shape(self, low: int = 1, high: int = 3, largest: int = 64) -> tuple[int, ...]:
        """Return a shape whose rank is in [low, high]."""
        rank = self.between(min(low, self.spec.max_rank), min(high, self.spec.max_rank))
        limit = min(self.spec.max_elements, 16384)
        sizes: list[int] = []
        for left in range(rank, 0, -1):
            room = max(2, int((limit / math.prod(sizes)) ** (1 / left)) if left > 1 else largest)
            fair = max(2, min(largest, room * 2, limit // math.prod(sizes) // 2 ** (left - 1)))
            sizes.append(self.size(2, fair))
        return tuple(sizes)

    # Names

    def name(self, options: str) -> str:
        """Return the first unused one of some names, shuffled; with a number where all are used."""
        words = options.split()
        free = [word for word in words if word not in self.names]
        name = self.pick(free) if free else ""
        number = 2
        while not name:
            numbered = f"{words[0]}{number}"
            name = "" if numbered in self.names else numbered
            number += 1
        self.names.add(name)
        return name

    # Parameters

    def array(
        self, names: str, dtype: str, shape: tuple[int, ...], values: str | None = None
    ) -> Value:
        """Add an array to the parameters, and return it."""
        name = self.name(names)
        values = values or default_values(dtype)
        self.parameters[name] = Array(dtype, shape, values)
        return argument(name, dtype, shape, values)

    def key(self) -> str:
        """Add a PRNG key to the parameters, and return its name."""
        name = self.name("key rng rng_key")
        self.parameters[name] = Array("key", (), "key")
        return name

    # Lines

    def line(self, text: str = "") -> None:
        """Write a statement."""
        self.lines += wrapped(text, self.indent) if text else [""]

    def let(self, names: str, value: Value) -> Value:
        """Assign a value to a new name."""
        if value.text.isidentifier():
            return value
        text = self.hoisted(value.text)
        name = self.name(names)
        self.line(f"{name} = {text}")
        return value.named(name)

    def hoisted(self, text: str) -> str:
        """Return an expression that fits a line; calls in longer ones are assigned to names."""
        while self.indent + len(text) > WIDTH - 16:
            call = _inner_call(text)
            if call is None:
                break
            name = self.name("inner part piece")
            self.line(f"{name} = {call}")
            text = text.replace(call, name)
        return text

    def short(self, value: Value, names: str, width: int = 34) -> Value:
        """Return a value whose expression is short, assigned to a name where it is not."""
        return value if len(value.text) <= width else self.let(names, value)

    def make(
        self,
        text: str,
        *sources: Value,
        dtype: str | None = None,
        shape: tuple[int, ...] | None = None,
        low: float | None = None,
        high: float | None = None,
        is_smooth: bool = True,
        is_exact: bool = False,
        is_level: bool = False,
    ) -> Value:
        """Return a value computed from others, by default of the type of the first one."""
        first = sources[0]
        dtype = first.dtype if dtype is None else dtype
        smooth = is_smooth and dtype in (*FLOATS, *COMPLEX)
        return Value(
            text,
            dtype,
            first.shape if shape is None else shape,
            first.low if low is None else low,
            first.high if high is None else high,
            smooth and any(source.is_smooth for source in sources),
            is_exact and all(source.is_exact for source in sources),
            is_level,
        )

    def blocked(self, *sources: Value) -> None:
        """Note that an operation on `sources` has no derivative in JAX."""
        self.is_blocked |= any(source.is_smooth for source in sources)

    def give(self, *values: Value, text: str | None = None) -> None:
        """Write the `return` of the function, and remember what it returns."""
        self.results += values
        if text is None:
            text = ", ".join(self.hoisted(value.text) for value in values)
        self.line(f"return {text}")

    def imported(self, line: str) -> None:
        """Add an import."""
        self.imports.add(line)

    # Functions

    @contextmanager
    def nested(self, head: str, *decorators: str) -> Iterator[None]:
        """Write a function inside the current one; its names end with it."""
        if not self.lines or (self.lines[-1] and not self.lines[-1].rstrip().endswith(":")):
            self.line()
        for decorator in decorators:
            self.line(decorator)
        self.line(f"def {head}:")
        names, self.names = self.names, set(self.names)
        self.names |= parameters_of(head)
        self.indent += 4
        yield
        self.indent -= 4
        self.names = names
        self.line()

    @contextmanager
    def helper(self, head: str, *decorators: str, doc: str = "") -> Iterator[None]:
        """Write a function of the module, above the one that the program is about."""
        lines, self.lines = self.lines, []
        indent, self.indent = self.indent, 0
        names, self.names = self.names, self.names | parameters_of(head)
        for decorator in decorators:
            self.line(decorator)
        self.line(f"def {head}:")
        self.indent = 4
        if doc:
            self.line(f'"""{doc}"""')
        yield
        self.blocks.append("\n".join(self.lines).rstrip())
        self.lines, self.indent, self.names = lines, indent, names | {head.split("(")[0]}

    @contextmanager
    def branch(self, head: str) -> Iterator[None]:
        """Write the body of a compound statement, such as a loop."""
        self.line(f"{head}:")
        self.indent += 4
        yield
        self.indent -= 4

    def block(self, text: str) -> None:
        """Write a piece of the module above the function, such as a class."""
        self.blocks.append(text)

    # The whole

    def function_name(self) -> str:
        """Return the name of the function, from the words that describe it."""
        words = [word for word in self.words if word]
        name = "_".join(words)
        while len(name) > 52 and len(words) > 2:
            words.pop()
            name = "_".join(words)
        return name if name not in self.parameters and name not in self.names else f"{name}_of"

    def text(self) -> str:
        """Return the module."""
        self.blocks = ["\n".join(used(block.split("\n"))) for block in self.blocks]
        body = used(self.lines)
        while body and not body[-1]:
            body.pop()
        code = "\n".join(body) + "\n".join(self.blocks)
        self.imports |= {"import jax.numpy as jnp"} if "jnp." in code else set()
        self.imports |= {"from jax import lax"} if "lax." in code.replace("jax.lax.", "") else set()
        if _USE_OF_JAX.search(code):
            self.imports.add("import jax")
        head = wrapped(f"def {self.function_name()}({', '.join(self.parameters)}):", 0)
        title = self.title.rstrip(".")
        summary = f'    """{title[0].upper()}{title[1:]}.'
        assert len(summary) <= WIDTH, summary
        inputs = [
            line
            for name, item in self.parameters.items()
            for line in wrapped(f"{name}: {notation(item)}", 8)
        ]
        doc = [summary, "", "    Example inputs:", *inputs, '    """']
        function = "\n".join([*head, *doc, *body])
        parts = [part for part in (*self.blocks, function) if part]
        imports = _imports(self.imports)
        gap = "\n\n\n" if parts[0].startswith(("def ", "class ", "@")) else "\n\n"
        return (imports + gap if imports else "") + "\n\n\n".join(parts) + "\n"


_CALLS = re.compile(r"(?<![\w.])[a-z_][\w.]*\(")


def _inner_call(text: str) -> str | None:
    """Return the longest call inside of an expression that is worth a name."""
    if "lambda" in text or " for " in text:
        return None
    calls = []
    for match in _CALLS.finditer(text):
        depth = 0
        for position in range(match.end() - 1, len(text)):
            depth += (text[position] in "([{") - (text[position] in ")]}")
            if not depth:
                calls.append(text[match.start() : position + 1])
                break
    fitting = [call for call in calls if 16 <= len(call) <= 66 and len(call) < len(text) - 8]
    return max(fitting, key=len, default=None)


_USE_OF_JAX = re.compile(r"(?<![\w.])jax\.")


_ASSIGNMENT = re.compile(r"( +)([a-z_]\w*) = ")
_WORD = re.compile(r"[A-Za-z_]\w*")


def used(lines: list[str]) -> list[str]:
    """Return the lines of a function without assignments to names that nothing reads."""
    while True:
        counts = Counter(word for line in lines for word in _WORD.findall(line))
        for start, line in enumerate(lines):
            match = _ASSIGNMENT.match(line)
            if match is None or counts[match[2]] > 1:
                continue
            end = start
            if line[-1] in "([{":
                foot = (match[1] + ")", match[1] + "]", match[1] + "}")
                end = next(k for k in range(start + 1, len(lines)) if lines[k].startswith(foot))
            lines = lines[:start] + lines[end + 1 :]
            break
        else:
            return lines


def parameters_of(head: str) -> set[str]:
    """Return the names of the parameters of a function's head."""
    inner = head[head.find("(") + 1 : -1]
    return {part.split("=")[0].strip(" *") for part in inner.split(",")} - {""}


def default_values(dtype: str) -> str:
    """Return the rule of values that suits a dtype."""
    if dtype == "bool":
        return "booleans"
    return "normal" if dtype in (*FLOATS, *COMPLEX) else "integers:100"


def argument(name: str, dtype: str, shape: tuple[int, ...], values: str) -> Value:
    """Return an argument as a value."""
    rule, _, count = values.partition(":")
    low, high = RANGES.get(rule, (-4.5, 4.5))
    if rule == "integers":
        low, high = 0.0, float(count) - 1
    elif rule == "permutation":
        low, high = 0.0, shape[-1] - 1.0
    return Value(name, dtype, shape, low, high, dtype in (*FLOATS, *COMPLEX), True)


def notation(item: Argument) -> str:
    """Return an argument in the notation of example inputs."""
    if isinstance(item, Array):
        return f"{SHORT[item.dtype]}[{', '.join(map(str, item.shape))}]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"'{name}': {notation(each)}" for name, each in item.items()) + "}"
    inner = ", ".join(notation(each) for each in item)
    if isinstance(item, list):
        return f"[{inner}]"
    return f"({inner},)" if len(item) == 1 else f"({inner})"


_STANDARD = ("dataclasses", "functools", "math", "typing")


def _imports(lines: set[str]) -> str:
    def module(line: str) -> str:
        return line.split()[1]

    def order(line: str) -> tuple[bool, str]:
        return line.startswith("from"), module(line)

    merged: dict[str, set[str]] = {}
    plain = set()
    for line in lines:
        if line.startswith("from "):
            merged.setdefault(module(line), set()).update(line.split(" import ")[1].split(", "))
        else:
            plain.add(line)
    whole = [
        *plain,
        *(f"from {name} import {', '.join(sorted(parts))}" for name, parts in merged.items()),
    ]
    standard = sorted((line for line in whole if module(line) in _STANDARD), key=order)
    others = sorted((line for line in whole if module(line) not in _STANDARD), key=order)
    return "\n\n".join("\n".join(group) for group in (standard, others) if group)
