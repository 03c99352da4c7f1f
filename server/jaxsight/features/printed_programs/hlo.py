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
from jaxsight.hlo.text import ComputationSpans, computations, spans

_OPERAND = re.compile(r"%[\w.\-]+|(?<![\w.\-%])[A-Za-z_][\w.\-]*(?=[,)]| *$)")
"""A name among operands; without `%`, it is the last word of one."""
_CALLED = re.compile(r"([\w\-]+)=(?:\{([^{}\"=]*)\}|(%?[\w.\-]+))")
_NAME = re.compile(r"%?[\w.\-]+")
_METADATA = ", metadata={"


def read(text: str) -> PrintedProgram:
    """Read HLO."""
    program = PrintedProgram(HLO, text)
    # All computations first, so that names of them are known where they are called.
    bodies = [_block(program, at) for at in computations(text)]
    for block, lines in bodies:
        for line in lines:
            start, (_, end) = program.lines[line], program.line_range(line)
            _instruction(program, block, start, text[start:end])
        # The names of a computation's arguments are those of its parameters.
        start, end = program.line_range(program.line(block.start))
        head = text[start:end]
        for match in re.finditer(r"(?<=[(, ])%?([\w.\-]+): ", head[: head.rfind("->")]):
            if match[1] in block.defined:
                program.places[match[1]].append(start + match.start())
    for places in program.places.values():
        places.sort()
    return program


def _block(program: PrintedProgram, at: ComputationSpans) -> tuple[PrintedBlock, range]:
    """Add a computation; return it with the lines of its instructions."""
    name = program.text[at.name : at.name_end]
    end = at.end + program.text.startswith("}", at.end)
    block = PrintedBlock(at.start, end, name, at.name, function_key(name), program.root)
    program.root.blocks.append(block)
    program.add(block)
    program.places[block.key].append(block.name_start)
    return block, range(program.line(at.start) + 1, program.line(at.end))


def _instruction(program: PrintedProgram, block: PrintedBlock, start: int, line: str) -> None:
    """Read the line of an instruction, which begins at an offset."""
    if (at := spans(line)) is None:
        return
    name = value_key(line[at.name : at.name_end])
    comment = line.rfind("  // ")
    indent = len(line) - len(line.lstrip())
    statement = PrintedStatement(start + indent, start + (comment if comment > 0 else len(line)))
    block.statements.append(statement)
    block.defined.setdefault(name, start + at.name)
    program.places[name].append(start + at.name)
    if at.opcode < 0:
        return
    statement.operation = line[at.opcode : at.operands - 1]
    statement.operation_start = start + at.opcode
    close = at.operands_end if at.operands_end >= 0 else len(line)
    if statement.operation not in ("parameter", "constant"):
        for match in _OPERAND.finditer(line, at.operands, close + 1):
            if match.end() <= close:
                program.places[value_key(match[0])].append(start + match.start())
    # The names of computations, and of other instructions, after the operands.
    metadata = line.find(_METADATA, close)
    end_of_names = metadata if metadata >= 0 else len(line)
    for match in _CALLED.finditer(line, close, end_of_names):
        group = 2 if match[2] is not None else 3
        for word in _NAME.finditer(line, *match.span(group)):
            key, place = function_key(word[0]), start + word.start()
            if match[1] == "control-predecessors":
                program.places[value_key(word[0])].append(place)
            elif key in program.functions:
                program.places[key].append(place)
