"""Read optimized HLO as XLA prints it (`HloModule::ToString`, xla/hlo/ir/hlo_module.cc).

Each computation begins with an unindented line that ends with `{`, and each instruction has a line
of its own.
"""

from __future__ import annotations

import re

from jaxsight.features.printed_programs.program import (
    HLO,
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
    function_key,
    value_key,
)

_HEAD = re.compile(r"(?P<entry>ENTRY )?(?P<name>%?[\w.\-]+) (?=[({]).*\{[ \t\r]*$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?(?P<name>%?[\w.\-]+) = ")
_OPERATION = re.compile(r" (?P<name>[a-z][\w\-]*)\(")
_OPERAND = re.compile(r"%[\w.\-]+|(?<![\w.\-%])[A-Za-z_][\w.\-]*(?=[,)]| *$)")
"""A name among operands; without `%`, it is the last word of one."""
_CALLED = re.compile(r"([\w\-]+)=(?:\{([^{}\"=]*)\}|(%?[\w.\-]+))")
_NAME = re.compile(r"%?[\w.\-]+")
_METADATA = ", metadata={"


def read(text: str) -> PrintedProgram:
    """Read HLO."""
    program = PrintedProgram(HLO, text, PrintedBlock(0, len(text)))
    _heads(program)
    for block in program.root.blocks:
        first, last = program.line(block.start) + 1, program.line(block.end)
        for line in range(first, last):
            _instruction(program, block, program.lines[line], program.lines[line + 1])
        # The names of a computation's arguments are those of its parameters.
        start, end = program.lines[first - 1], program.lines[first]
        head = text[start:end]
        for match in re.finditer(r"(?<=[(, ])%?([\w.\-]+): ", head[: head.rfind("->")]):
            if match[1] in block.defined:
                program.places[match[1]].append(start + match.start())
    for places in program.places.values():
        places.sort()
    return program


def _heads(program: PrintedProgram) -> None:
    """Find the computations, so that names of them are known where they are called."""
    text, root = program.text, program.root
    block: PrintedBlock | None = None
    for index, start in enumerate(program.lines):
        end = program.lines[index + 1] if index + 1 < len(program.lines) else len(text)
        first = text[start : start + 1]
        if first == "}" and block is not None:
            block.end = start + 1
            block = None
        elif first.strip() and first not in "/#" and (head := _HEAD.match(text[start:end])):
            if block is not None:
                block.end = start
            name = head["name"]
            block = PrintedBlock(start, len(text), name, start + head.start("name"), parent=root)
            block.is_function, block.is_entry = True, head["entry"] is not None
            root.blocks.append(block)
            block.key = function_key(name)
            program.functions.setdefault(block.key, block)
            program.places.setdefault(block.key, []).append(block.name_start)
    # The last computation may be cut off.
    if block is not None:
        block.end = len(text)


def _instruction(program: PrintedProgram, block: PrintedBlock, start: int, end: int) -> None:
    """Read the line of an instruction."""
    line = program.text[start:end].rstrip()
    head = _INSTRUCTION.match(line)
    if head is None:
        return
    name = value_key(head["name"])
    indent = len(line) - len(line.lstrip())
    comment = line.rfind("  // ")
    statement = PrintedStatement(start + indent, start + (comment if comment > 0 else len(line)))
    block.statements.append(statement)
    block.defined.setdefault(name, start + head.start("name"))
    program.places.setdefault(name, []).append(start + head.start("name"))
    # A space before the type lets the pattern match right after `= `.
    operation = _OPERATION.search(line, head.end() - 1)
    if operation is None:
        return
    statement.operation = operation["name"]
    statement.operation_start = start + operation.start("name")
    close = _closing(line, operation.end())
    statement.operands, statement.operands_end = start + operation.end(), start + close
    if statement.operation not in ("parameter", "constant"):
        for match in _OPERAND.finditer(line, operation.end(), close + 1):
            if match.end() <= close:
                places = program.places.setdefault(value_key(match[0]), [])
                places.append(start + match.start())
    # The names of computations, and of other instructions, after the operands.
    metadata = line.find(_METADATA, close)
    end_of_names = metadata if metadata >= 0 else len(line)
    for match in _CALLED.finditer(line, close, end_of_names):
        group = 2 if match[2] is not None else 3
        for word in _NAME.finditer(line, *match.span(group)):
            key, place = function_key(word[0]), start + word.start()
            if match[1] == "control-predecessors":
                program.places.setdefault(value_key(word[0]), []).append(place)
            elif key in program.functions:
                statement.calls.append((key, place))
                program.places[key].append(place)


def _closing(line: str, start: int) -> int:
    """Return the index of the parenthesis that closes the one before `start`."""
    depth = 1
    for match in re.finditer(r"[()]", line[start:]):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return start + match.start()
    return len(line)
