"""Parse HLO text: one instruction per line, as JAX 0.4.35 to 0.12 print it.

Names may have a `%` or not, operands may have types or not, and metadata may have a stack frame or
a source line; all of these are accepted.
Large texts are common: a module only knows where its computations are, and parses one when it is
asked for, so that the instructions of a fusion exist only while its kernel is described.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from jaxsight.hlo.shapes import HOST_MARK, KEPT, dims, elements, parts, split_at_commas
from jaxsight.wire.chunks import equation_paths
from jaxsight.wire.donation import Alias

_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ([^\s(]\S*) ([a-z][\w-]*)\(([^()]*)\)")
"""An instruction whose type and operands contain no brackets, as of most."""
_HEAD = re.compile(r"\s+(?P<root>ROOT )?(?P<name>%?[\w.\-]+) = ")
_SIMPLE = re.compile(r"(?P<shape>[^\s(]\S*) (?P<opcode>[a-z][\w-]*)\(")
_OPCODE = re.compile(r" ?(?P<opcode>[a-z][\w-]*)\(")
_COMPUTATION = re.compile(r"(?P<entry>ENTRY )?(?P<name>%?[\w.\-]+) (?:\(|\{)")
_BRACKETS = {"(": re.compile(r"[()]"), "{": re.compile(r"[{}]")}
_OPERAND = re.compile(r"%?([A-Za-z_][\w.\-]*(?:#\d+)*)\s*$")
_ELEMENT = re.compile(r"#\d+$")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP_NAME = 'op_name="'
_WORD = re.compile(r"[^, ]*")
_CALLED = re.compile(
    r"\b(calls|to_apply|condition|body|branch_computations|true_computation|false_computation"
    r"|called_computations|select|scatter)=(\{[^}]*\}|%?[\w.\-]+)"
)
_MODULE = re.compile(r"^HloModule ([^\s,]*)[^\n]*", re.MULTILINE)
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")  # of `HloInputOutputAliasConfig` (xla/hlo/ir)
_UNINDENTED = re.compile(r"\n([^ \t\n][^\n]*)")
HOST_EXECUTE = "HostExecute"
"""The target of the custom calls of computations on the host (`compute_on("device_host")`)."""
_WITHOUT_OPERANDS = frozenset({"parameter", "constant", "iota"})

_paths = lru_cache(maxsize=KEPT)(equation_paths)


def attribute(text: str, name: str) -> str:
    """Return an attribute of an instruction or of a module's header, or `""` if it is missing.

    It is a word, what is in quotes, or a text in braces with them.
    """
    start = text.find(f"{name}=")
    while start > 0 and text[start - 1] not in " ,{":  # in the end of another name
        start = text.find(f"{name}=", start + 1)
    if start < 0:
        return ""
    start += len(name) + 1
    if text.startswith('"', start):
        return text[start + 1 : text.find('"', start + 1)]
    if text.startswith("{", start):
        return text[start : max(_closing(text, start), start)]
    word = _WORD.match(text, start)
    return word[0] if word else ""


def aliases(text: str) -> tuple[Alias, ...]:
    """Return the buffers that results share with parameters, from the header of a module."""
    found = _ALIAS.findall(attribute(text.partition("\n")[0], "input_output_alias"))
    return tuple(Alias(int(result or 0), int(parameter)) for result, parameter in found)


def device_count(text: str) -> int:
    """Return the number of devices of a program, from the header of its module."""
    header = text.partition("\n")[0]
    names = ("replica_count", "num_partitions")
    return math.prod(int(attribute(header, name) or 1) for name in names)


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
        """Return one of its attributes, or `""` if it is missing."""
        return attribute(self.attributes, name)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the numbers of an attribute such as `dimensions={0,1}`; none if it is missing."""
        return dims(attribute(self.attributes, name))

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

    @property
    def calls(self) -> str:
        """The computation of a fusion or an asynchronous start, or `""`."""
        return next(iter(self.called.get("calls", ())), "")


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

    def operands(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions that an instruction reads, without unknown ones."""
        found = map(self.by_name.get, instruction.operands)
        return [operand for operand in found if operand is not None]

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


@dataclass(eq=False)
class HloModule:
    """A text whose computations are parsed when they are asked for.

    The module keeps none of them but the entry.
    """

    name: str
    header: str
    _text: str
    _places: dict[str, tuple[ComputationSpans, int]]
    """The computations, each with the number of its first line."""
    _unread: set[str]
    """The computations that have not been parsed yet."""
    entry: Computation | None = None
    _constants: list[Instruction] = field(default_factory=list)
    _unparsed: list[tuple[int, str]] = field(default_factory=list)

    def computation(self, name: str) -> Computation | None:
        """Parse a computation; return `None` if the text does not contain it."""
        if name not in self._places:
            return None
        at, first = self._places[name]
        computation = Computation(name)
        unparsed = []
        for number, line in _lines(self._text[at.body : at.end], first):
            read = instruction(line, number)
            if read is None:
                unparsed.append((number, line.strip()[:80]))
            else:
                computation.add(read)
        if name in self._unread:
            self._unread.remove(name)
            self._unparsed += unparsed
            self._constants += [
                each
                for each in computation.instructions
                if each.opcode == "constant" and elements(each.shape) > 1
            ]
        return computation

    def computations(self) -> Iterator[Computation]:
        """Parse all computations, in the order of the text."""
        return filter(None, map(self.computation, self._places))

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


class ComputationSpans(NamedTuple):
    """Where a computation is in a text: its name, with `%` if there is one, and its instructions.

    `end` is the offset of the line after them, which is that of the closing bracket.
    """

    start: int
    name: int
    name_end: int
    is_entry: bool
    body: int
    end: int


def computations(text: str) -> Iterator[ComputationSpans]:
    """Yield where the computations of a text are; the last one may be cut off."""
    opened: ComputationSpans | None = None
    for start, line in _unindented(text):
        head = _COMPUTATION.match(line) if line.rstrip().endswith("{") else None
        # A line of a literal may begin with a bracket, the last one with `})`.
        if opened and (head or (line[0] == "}" and not line.startswith("})"))):
            yield opened._replace(end=start)
            opened = None
        if head is not None:
            name, end = head.span("name")
            is_entry, body = head["entry"] is not None, start + len(line) + 1
            opened = ComputationSpans(start, start + name, start + end, is_entry, body, len(text))
    if opened:
        yield opened


def parse(text: str) -> HloModule:
    """Return the module of a text; lines that are not HLO are noted and never raise an error."""
    places: dict[str, tuple[ComputationSpans, int]] = {}
    entry, number, counted = "", 0, 0
    for at in computations(text):
        number += text.count("\n", counted, at.body)
        counted = at.body
        name = text[at.name : at.name_end].removeprefix("%")
        places[name] = at, number
        entry = name if at.is_entry else entry
    header = _MODULE.search(text)
    named = (header[1], header[0]) if header is not None else ("", "")
    module = HloModule(*named, text, places, set(places))
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


class Spans(NamedTuple):
    """Where the parts of an instruction are in its line.

    Its type is between ` = ` and the opcode. What is missing in a text that is cut is -1.
    """

    is_root: bool
    name: int
    """With `%`, if there is one."""
    name_end: int
    opcode: int = -1
    operands: int = -1
    operands_end: int = -1


def spans(line: str) -> Spans | None:
    """Return where the parts of an instruction are, or `None` if the line is none."""
    head = _HEAD.match(line)
    if head is None:
        return None
    start, pattern = head.end(), _SIMPLE
    if line.startswith("(", start):
        start, pattern = _closing(line, start), _OPCODE
    opcode = pattern.match(line, start) if start >= 0 else None
    named = head["root"] is not None, *head.span("name")
    if opcode is None:
        return Spans(*named)
    begin = opcode.end()
    end = line.find(")", begin)
    if end >= 0 and line.find("(", begin, end) >= 0:
        end = _closing(line, begin - 1) - 1
    return Spans(*named, opcode.start("opcode"), begin, max(end, -1))


def instruction(line: str, number: int) -> Instruction | None:
    """Parse the line of an instruction, or return `None` if it is none; it is line `number`."""
    if (simple := _INSTRUCTION.match(line)) is not None:
        root, name, shape, opcode, inside = simple.groups()
        end = simple.end()
    elif (at := spans(line)) is not None and at.operands_end >= 0:
        root, name = at.is_root, line[at.name : at.name_end].removeprefix("%")
        shape = line[at.name_end + len(" = ") : at.opcode].rstrip(" ")
        opcode, end = line[at.opcode : at.operands - 1], at.operands_end + 1
        inside = line[at.operands : at.operands_end]
    else:
        return None
    if opcode in _WITHOUT_OPERANDS:
        return Instruction(name, opcode, shape, (), line[end:], number, bool(root), inside)
    operands = _operands(inside) if inside else ()
    return Instruction(name, opcode, shape, operands, line[end:], number, bool(root))


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
    for bracket in _BRACKETS[line[opening]].finditer(line, opening):
        depth += 1 if bracket[0] in _BRACKETS else -1
        if depth == 0:
            return bracket.end()
    return -1
