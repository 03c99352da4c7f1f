"""Parse HLO text: one instruction per line, as JAX 0.4.35 to 0.12 print it.

Names may have a `%` or not, operands may have types or not, and metadata may have a stack frame or
a source line; all of these are accepted.
Large texts are common, so each line is scanned a constant number of times, and attributes are
parsed on demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from jaxsight.compiler.hlo.shapes import parts, split_at_commas
from jaxsight.wire.chunks import equation_path

_HEAD = re.compile(r"\s+(?P<root>ROOT )?%?(?P<name>[^\s=(]+) = ")
_SIMPLE = re.compile(r"(?P<shape>[^\s(]\S*) (?P<opcode>[a-z][\w-]*)\(")
_OPCODE = re.compile(r" ?(?P<opcode>[a-z][\w-]*)\(")
_COMPUTATION = re.compile(r"(?P<entry>ENTRY )?%?(?P<name>[^\s(]+) (?:\(|\{)")
_BRACKET = re.compile(r"[()]")
_OPERAND = re.compile(r"%?([A-Za-z_][\w.\-]*(?:#\d+)*)\s*$")
_ELEMENT = re.compile(r"#\d+$")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_CALLED = re.compile(
    r"\b(?P<role>calls|to_apply|condition|body|branch_computations|true_computation|false_computation"
    r"|called_computations|select|scatter)=(?P<names>\{[^}]*\}|%?[\w.\-]+)"
)
_MODULE = re.compile(r"HloModule ([^\s,]+)")
_WITHOUT_OPERANDS = frozenset({"parameter", "constant", "iota"})


@dataclass(slots=True, eq=False)
class Instruction:
    """An instruction; `shape` and `attributes` are as printed, `line` counts from 0."""

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    attributes: str
    line: int
    root: bool
    literal: str = ""
    """The text in the parentheses of a constant or parameter."""

    @property
    def op_name(self) -> str:
        """The scopes of the operation in the program; `""` if there are none."""
        match = _OP_NAME.search(self.attributes)
        return match[1] if match else ""

    @property
    def equation(self) -> str:
        """The path of its equation, e.g. `3/body/1`; `""` if unknown."""
        return equation_path(self.op_name)

    def attribute(self, name: str) -> str:
        """Return an attribute that is a word or a quoted string, or `""` if it is missing."""
        start = self.attributes.find(f"{name}=")
        if start < 0:
            return ""
        start += len(name) + 1
        if self.attributes.startswith('"', start):
            return self.attributes[start + 1 : self.attributes.find('"', start + 1)]
        end = start
        while end < len(self.attributes) and self.attributes[end] not in ", ":
            end += 1
        return self.attributes[start:end]

    @property
    def called(self) -> dict[str, tuple[str, ...]]:
        """The computations that it calls, by role (`calls`, `body`, `condition`, …)."""
        # The text after these can be long, and contains no computation.
        ends = (self.attributes.find(word) for word in ("metadata={", "backend_config="))
        end = min((at for at in ends if at >= 0), default=len(self.attributes))
        return {
            match["role"]: tuple(
                name.strip().lstrip("%") for name in match["names"].strip("{}").split(",")
            )
            for match in _CALLED.finditer(self.attributes, 0, end)
        }


@dataclass(eq=False)
class Computation:
    """Instructions in the order in which they run, which is that of the text."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    by_name: dict[str, Instruction] = field(default_factory=dict)

    @cached_property
    def passed_on(self) -> dict[str, Instruction]:
        """The first bitcast or tuple element with an equation, by the name of its operand."""
        instructions: dict[str, Instruction] = {}
        for instruction in self.instructions:
            passes = instruction.opcode in ("bitcast", "get-tuple-element")
            if passes and instruction.operands and instruction.equation:
                instructions.setdefault(instruction.operands[0], instruction)
        return instructions

    @property
    def root(self) -> Instruction | None:
        """The instruction that returns the result."""
        for instruction in reversed(self.instructions):
            if instruction.root:
                return instruction
        return self.instructions[-1] if self.instructions else None

    def results(self) -> list[Instruction]:
        """Return the instructions of the results: the root, or the elements of its tuple."""
        root = self.root
        if root is None or root.opcode != "tuple":
            return [root] if root is not None else []
        elements = (self.by_name.get(name) for name in root.operands)
        return [element for element in elements if element is not None]

    def parameters(self) -> list[Instruction]:
        """Return the parameters in the order of their numbers."""
        parameters = [
            instruction for instruction in self.instructions if instruction.opcode == "parameter"
        ]
        return sorted(
            parameters,
            key=lambda parameter: int(parameter.literal) if parameter.literal.isdigit() else 0,
        )


@dataclass(slots=True, eq=False)
class Module:
    """A parsed text."""

    name: str = ""
    header: str = ""
    entry: Computation | None = None
    computations: dict[str, Computation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def parse(text: str) -> Module:
    """Return the module of a text; lines that are not HLO are noted and never raise an error."""
    module = Module()
    computation: Computation | None = None
    for number, line in _lines(text):
        if line[0] not in " \t":
            computation = _enclosing(module, computation, line)
        elif computation is not None:
            _add_instruction(module, computation, line, number)
    if module.entry is None:
        module.notes.append("no entry computation")
    return module


def _enclosing(module: Module, computation: Computation | None, line: str) -> Computation | None:
    """Return the computation of the lines that follow an unindented line."""
    if line[0] == "}":
        return None
    if line.startswith("HloModule"):
        module.header = line
        match = _MODULE.match(line)
        module.name = match[1] if match else ""
    elif line.endswith("{") and (head := _COMPUTATION.match(line)):
        computation = Computation(head["name"])
        module.computations[computation.name] = computation
        if head["entry"]:
            module.entry = computation
    return computation


def _add_instruction(module: Module, computation: Computation, line: str, number: int) -> None:
    instruction = _instruction(line, number)
    if instruction is None:
        if len(module.notes) < 8:
            module.notes.append(f"cannot parse line {number + 1}: {line.strip()[:80]}")
        return
    for operand in instruction.operands:
        if _ELEMENT.search(operand):
            _take_element(computation, operand, number)
    computation.instructions.append(instruction)
    computation.by_name[instruction.name] = instruction


def _take_element(computation: Computation, name: str, number: int) -> None:
    """Add an instruction for an element of a tuple that is printed as `%tuple#1`.

    XLA of JAX 0.12 prints elements in this form.
    """
    if name in computation.by_name:
        return
    tuple_name, _, index = name.rpartition("#")
    if _ELEMENT.search(tuple_name):
        _take_element(computation, tuple_name, number)
    tuple_instruction = computation.by_name.get(tuple_name)
    elements = parts(tuple_instruction.shape) if tuple_instruction is not None else ()
    shape = elements[int(index)] if int(index) < len(elements) else ""
    element = Instruction(
        name, "get-tuple-element", shape, (tuple_name,), f", index={index}", number, False
    )
    computation.instructions.append(element)
    computation.by_name[name] = element


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield non-empty lines with their numbers; a literal printed on several lines is joined."""
    pending: list[str] = []
    begun = 0
    for number, line in enumerate(text.split("\n")):
        if pending:
            pending.append(line.strip())
            # The last line of a literal closes the brackets.
            if "})" in line:
                yield begun, " ".join(pending)
                pending = []
        elif " constant({" in line and ")" not in line:
            pending, begun = [line], number
        elif line and not line.isspace():
            yield number, line


def _instruction(line: str, number: int) -> Instruction | None:
    head = _HEAD.match(line)
    if head is None:
        return None
    start = head.end()
    if (simple := _SIMPLE.match(line, start)) is not None:
        shape, opcode, start = simple["shape"], simple["opcode"], simple.end()
    else:
        end = _closing(line, start)
        tail = _OPCODE.match(line, end)
        if end < 0 or tail is None:
            return None
        shape, opcode, start = line[head.end() : end], tail["opcode"], tail.end()
    end = line.find(")", start)
    if end >= 0 and line.find("(", start, end) >= 0:
        end = _closing(line, start - 1) - 1
    if end < 0:
        return None
    inside = line[start:end]
    operands: tuple[str, ...] = ()
    literal = ""
    if opcode in _WITHOUT_OPERANDS:
        literal = inside
    elif inside:
        operands = _operands(inside)
    return Instruction(
        head["name"], opcode, shape, operands, line[end + 1 :], number, bool(head["root"]), literal
    )


def _operands(inside: str) -> tuple[str, ...]:
    if "/*" in inside:
        inside = _COMMENT.sub("", inside)
    if "[" not in inside and "(" not in inside:
        return tuple(part.strip().lstrip("%") for part in inside.split(","))
    # Each operand is a type, a space and a name.
    matches = map(_OPERAND.search, split_at_commas(inside))
    return tuple(match[1] for match in matches if match is not None)


def _closing(line: str, opening: int) -> int:
    """Return the position after the bracket that closes the one at `opening`, or -1."""
    depth = 0
    for bracket in _BRACKET.finditer(line, opening):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return bracket.end()
    return -1
