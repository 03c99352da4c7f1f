"""Prints a module so that modules with the same computation have the same text.

What does not change the computation is not printed, for these reasons:

* locations, names of symbols and values, the module's name and attributes, names of arguments and
  results, donation: they are about the source, or the call;
* operations without uses, unless they have effects;
* the order of independent operations: a line is printed before its first use;
* the order of what a loop carries (`vmap` of a loop has another than `while_loop`);
* where a constant is defined: it is printed where it is used (JAX defines one at each use, portable
  artifacts one for all);
* operations that return their operand, such as a conversion to the same type (JAX lowers a change
  of weak types to one);
* a `case` whose index is a constant, which is its branch (JAX lowers a choice between platforms
  to one);
* tokens, which order what has effects: it is printed in order;
* attributes that say the default (JAX prints them, portable artifacts do not), and how operands may
  be partitioned;
* which of several equal functions is called (JAX lowers a function once per jaxpr, so that equal
  functions may have several names).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight_source.compat.lowered.mlir import attributes_of, functions, ir, is_token, parse
from jaxsight_source.stablehlo.attributes import constant_text, symbol
from jaxsight_source.stablehlo.operations.regions import constant_of, is_constant, owner_of

_DEFAULTS: dict[str, tuple[str, ...]] = {
    "precision_config": ("DEFAULT",), "backend_config": ('""',), "called_computations": (),
    "padding": ("0",),
    **dict.fromkeys(("indices_are_sorted", "is_stable", "unique_indices"), ("false",)),
    **dict.fromkeys(("window_reversal", "has_side_effect"), ("false",)),
    **dict.fromkeys(("base_dilations", "lhs_dilation", "rhs_dilation"), ("1",)),
    **dict.fromkeys(("window_dilations", "window_strides"), ("1",)),
}  # fmt: skip
"""The words of attributes that say no more than their absence
(https://openxla.org/stablehlo/spec)."""

_IGNORED = {
    "frontend_attributes", "sharding", "result_accuracy", "sdy.sharding", "sdy.sharding_rule",
    "jax.buffer_donor", "api_version",
    "compare_type",  # follows from the operands' type, except for total orders
}  # fmt: skip

_WORD = re.compile(r'true|false|DEFAULT|HIGH\w*|"[^"]*"|-?\d+')

_INDENT = "  "


def canonical(program: str | bytes) -> str:
    """Return the canonical text of a module's @main, with the functions that it calls.

    Raises:
        ValueError: if it is not a module; the message is MLIR's.
    """
    module = parse(program)
    with module.context:
        texts = PrintedFunctions(functions(module))
        main = texts.printed("main")
        return "\n".join([*texts.printed_functions(), "main", *main])


@dataclass(slots=True)
class PrintedFunctions:
    """The functions of a module, each printed once; equal ones have one hash."""

    functions: dict[str, ir.Operation]
    _lines: dict[str, list[str]] = field(default_factory=dict)
    """The lines of functions that are called, by their hashes."""
    _hashes: dict[str, str] = field(default_factory=dict)

    def hashed(self, name: str) -> str:
        """Return a hash of what a function computes, with the functions that it calls."""
        if name not in self._hashes:
            lines = self.printed(name)
            found = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
            self._hashes[name] = found
            self._lines.setdefault(found, lines)
        return self._hashes[name]

    def signature(self, operation: ir.Operation) -> str:
        """Return an operation without its operands: attributes, functions, regions."""
        read = dict.fromkeys(value for value in captured(operation) if not is_constant(value))
        names = {value: f"%{place}" for place, value in enumerate(read)}
        block = _Block(self, names, "")
        parts = [f"{name}={text}" for name, text in block.attributes(operation)]
        order = order_of_loop(operation)
        for region in operation.regions:
            for inner in region.blocks:
                parts += _Block(self, dict(names), "").printed(inner, order)
        results = permuted(operation.results, order)
        return "\n".join([*parts, *(str(result.type) for result in results)])

    def printed(self, name: str) -> list[str]:
        return _Block(self, {}, "").printed(self.block(name))

    def block(self, name: str) -> ir.Block:
        return self.functions[name].regions[0].blocks[0]

    def printed_functions(self) -> Iterator[str]:
        for lines in self._lines.values():
            yield "function"
            yield from lines

    def forwarded(self, value: ir.Value) -> ir.Value:
        """Return the value that operations without effect return."""
        while (owner := owner_of(value)) is not None:
            if owner.name == "func.call":
                callee = self.block(symbol(owner.attributes["callee"]))
                end = [*callee.operations][-1].operation
                position = [*owner.results].index(value)
                arguments = [*callee.arguments]
                if end.operands[position] not in arguments:
                    return value
                value = owner.operands[arguments.index(end.operands[position])]
            elif (plain := _plain(value)) != value:
                value = plain
            else:
                return value
        return value

    def has_effects(self, operation: ir.Operation) -> bool:
        if operation.name == "stablehlo.rng":
            return True
        if operation.name == "stablehlo.custom_call":
            effect = "has_side_effect"
            return effect in operation.attributes and str(operation.attributes[effect]) == "true"
        if operation.name == "func.call":
            callee = self.block(symbol(operation.attributes["callee"]))
            return any(self.has_effects(each.operation) for each in callee.operations)
        return any(
            self.has_effects(each.operation)
            for region in operation.regions
            for block in region.blocks
            for each in block.operations
        )


@dataclass(slots=True)
class _Block:
    """Lines of a block, in the order in which its results need them."""

    functions: PrintedFunctions
    names: dict[ir.Value, str]
    indent: str
    lines: list[str] = field(default_factory=list)

    def printed(self, block: ir.Block, order: Sequence[int] | None = None) -> list[str]:
        """Return the lines of a block; of a loop, what it carries in an order."""
        types = []
        for argument in _arrays(permuted(block.arguments, order)):
            self.names[argument] = f"%{len(self.names)}"
            types.append(f"{self.names[argument]}: {argument.type}")
        self.lines.append(f"{self.indent}({', '.join(types)})")
        operations = [each.operation for each in block.operations]
        for operation in operations[:-1]:
            if self.functions.has_effects(operation):
                self.emit(operation)
        returned = operations[-1].operands
        if order is not None and len(returned) == len(order):
            returned = permuted(returned, order)
        self.lines.append(f"{self.indent}return {', '.join(map(self.name, _arrays(returned)))}")
        return self.lines

    def name(self, value: ir.Value) -> str:
        """Return a value's name, or the constant that it is; print what it needs before."""
        value = self.functions.forwarded(value)
        if value in self.names:
            return self.names[value]
        owner = owner_of(value)
        if owner is None:
            raise ValueError("a value is used outside of its block")
        if is_constant(value):
            return f"{constant_text(owner)} : {value.type}"
        self.emit(owner)
        return self.names[value]

    def emit(self, operation: ir.Operation) -> None:
        if any(result in self.names for result in operation.results):
            return
        order = order_of_loop(operation)
        operands = [self.name(each) for each in _arrays(permuted(operation.operands, order))]
        for value in _arrays(captured(operation)):
            self.name(value)
        shown = [f"{name}={text}" for name, text in self.attributes(operation)]
        regions = []
        for region in operation.regions:
            for block in region.blocks:
                inner = _Block(self.functions, dict(self.names), self.indent + _INDENT)
                regions += inner.printed(block, order)
        first = len(self.names)
        results = [*_arrays(permuted(operation.results, order))]
        for result in results:
            self.names[result] = f"%{len(self.names)}"
        types = ", ".join(str(result.type) for result in results)
        label = f"%{first} = " if results else f"{_INDENT}"
        given = f"({', '.join(operands)})"
        attributes = f" {{{', '.join(shown)}}}" if shown else ""
        self.lines.append(f"{self.indent}{label}{operation.name}{given}{attributes} : {types}")
        self.lines += regions

    def attributes(self, operation: ir.Operation) -> Iterator[tuple[str, str]]:
        """Yield what attributes say; functions as their hashes."""
        found = {
            name.removeprefix("mhlo."): value for name, value in attributes_of(operation).items()
        }
        for name in sorted(found):
            text = str(found[name])
            if name in ("callee", "decomposition"):
                yield name, f"function {self.functions.hashed(symbol(found[name]))}"
            elif (name == "compare_type" and "TOTALORDER" in text) or (
                name not in _IGNORED and not _is_default(name, text)
            ):
                yield name, text


def _arrays(values: Iterable[ir.Value]) -> Iterator[ir.Value]:
    """Yield the values that are no tokens."""
    return (value for value in values if not is_token(value))


def _is_default(name: str, text: str) -> bool:
    """Return whether an attribute says no more than its absence."""
    if name in _DEFAULTS:
        return _words(text) <= {*_DEFAULTS[name]}
    if not name.endswith("_layouts"):
        return False
    orders = [re.findall(r"\d+", order) for order in re.findall(r"dense<(.*?)>", text)]
    return all([*map(int, order)] == [*range(len(order))][::-1] for order in orders)


def _words(text: str) -> set[str]:
    """Return the values in an attribute's text, without its type."""
    text = re.sub(r"^array<\w+:?", "", text)
    return set(_WORD.findall(text.partition(" : ")[0]))


def permuted(values: Sequence[ir.Value], order: Sequence[int] | None) -> list[ir.Value]:
    found = list(values)
    return found if order is None else [found[place] for place in order]


def order_of_loop(operation: ir.Operation) -> list[int] | None:
    """Return an order of what a loop carries that does not depend on the loop's own order.

    It is the order in which its condition needs them, then each of these in the body. None for
    other operations.
    """
    if operation.name != "stablehlo.while":
        return None
    condition, body = (region.blocks[0] for region in operation.regions)
    end = [*body.operations][-1].operation.operands
    order = _needed(condition, [*condition.operations][-1].operation.operands)
    for place in order:  # which grows
        order += [one for one in _needed(body, [end[place]]) if one not in order]
    return [*order, *(place for place in range(len(end)) if place not in order)]


def _needed(block: ir.Block, values: Sequence[ir.Value]) -> list[int]:
    """Return the positions of a block's arguments that values need, in order of their use."""
    positions = {argument: place for place, argument in enumerate(block.arguments)}
    inside = {result for each in block.operations for result in each.operation.results}
    found: dict[int, None] = {}
    seen: set[ir.Value] = set()
    waiting = [*values][::-1]
    while waiting:
        value = waiting.pop()
        if value in positions:
            found[positions[value]] = None
        elif value in inside and value not in seen:
            seen.add(value)
            owner = owner_of(value)
            if owner is not None:
                waiting += [*owner.operands, *captured(owner)][::-1]
    return list(found)


def captured(operation: ir.Operation) -> Iterator[ir.Value]:
    """Yield the values that regions read from around the operation."""
    inside: set[ir.Value] = set()

    def walk(inner: ir.Operation) -> Iterator[ir.Value]:
        branch = constant_branch(inner)
        for region in inner.regions if branch is None else [branch]:
            for block in region.blocks:
                inside.update(block.arguments)
                for each in block.operations:
                    yield from (v for v in each.operation.operands if v not in inside)
                    yield from walk(each.operation)
                    inside.update(each.operation.results)

    yield from walk(operation)


def _plain(value: ir.Value) -> ir.Value:
    """Return a value without operations that return their operand, and without known branches."""
    while (owner := owner_of(value)) is not None:
        if _returns_its_operand(owner):
            value = owner.operands[0]
        elif (branch := constant_branch(owner)) is not None:
            end = [*branch.blocks[0].operations][-1].operation
            value = end.operands[[*owner.results].index(value)]
        else:
            break
    return value


def constant_branch(operation: ir.Operation) -> ir.Region | None:
    """Return the branch that a `case` takes, if its index is a constant."""
    if operation.name != "stablehlo.case":
        return None
    index = constant_of(_plain(operation.operands[0]))
    if index is None:
        return None
    last = len(operation.regions) - 1
    return operation.regions[int(index) if 0 <= index <= last else last]


def _returns_its_operand(operation: ir.Operation) -> bool:
    if len(operation.operands) != 1 or len(operation.results) != 1:
        return False
    if operation.operands[0].type != operation.results[0].type:
        return False
    if operation.name in ("stablehlo.convert", "stablehlo.reshape"):
        return True
    axes = {
        "stablehlo.broadcast_in_dim": "broadcast_dimensions",
        "stablehlo.transpose": "permutation",
    }.get(operation.name)
    if axes is None:
        return False
    found = re.findall(r"\d+", str(operation.attributes[axes]).partition(":")[2])
    return [*map(int, found)] == [*range(len(found))]
