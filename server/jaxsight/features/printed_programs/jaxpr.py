"""Read a printed jaxpr (`tracer/programs/jaxpr_text.py` writes it).

Equations are in lines of one indentation, or separated by `; ` in one line. Parameters are texts
that any class may have written, so brackets and quotes in them need not be balanced: a line that
is not indented further than its jaxpr's equations ends all that was left open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from jaxsight.features.printed_programs.program import (
    DEEPEST,
    FUNCTION,
    JAXPR,
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
    function_key,
)

TYPE = r"[A-Za-z]\w*(?:<[^>\s]*>)?(?:\[[^\]\r\n]*\]|\{(?:[^{}\r\n]|\{[^{}\r\n]*\})*\})*"
"""An array's type: `f32[8@data,16]`, `key<fry>[]`, `Ref{f32[3]}`."""

_TOKEN = re.compile(
    rf"""
    (?P<comment>(?:\n[ ]*|(?<![^\n]))\#[^\n]*)
    |(?P<line>\n[ ]*)
    |(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<repeated>\{{[ ]lambda[ ]…[ ]as[ ]in[ ]\S+[ ]\}})
    |(?P<open>\{{[ ]lambda\b)
    |(?P<bound>(?P<variable>[A-Za-z_]\w*):{TYPE})
    |(?P<key>[A-Za-z_]\w*=(?![\s=]))
    |(?P<word>[A-Za-z_][\w.\-]*)
    |(?P<number>-?\d[\w.+\-]*(?::{TYPE})?)
    |(?P<mark>[\[\](){{}};=])
    |(?P<other>\S)
    """,
    re.VERBOSE,
)
_VALUE = re.compile(r"[^\s\]]+")
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(slots=True)
class _Level:
    """A jaxpr that is being read."""

    block: PrintedBlock
    indent: int = -1
    """The column of its equations; -1 before they begin, and if they are in one line."""
    phase: Literal["inputs", "equations", "results"] = "inputs"
    statement: PrintedStatement | None = None
    stage: Literal["", "results", "operation", "operands"] = ""
    """What follows in the statement."""
    brackets: list[str] = field(default_factory=list)


def read(text: str) -> PrintedProgram:
    """Read a jaxpr."""
    return _Reader(text).program


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.program = PrintedProgram(JAXPR, text)
        self.levels: list[_Level] = []
        self.last = 0
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup
            if kind == "line":
                if self.levels:
                    self._new_line(match.end() - match.start() - 1, match.end())
                continue
            if kind == "open" and len(self.levels) < DEEPEST:
                self._open(match.start())
            elif kind == "open":
                self.levels[-1].brackets.append("{")
            elif self.levels and kind not in ("comment", "text", "repeated", "other"):
                self._take(self.levels[-1], match)
            self.last = match.end()
        while self.levels:
            self._close(self.last)

    def _new_line(self, column: int, start: int) -> None:
        """Take a line's indentation, which may end what was left open."""
        levels = self.levels
        while len(levels) > 1 and 0 <= column <= levels[-2].indent:
            self._close(self.last)
        level = levels[-1]
        if level.phase != "equations":
            return
        if level.indent < 0:
            if level.statement is None:
                level.indent = column
        elif column <= level.indent:
            if self.text.startswith("]", start) and level.brackets:
                del level.brackets[1:]
            else:
                self._finish(level)

    def _open(self, start: int) -> None:
        outer = self.levels[-1] if self.levels else None
        parent = outer.block if outer is not None else self.program.root
        block = PrintedBlock(start, parent=parent)
        parent.blocks.append(block)
        if outer is None:
            block.key = FUNCTION
            self.program.add(block)
        elif outer.statement is not None and outer.statement.called is not None:
            block.key, block.name_start = outer.statement.called
            outer.statement.called = None
            self.program.add(block)
        self.levels.append(_Level(block))

    def _close(self, end: int) -> None:
        level = self.levels.pop()
        self._finish(level)
        level.block.end = end

    def _finish(self, level: _Level) -> None:
        """End the current statement."""
        level.brackets.clear()
        if (statement := level.statement) is not None:
            statement.end = max(self.last, statement.start)
            level.statement = None

    def _take(self, level: _Level, match: re.Match[str]) -> None:
        """Take a token at the current level."""
        kind = match.lastgroup
        if level.phase == "inputs":
            if kind == "bound":
                self._define(level, match)
            elif kind == "word" and match[0] == "let":
                level.phase = "equations"
        elif kind == "mark":
            self._mark(level, match[0], match.end())
        elif level.phase == "results" or (level.stage == "operands" and not level.brackets):
            self._operand(level, match)
        elif not level.brackets:
            self._head(level, match)
        elif kind == "key" and match[0] == "name=" and len(level.brackets) == 1:
            value = _VALUE.match(self.text, match.end())
            if value is not None and (statement := level.statement) is not None:
                statement.called = function_key(value[0]), value.start()
                self.program.places[statement.called[0]].append(value.start())

    def _mark(self, level: _Level, mark: str, end: int) -> None:
        brackets = level.brackets
        if mark in "([{":
            brackets.append(mark)
        elif mark == ";":
            if not brackets:
                self._finish(level)
        elif mark == "=":
            if level.stage == "results" and not brackets:
                level.stage = "operation"
        elif mark == "}" and "{" not in brackets:
            self._close(end)
        elif _PAIRS[mark] in brackets:
            while brackets.pop() != _PAIRS[mark]:
                pass

    def _head(self, level: _Level, match: re.Match[str]) -> None:
        """Take a token of a statement before its operands."""
        kind, statement = match.lastgroup, level.statement
        if statement is None:
            if self._ends(level, match):
                return
            statement = level.statement = PrintedStatement(match.start())
            level.block.statements.append(statement)
            level.stage = "results" if kind == "bound" else "operation"
        if kind == "bound" and level.stage == "results":
            self._define(level, match)
        elif kind == "word" and level.stage == "operation":
            statement.operation = match[0]
            statement.operation_start = match.start()
            level.stage = "operands"

    def _operand(self, level: _Level, match: re.Match[str]) -> None:
        """Take a token among operands or results."""
        if level.phase == "equations" and level.statement is None:
            self._head(level, match)
            return
        kind = match.lastgroup
        if kind == "word" and self._ends(level, match):
            return
        if kind == "word" and match[0] in level.block.defined:
            self.program.places[match[0]].append(match.start())

    def _ends(self, level: _Level, match: re.Match[str]) -> bool:
        """Return whether a token begins the results, and go on to them."""
        if level.phase != "equations" or match[0] != "in":
            return False
        if not self.text.startswith(" (", match.end()):
            return False
        self._finish(level)
        level.phase = "results"
        return True

    def _define(self, level: _Level, match: re.Match[str]) -> None:
        name = match["variable"]
        if name != "_" and name not in level.block.defined:
            level.block.defined[name] = match.start()
            self.program.places[name].append(match.start())
