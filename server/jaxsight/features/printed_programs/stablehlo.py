"""Read StableHLO as MLIR prints it (https://mlir.llvm.org/docs/LangRef).

A region begins with a `{` at the end of a line, and ends with a `}` at the beginning of one;
dictionaries of attributes are within a line.
"""

from __future__ import annotations

import re

from jaxsight.features.printed_programs.program import (
    DEEPEST,
    STABLEHLO,
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
    function_key,
)

_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_VALUE = re.compile(r"%[\w$.\-]+")
_SYMBOL = re.compile(r'@(?:[\w$.\-]+|"[^"\n]*")')
_RESULTS = re.compile(r"(?:%[\w$.\-]+(?::\d+)?(?:, )?)+ = ")
_OPERATION = re.compile(r'"?[A-Za-z_][\w$.]*"?')
_FUNCTION = re.compile(rf"func\.func (?:public |private )?(?P<name>{_SYMBOL.pattern})")
_SYMBOL_DEFINED = re.compile(r"(?:module|sdy\.mesh) @")
_CONTINUED = ("}", ")", "cond {", "do {", "reducer(")
"""Beginnings of lines that continue an operation."""


def read(text: str) -> PrintedProgram:
    """Read StableHLO."""
    return _Reader(text).program


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.program = PrintedProgram(STABLEHLO, text)
        self.block = self.program.root
        self.open: list[tuple[PrintedBlock, PrintedStatement | None, PrintedBlock | None]] = []
        """The blocks around the current one, each with its statement and scope there."""
        self.statement: PrintedStatement | None = None
        self.too_deep = 0
        """The number of regions that are open, and too deep to be blocks."""
        self.scope: PrintedBlock | None = None
        """The block of a statement whose regions share names, as those of `while` do."""
        for index, start in enumerate(self.program.lines):
            self._line(start, text[start : self.program.end(index)].rstrip())
        while self.open:
            self._close(len(text))

    def _line(self, start: int, line: str) -> None:
        content = line.lstrip()
        if not content or content.startswith(("//", "#")):
            return
        at, end = start + len(line) - len(content), start + len(line)
        # Quoted text may hold any character, so it is blanked.
        plain = _TEXT.sub(lambda match: '"' + "_" * (len(match[0]) - 2) + '"', content)
        if plain.startswith("}"):
            if self.too_deep:
                self.too_deep -= 1
            else:
                self._close(at + 1)
        # The block in which names of this line are defined and used.
        inner = None
        if plain.endswith("{"):
            if len(self.open) < DEEPEST:
                inner = self._opened(at, content)
            else:
                self.too_deep += 1
        if not content.startswith(_CONTINUED):
            if content.startswith("^"):
                self._names(at, content, plain, self.block)
                return
            if inner is None or not inner.is_function:
                self._start(at, content, plain)
        self._end(end)
        self._names(at, content, plain, inner)
        if inner is not None:
            self.open.append((self.block, self.statement, self.scope))
            self.block, self.statement, self.scope = inner, None, None

    def _end(self, end: int) -> None:
        """Extend the current statement."""
        for part in (self.statement, self.scope):
            if part is not None:
                part.end = end

    def _opened(self, start: int, content: str) -> PrintedBlock:
        """Return the block that a line opens."""
        around = self.scope or self.block
        block = PrintedBlock(start, len(self.text), parent=around, sees_outside=True)
        if (function := _FUNCTION.match(content)) is not None:
            block.sees_outside = False
            block.name_start = start + function.start("name")
            block.key = function_key(function["name"])
            self.program.add(block)
        around.blocks.append(block)
        return block

    def _close(self, end: int) -> None:
        if self.open:
            self.block.end = end
            self.block, self.statement, self.scope = self.open.pop()
            self._end(end)

    def _start(self, start: int, content: str, plain: str) -> None:
        """Begin an operation."""
        statement = self.statement = PrintedStatement(start)
        self.scope = None
        self.block.statements.append(statement)
        results = _RESULTS.match(plain)
        begin = results.end() if results is not None else 0
        if (operation := _OPERATION.match(content, begin)) is not None:
            statement.operation = operation[0].strip('"')
            statement.operation_start = start + begin

    def _shared(self) -> PrintedBlock:
        """Return the block for names that the regions of the current statement share."""
        if self.scope is None and self.statement is not None:
            start, end = self.statement.start, self.statement.end
            self.scope = PrintedBlock(start, end, parent=self.block, sees_outside=True)
            self.block.blocks.append(self.scope)
        return self.scope or self.block

    def _names(self, start: int, content: str, plain: str, inner: PrintedBlock | None) -> None:
        """Take the names in a line; `inner` is the block that it opens."""
        places = self.program.places
        results = _RESULTS.match(plain)
        head = results.end() if results is not None else 0
        for match in _VALUE.finditer(plain):
            name, place = match[0], start + match.start()
            after = plain[match.end() : match.end() + 3]
            if match.start() < head:
                self.block.defined.setdefault(name, place)
            elif after.startswith(": "):
                # An argument of a function or region.
                owner = inner if inner is not None else self.block
                owner.defined.setdefault(name, place)
            elif after == " = ":
                self._shared().defined.setdefault(name, place)
            places[name].append(place)
        for match in _SYMBOL.finditer(plain):
            # Names that are no words are quoted: `@"<lambda>"`.
            key = function_key(content[match.start() : match.end()])
            place = start + match.start()
            places[key].append(place)
            if _SYMBOL_DEFINED.match(plain):
                self.program.root.defined.setdefault(key, place)
