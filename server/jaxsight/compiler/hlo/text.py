"""Parse HLO text: one instruction per line, as JAX 0.4.35 to 0.12 print it.

Names may have a `%` or not, operands may have types or not, and metadata may have a stack frame or
a source line; all of these are accepted.
Large texts are common: a module only knows where its computations are, and parses one when it is
asked for, so that the instructions of a fusion exist only while its kernel is described.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from jaxsight.compiler.hlo.shapes import HOST_MARK, KEPT, elements, parts, split_at_commas
from jaxsight.wire.chunks import equation_paths

_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([^\s=(]+) = ([^\s(]\S*) ([a-z][\w-]*)\(([^()]*)\)")
"""An instruction whose type and operands contain no brackets, as of most."""
_HEAD = re.compile(r"\s+(?P<root>ROOT )?%?(?P<name>[^\s=(]+) = ")
_SIMPLE = re.compile(r"(?P<shape>[^\s(]\S*) (?P<opcode>[a-z][\w-]*)\(")
_OPCODE = re.compile(r" ?(?P<opcode>[a-z][\w-]*)\(")
_COMPUTATION = re.compile(r"(?P<entry>ENTRY )?%?(?P<name>[^\s(]+) (?:\(|\{)")
_BRACKET = re.compile(r"[()]")
_OPERAND = re.compile(r"%?([A-Za-z_][\w.\-]*(?:#\d+)*)\s*$")
_ELEMENT = re.compile(r"#\d+$")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP_NAME = 'op_name="'
_WORD = re.compile(r"[^, ]*")
_CALLED = re.compile(
    r"\b(calls|to_apply|condition|body|branch_computations|true_computation|false_computation"
    r"|called_computations|select|scatter)=(\{[^}]*\}|%?[\w.\-]+)"
)
_MODULE = re.compile(r"HloModule ([^\s,]+)")
_UNINDENTED = re.compile(r"\n([^ \t\n][^\n]*)")
HOST_EXECUTE = "HostExecute"
"""The target of the custom calls of computations on the host (`compute_on("device_host")`)."""
_WITHOUT_OPERANDS = frozenset({"parameter", "constant", "iota"})

_paths = lru_cache(maxsize=KEPT)(equation_paths)


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
    _called: dict[str, tuple[str, ...]] | None = None

    @property
    def number(self) -> int:
        """The number of a parameter."""
        return int(self.literal) if self.literal.isdigit() else 0

    @property
    def op_name(self) -> str:
        """The scopes of the operation in the program; `""` if there are none."""
        start = self.attributes.find(_OP_NAME) + len(_OP_NAME)
        end = self.attributes.find('"', start) if start >= len(_OP_NAME) else -1
        return self.attributes[start:end] if end >= 0 else ""

    @property
    def equation(self) -> str:
        """The path of its equation, e.g. `3/body/1`; `""` if unknown."""
        return next(iter(_paths(self.op_name)), "")

    @property
    def equations(self) -> tuple[str, ...]:
        """The paths of all its equations, more than one if XLA merged operations."""
        return _paths(self.op_name)

    def attribute(self, name: str) -> str:
        """Return an attribute that is a word or a quoted string, or `""` if it is missing."""
        start = self.attributes.find(f"{name}=")
        if start < 0:
            return ""
        start += len(name) + 1
        if self.attributes.startswith('"', start):
            return self.attributes[start + 1 : self.attributes.find('"', start + 1)]
        word = _WORD.match(self.attributes, start)
        return word[0] if word else ""

    @property
    def called(self) -> dict[str, tuple[str, ...]]:
        """The computations that it calls, by role (`calls`, `body`, `condition`, …)."""
        if self._called is None:
            # The text after these can be long, and contains no computation.
            text = self.attributes.split("metadata={", 1)[0].split("backend_config=", 1)[0]
            self._called = {
                role: tuple([name.strip().lstrip("%") for name in names.strip("{}").split(",")])
                for role, names in _CALLED.findall(text)
            }
        return self._called


@dataclass(eq=False)
class Computation:
    """Instructions in the order in which they run, which is that of the text."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    by_name: dict[str, Instruction] = field(default_factory=dict)

    def add(self, instruction: Instruction) -> None:
        """Add the next instruction, and those for the elements of tuples that it reads.

        XLA of JAX 0.12 prints such elements as `%tuple#1`.
        """
        for operand in instruction.operands:
            if "#" in operand and _ELEMENT.search(operand):
                self._add_element(operand, instruction.line)
        self.instructions.append(instruction)
        self.by_name[instruction.name] = instruction

    def _add_element(self, name: str, line: int) -> None:
        if name in self.by_name:
            return
        tuple_name, _, index = name.rpartition("#")
        if _ELEMENT.search(tuple_name):
            self._add_element(tuple_name, line)
        tuple_ = self.by_name.get(tuple_name)
        elements = parts(tuple_.shape) if tuple_ is not None else ()
        shape = elements[int(index)] if int(index) < len(elements) else ""
        element = Instruction(
            name, "get-tuple-element", shape, (tuple_name,), f", index={index}", line, False
        )
        self.instructions.append(element)
        self.by_name[name] = element

    @cached_property
    def passed_on(self) -> dict[str, Instruction]:
        """The first bitcast or tuple element with an equation, by the name of its operand."""
        instructions: dict[str, Instruction] = {}
        for instruction in self.instructions:
            passes = instruction.opcode in ("bitcast", "get-tuple-element")
            if passes and instruction.operands and instruction.equation:
                instructions.setdefault(instruction.operands[0], instruction)
        return instructions

    @cached_property
    def users(self) -> dict[str, list[Instruction]]:
        """The instructions that read each value, by its name."""
        users: dict[str, list[Instruction]] = {}
        for instruction in self.instructions:
            for name in dict.fromkeys(instruction.operands):
                users.setdefault(name, []).append(instruction)
        return users

    def source(
        self, instruction: Instruction, passed: Collection[str], *, until: str = ""
    ) -> Instruction:
        """Return the instruction before those of some operations, which pass their operand on.

        Args:
            passed: their opcodes.
            until: the opcode of instructions that do not count.
        """
        for _ in self.instructions:  # a broken text may have a circle
            if instruction.opcode not in passed or not instruction.operands:
                break
            operand = self.by_name.get(instruction.operands[0])
            if operand is None or operand.opcode == until:
                break
            instruction = operand
        return instruction

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
        parameters = [each for each in self.instructions if each.opcode == "parameter"]
        return sorted(parameters, key=lambda each: each.number)


@dataclass(frozen=True, slots=True)
class _Place:
    """The instructions of a computation in the text; `line` is the number of the first."""

    start: int
    end: int
    line: int


@dataclass(eq=False)
class Module:
    """A text whose computations are parsed when they are asked for.

    The module keeps none of them but the entry.
    """

    name: str
    header: str
    _text: str
    _places: dict[str, _Place]
    _unread: set[str]
    """The computations that have not been parsed yet."""
    entry: Computation | None = None
    _constants: list[Instruction] = field(default_factory=list)
    _unparsed: list[tuple[int, str]] = field(default_factory=list)

    def computation(self, name: str) -> Computation | None:
        """Parse a computation; return `None` if the text does not contain it."""
        place = self._places.get(name)
        if place is None:
            return None
        computation = Computation(name)
        unparsed = []
        for number, line in _lines(self._text[place.start : place.end], place.line):
            instruction = _instruction(line, number)
            if instruction is None:
                unparsed.append((number, line.strip()[:80]))
            else:
                computation.add(instruction)
        if name in self._unread:
            self._unread.remove(name)
            self._unparsed += unparsed
            self._constants += [
                instruction
                for instruction in computation.instructions
                if instruction.opcode == "constant" and elements(instruction.shape) > 1
            ]
        return computation

    def constants(self) -> list[Instruction]:
        """Return the constants of all computations, without scalars."""
        self._read_rest()
        return sorted(self._constants, key=lambda constant: constant.line)

    def notes(self) -> list[str]:
        """Return messages about the first lines that cannot be parsed."""
        self._read_rest()
        notes = [
            f"cannot parse line {number + 1}: {line}" for number, line in sorted(self._unparsed)
        ]
        return notes[:8] + ["no entry computation"] * (self.entry is None)

    @cached_property
    def has_host_memory(self) -> bool:
        """Whether some value is in the memory of the host, or is computed there."""
        return HOST_MARK in self._text or HOST_EXECUTE in self._text

    def _read_rest(self) -> None:
        for name in tuple(self._unread):
            self.computation(name)


def parse(text: str) -> Module:
    """Return the module of a text; lines that are not HLO are noted and never raise an error."""
    places: dict[str, _Place] = {}
    module_name = header = entry = name = ""
    begin = first = number = counted = 0
    for start, line in _unindented(text):
        number += text.count("\n", counted, start)
        counted = start
        if line.startswith("HloModule"):
            match = _MODULE.match(line)
            header, module_name = line, match[1] if match else ""
            continue
        head = _COMPUTATION.match(line) if line.endswith("{") else None
        # A line of a literal may begin with a bracket, the last one with `})`.
        if name and (head or (line[0] == "}" and not line.startswith("})"))):
            places[name] = _Place(begin, start, first)
            name = ""
        if head is not None:
            name, begin, first = head["name"], start + len(line) + 1, number + 1
            entry = name if head["entry"] else entry
    if name:
        places[name] = _Place(begin, len(text), first)
    module = Module(module_name, header, text, places, set(places))
    module.entry = module.computation(entry)
    return module


def _unindented(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that do not begin with a space, each with its offset."""
    first = text[: text.find("\n")] if "\n" in text else text
    if first and first[0] not in " \t":
        yield 0, first
    for match in _UNINDENTED.finditer(text):
        yield match.start(1), match[1]


def _lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield the indented lines of a computation with their numbers, which begin at `first`.

    A literal that is printed on several lines is joined.
    """
    lines = enumerate(text.split("\n"), first)
    for number, line in lines:
        if not line or line[0] not in " \t" or line.isspace():
            continue
        if " constant({" in line and ")" not in line:
            joined = [line]
            for _, part in lines:
                joined.append(part.strip())
                if "})" in part:
                    yield number, " ".join(joined)
                    break
        else:
            yield number, line


def _instruction(line: str, number: int) -> Instruction | None:
    if (simple := _INSTRUCTION.match(line)) is not None:
        root, name, shape, opcode, inside = simple.groups()
        end = simple.end()
    elif (parts := _bracketed(line)) is not None:
        root, name, shape, opcode, inside, end = parts
    else:
        return None
    if opcode in _WITHOUT_OPERANDS:
        return Instruction(name, opcode, shape, (), line[end:], number, bool(root), inside)
    operands = _operands(inside) if inside else ()
    return Instruction(name, opcode, shape, operands, line[end:], number, bool(root))


def _bracketed(line: str) -> tuple[str | None, str, str, str, str, int] | None:
    """Return the parts of an instruction whose type or operands contain brackets.

    They are those of `_INSTRUCTION`, and the position after them.
    """
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
    return head["root"], head["name"], shape, opcode, line[start:end], end + 1


def _operands(inside: str) -> tuple[str, ...]:
    if "/*" in inside:
        inside = _COMMENT.sub("", inside)
    if "[" not in inside and "(" not in inside:
        return tuple([part.strip().lstrip("%") for part in inside.split(",")])
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
