"""Parse an example: an array, a key, a literal, or a pytree of these.

Parsing stops at the first wrong token. This recursive-descent parser is written by hand, so that
errors are in terms of example inputs ("write `f32[]` for a scalar", "use `=` for Python
expressions").
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from jaxsight.examples.notation.shapes import read_shape
from jaxsight.examples.notation.tokens import DEEPEST, STRING, ChunkText, Token, TokenReader
from jaxsight.examples.notation.values import (
    BY_NAME,
    HOST,
    KEY_IMPLEMENTATIONS,
    ArrayNode,
    Key,
    LiteralNode,
    Node,
    TreeNode,
    is_literal,
    show,
    suggestion,
)
from jaxsight.examples.problems import (
    CONFLICT,
    UNKNOWN_DTYPE,
    Malformed,
    did_you_mean,
    malformed,
    python_error,
    quoted,
)
from jaxsight.source.text import Position, Range
from jaxsight.text import names
from jaxsight.text.parsing import quiet

# Read Python expressions after `=`: check the syntax and join the lines, without evaluating.


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression's source, on one line and without comments, and its free names."""

    source: str
    names: tuple[str, ...]
    range: Range = field(default=Range(Position(0, 0), Position(0, 0)), compare=False)


def read_expression(source: ChunkText, start: int, end: int, subject: str) -> Expression:
    """Return the expression between two offsets; raise `Malformed` if Python cannot parse it."""
    reader = TokenReader(source, start, end)
    if reader.token.kind == "end":
        raise reader.expected(f"a Python expression after {quoted(f'{subject} =')}")
    first = reader.token.start
    _check_brackets(reader)
    text = source.text[first:end]
    try:
        # Parentheses let an expression continue over lines without its own.
        with quiet():
            tree = ast.parse(f"({text}\n)", mode="eval")
        written = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = _place(source, first, end, error)
        raise malformed(place, *python_error(error, "Python expression")) from error
    return Expression(written, names.free_in(written), reader.range_from(first))


def _check_brackets(reader: TokenReader) -> None:
    """Read to the end; raise `Malformed` at an unmatched bracket.

    The parentheses that `read_expression` adds would hide one.
    """
    open_: list[tuple[str, Malformed]] = []
    while reader.token.kind != "end":
        token = reader.token
        if token.is_("(", "[", "{"):
            closing = {"(": ")", "[": "]", "{": "}"}[token.text]
            open_.append((closing, reader.unclosed(token, closing)))
            if len(open_) > DEEPEST:
                raise reader.fail(f"brackets nested more than {DEEPEST} levels deep")
        elif token.is_(")", "]", "}"):
            if not open_:
                raise reader.fail(f"unmatched `{token.text}`")
            if (closing := open_.pop()[0]) != token.text:
                raise reader.expected(f"`{closing}`")
        elif token.is_("'", '"'):
            raise reader.fail("string is never closed")
        reader.advance()
    if open_:
        raise open_[-1][1]


def _place(source: ChunkText, first: int, end: int, error: Exception) -> Range:
    """Return the range of a parser's error, inside the expression."""
    if not isinstance(error, SyntaxError):
        return source.range(first, end)

    def offset(line: int | None, column: int | None) -> int | None:
        if line is None or column is None or line < 1 or column < 1:
            return None
        number = source.line_of(first) + line - 1
        if number >= source.line_count:
            return None
        start = first - 1 if line == 1 else source.line_bounds(number)[0]
        return start + column - 1

    start = offset(error.lineno, error.offset)
    stop = offset(error.end_lineno, error.end_offset)
    if start is None or not first <= start < end:
        return source.range(first, end)
    return source.range(start, min(end, stop) if stop is not None and stop > start else start + 1)


_CONSTANTS = ("True", "False", "None")
_KEY_HELP = "use `fry`, `rbg` or `urbg`"


def parse_example(text: str) -> Node:
    """Return the example that a whole text is; raise `Malformed` for any other text."""
    reader = TokenReader(ChunkText(text))
    node = parse_value(reader)
    reader.finish()
    return node


def parse_value(reader: TokenReader, subject: str = "x") -> Node:
    """Return the next example; `subject` is its parameter, for messages."""
    return _Parser(reader, subject).value()


class _Parser:
    def __init__(self, reader: TokenReader, subject: str) -> None:
        self.reader = reader
        self.subject = subject
        self._depth = 0

    def value(self) -> Node:
        """Return one example: an array, a key, a literal, or a pytree of these."""
        token = self.reader.token
        match token.kind:
            case "operator" if token.text in ("{", "[", "("):
                return self._display()
            case "operator" if token.text == "~":
                self.reader.advance()
                if self.reader.token.kind != "name" or self.reader.token.text in (
                    "key",
                    *_CONSTANTS,
                ):
                    raise self.reader.expected(
                        "a dtype after `~`", help="write `~f32[]` for a weakly typed scalar"
                    )
                return self._array(token.start, weak=True)
            case "operator" if token.text in ("-", "+", "..."):
                return self._literal()
            case "operator" if token.text in ("'", '"'):
                raise self.reader.fail("string is never closed")
            case "string" | "number":
                return self._literal()
            case "name" if token.text in _CONSTANTS:
                return self._literal()
            case "name" if token.text == "key" and self.reader.peek().is_("<", "["):
                return self._key()
            case "name":
                return self._array(token.start, weak=False)
        raise self.reader.expected(
            "an example",
            help="write an array such as `f32[8, 16]`, a pytree of arrays, or a literal",
        )

    def _array(self, start: int, *, weak: bool) -> ArrayNode:
        token = self.reader.token
        after = self.reader.peek()
        if token.text not in BY_NAME and not after.is_("["):
            raise self._not_a_value(token, after)
        if token.text not in BY_NAME:
            near = suggestion(token.text)
            raise self.reader.fail(
                f"unknown dtype {quoted(token.text)}",
                code=UNKNOWN_DTYPE,
                help=f"did you mean `{near}`?"
                if near
                else "use a dtype as jaxprs print it: `f32`, `bf16`, `i32`, `bool`, …",
            )
        self.reader.advance()
        if on_host := self.reader.token.is_("<"):
            self.reader.advance()
            if self.reader.token.text != HOST:
                help = f"write `{token.text}<{HOST}>[]` for an array in the host's memory"
                raise self.reader.expected(f"`{HOST}`", help=help)
            self.reader.advance()
            self.reader.take(">")
        if not self.reader.token.is_("["):
            raise self.reader.expected(
                f"a shape after `{token.text}`", help=f"write `{token.text}[]` for a scalar"
            )
        shape, division = read_shape(self.reader)
        range = self.reader.range_from(start)
        return ArrayNode(BY_NAME[token.text], shape, weak, division, on_host, range)

    def _not_a_value(self, token: Token, after: Token) -> Malformed:
        name = token.text
        if after.is_("(", "."):
            return self._expression("a Python expression", f"{name}…")
        if (near := suggestion(name)) is not None:
            return self.reader.fail(
                f"unknown dtype {quoted(name)}",
                code=UNKNOWN_DTYPE,
                help=f"did you mean `{near}[…]`?",
            )
        return self.reader.fail(
            f"expected an example such as `f32[8, 16]`, found {quoted(name)}",
            help=f"write `'{name}'` for a string, or `{self.subject} = {name}` for an expression",
        )

    def _expression(self, construct: str, text: str = "…") -> Malformed:
        """Return the error at the current token for a Python expression after `:`."""
        return self.reader.fail(
            f"expected an example, found {construct}",
            help=f"use `=` for Python expressions: `{self.subject} = {text}`",
        )

    def _key(self) -> Key:
        start = self.reader.advance().start
        self.reader.take(
            "<", "`<` after `key`", help="name the key implementation, such as `key<fry>[]`"
        )
        name = self.reader.token
        if name.kind != "name":
            raise self.reader.expected("a key implementation", help=_KEY_HELP)
        if name.text not in KEY_IMPLEMENTATIONS:
            raise self.reader.fail(
                f"unknown key implementation {quoted(name.text)}",
                code=UNKNOWN_DTYPE,
                help=did_you_mean(name.text, KEY_IMPLEMENTATIONS, _KEY_HELP),
            )
        self.reader.advance()
        self.reader.take(">")
        if not self.reader.token.is_("["):
            raise self.reader.expected(
                f"a shape after `key<{name.text}>`",
                help=f"write `key<{name.text}>[]` for a single key",
            )
        shape, division = read_shape(self.reader)
        range = self.reader.range_from(start)
        return Key(KEY_IMPLEMENTATIONS[name.text], shape, division, range)

    def _display(self) -> Node:
        opening = self.reader.advance()
        closing = {"{": "}", "[": "]", "(": ")"}[opening.text]
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.reader.fail(f"brackets nested more than {DEEPEST} levels deep", opening)
        keys: list[Node] = []
        children: list[Node] = []
        mapping = comma = False
        for _ in self.reader.items(opening, closing):
            child = self.value()
            if opening.text == "{":
                if not children:
                    mapping = self.reader.token.is_(":")
                if mapping:
                    keys.append(self._dict_key(child, keys))
                    self.reader.take(":", "`:` after a dict key")
                    child = self.value()
                elif not is_literal(child):
                    raise malformed(
                        child.range,
                        "a set can only contain literals",
                        "write `key: example` for each item of a dict",
                    )
            children.append(child)
            comma = self.reader.token.is_(",")
        self._depth -= 1
        range = self.reader.range_from(opening.start)
        match opening.text:
            case "[":
                return TreeNode("list", tuple(children), range=range)
            case "(" if len(children) == 1 and not comma:
                return children[0]
            case "(":
                return TreeNode("tuple", tuple(children), range=range)
            case _ if mapping or not children:
                return TreeNode("dict", tuple(children), tuple(map(show, keys)), range)
        return LiteralNode("{" + ", ".join(map(show, children)) + "}", range)

    def _dict_key(self, key: Node, before: list[Node]) -> Node:
        if not _hashable(key):
            help = "use a literal such as `'w'` or `0`"
            raise malformed(key.range, "dict key is not a hashable literal", help)
        if key in before:
            message = f"duplicate dict key {quoted(show(key))}"
            raise malformed(key.range, message, "remove one of the items", CONFLICT)
        return key

    def _literal(self) -> LiteralNode:
        first = self.reader.token
        match first.kind:
            case "string":
                parts = [self._string()]
                while self.reader.token.kind == "string":
                    parts.append(self._string())
                source = " ".join(parts)
            case "name":
                source = self.reader.advance().text
            case "operator" if first.text == "...":
                source = self.reader.advance().text
            case _:
                source = self._number()
        try:
            with quiet():
                ast.literal_eval(source)
        except (SyntaxError, ValueError) as error:
            range = self.reader.range_from(first.start)
            raise malformed(range, *python_error(error, "Python literal")) from error
        return LiteralNode(source, self.reader.range_from(first.start))

    def _string(self) -> str:
        token = self.reader.token
        prefix = STRING.match(token.text)
        if prefix is not None and "f" in prefix["prefix"].lower():
            raise self._expression("an f-string")
        return self.reader.advance().text

    def _number(self) -> str:
        """Return a number with its sign, possibly complex: `-1`, `1e-3`, `1+2j`."""
        sign = self.reader.advance().text if self.reader.token.is_("-", "+") else ""
        if self.reader.token.kind != "number":
            raise self.reader.expected("a number")
        source = sign + self.reader.advance().text
        after = self.reader.peek()
        if self.reader.token.is_("+", "-") and after.kind == "number" and after.text[-1] in "jJ":
            source += self.reader.advance().text + self.reader.advance().text
        if self.reader.token.is_a("name"):
            raise self.reader.expected("the end of the number")
        if self.reader.token.is_("+", "-", "*", "/", "//", "%", "**"):
            raise self._expression("arithmetic")
        return source


def _hashable(node: Node) -> bool:
    match node:
        case LiteralNode(source):
            return not source.startswith("{")
        case TreeNode("tuple", children):
            return all(map(_hashable, children))
    return False
