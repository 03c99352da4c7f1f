"""Reads the notation from a stretch of text, token by token, and stops at the first wrong one.

A hand-written descent rather than a generated parser: what was expected is said in the words of example inputs
("a scalar is `f32[]`", "a Python expression comes after `=`"), which a grammar does not know.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from jaxsight.engine.examples.dtypes import BY_NAME, KEY_IMPLEMENTATIONS, suggestion
from jaxsight.engine.examples.notation import (
    Arithmetic,
    Array,
    Key,
    Literal,
    Named,
    Node,
    Number,
    Operator,
    Size,
    Tree,
    is_literal,
    show,
)
from jaxsight.engine.examples.problems import (
    CONFLICT,
    MALFORMED,
    UNKNOWN_DTYPE,
    UNKNOWN_SIZE,
    Malformed,
    nearest,
    problem,
)
from jaxsight.engine.examples.sizes import LARGEST
from jaxsight.engine.examples.source import Source
from jaxsight.engine.text import Range

DEEPEST = 60
"""How deep brackets may nest: more is a slip, and would exhaust the stack."""

BLANK = re.compile(r"(?:[ \t\f\r\n]|\\\r?\n|#[^\r\n]*)*")
STRING = re.compile(
    r"(?P<prefix>[rRbBuUfF]{0,2})"
    r"(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\""
    r"|'(?!'')(?:[^'\\\r\n]|\\(?:\r\n|.))*'|\"(?!\"\")(?:[^\"\\\r\n]|\\(?:\r\n|.))*\")",
    re.DOTALL,
)
_NUMBER = re.compile(
    r"0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+"
    r"|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?[jJ]?"
)
_NAME = re.compile(r"[^\W\d]\w*")
_OPERATOR = re.compile(r"\.\.\.|//|\*\*|<=|>=|==|!=|.", re.DOTALL)

Operand = Callable[[], Size]
_OPERATORS: dict[str, Operator] = {"+": "+", "-": "-", "*": "*", "//": "//", "%": "%"}
TokenKind = OneOf["string", "number", "name", "operator", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    start: int
    end: int

    def is_a(self, kind: TokenKind) -> bool:
        return self.kind == kind

    def is_(self, *operators: str) -> bool:
        return self.kind == "operator" and self.text in operators


class Reader:
    """Reads from `start` to `end` of a source; `subject` is the argument that the value is for, for messages."""

    def __init__(
        self, source: Source, start: int = 0, end: int | None = None, subject: str = "x"
    ) -> None:
        self.source = source
        self.subject = subject
        self._end = len(source.text) if end is None else end
        self._last = start
        self._depth = 0
        self._operations = 0
        self.token = self._scan(start)

    # Tokens.

    def advance(self) -> Token:
        token = self.token
        self._last = token.end
        self.token = self._scan(token.end)
        return token

    def peek(self) -> Token:
        """The token after the current one."""
        return self._scan(self.token.end)

    def range_from(self, start: int) -> Range:
        """From an offset to the end of what was read."""
        return self.source.range(start, self._last)

    def token_range(self, token: Token) -> Range:
        return self.source.range(token.start, token.end)

    def fail(self, message: str, token: Token | None = None, code: str = MALFORMED) -> Malformed:
        return Malformed(problem(code, self.token_range(token or self.token), message))

    def expected(self, what: str) -> Malformed:
        """The failure at the current token, which is named beside what was expected."""
        return self.fail(f"expected {what}, found {found(self.token)}")

    def take(self, operator: str, what: str | None = None) -> Token:
        if not self.token.is_(operator):
            raise self.expected(what or f"`{operator}`")
        return self.advance()

    def finish(self, what: str = "the end of the line") -> None:
        """Fails unless all was read."""
        if self.token.kind != "end":
            raise self.expected(what)

    def _scan(self, offset: int) -> Token:
        text, end = self.source.text, self._end
        blank = BLANK.match(text, offset, end)
        offset = blank.end() if blank else offset
        if offset >= end:
            # An empty range past the end would be drawn nowhere: stand right behind what was read.
            return Token("end", "", self._last, self._last)
        kinds: tuple[tuple[TokenKind, re.Pattern[str]], ...] = (
            ("string", STRING),
            ("number", _NUMBER),
            ("name", _NAME),
            ("operator", _OPERATOR),
        )
        for kind, pattern in kinds:
            if token := pattern.match(text, offset, end):
                return Token(kind, token[0], offset, token.end())
        raise AssertionError("an operator is any character")

    # Values.

    def value(self) -> Node:
        """One example: an array, a key, a literal, or a display of such."""
        token = self.token
        match token.kind:
            case "operator" if token.text in ("{", "[", "("):
                return self._display()
            case "operator" if token.text == "~":
                self.advance()
                if self.token.kind != "name" or self.token.text in ("key", "True", "False", "None"):
                    raise self.expected("a dtype after `~`, such as `~f32[]`")
                return self._array(token.start, weak=True)
            case "operator" if token.text in ("-", "+", "..."):
                return self._literal()
            case "operator" if token.text in ("'", '"'):
                raise self.fail("this string is not closed")
            case "string" | "number":
                return self._literal()
            case "name" if token.text in ("True", "False", "None"):
                return self._literal()
            case "name" if token.text == "key" and self.peek().is_("<", "["):
                return self._key()
            case "name":
                return self._array(token.start, weak=False)
            case _:
                raise self.expected(
                    "an example such as `f32[8, 16]`, a pytree of them, or a literal"
                )

    def _array(self, start: int, *, weak: bool) -> Array:
        token = self.token
        after = self.peek()
        if token.text not in BY_NAME and not after.is_("["):
            raise self._not_a_value(token, after)
        if token.text not in BY_NAME:
            near = suggestion(token.text)
            end = (
                f": did you mean `{near}`?"
                if near
                else "; jaxprs print `f32`, `bf16`, `i32`, `bool`, …"
            )
            raise self.fail(f"`{token.text}` is no dtype{end}", code=UNKNOWN_DTYPE)
        self.advance()
        if not self.token.is_("["):
            raise self.expected(
                f"`[` and a shape after `{token.text}` (a scalar is `{token.text}[]`)"
            )
        shape = self._shape()
        return Array(BY_NAME[token.text], shape, weak, self.range_from(start))

    def _not_a_value(self, token: Token, after: Token) -> Malformed:
        name = token.text
        if after.is_("(", "."):
            return self.fail(
                f"`{name}` begins a Python expression, which comes after `=`: write `{self.subject} = {name}…`"
            )
        near = suggestion(name)
        if near is not None:
            return self.fail(f"`{name}` is no dtype: did you mean `{near}[…]`?", code=UNKNOWN_DTYPE)
        return self.fail(
            f"expected an example such as `f32[8, 16]`, found `{name}`"
            f" (a string is `'{name}'`, a Python expression `{self.subject} = {name}`)"
        )

    def _key(self) -> Key:
        start = self.advance().start
        self.take("<", "`<` and a key implementation after `key`, as in `key<fry>[]`")
        name = self.token
        if name.kind != "name":
            raise self.expected("a key implementation: `fry`, `rbg` or `urbg`")
        if name.text not in KEY_IMPLEMENTATIONS:
            near = nearest(name.text, KEY_IMPLEMENTATIONS)
            end = f"did you mean `{near}`?" if near else "JAX has `fry`, `rbg` and `urbg`"
            raise self.fail(f"`{name.text}` is no key implementation: {end}", code=UNKNOWN_DTYPE)
        self.advance()
        self.take(">")
        if not self.token.is_("["):
            raise self.expected(f"`[` and a shape (one key is `key<{name.text}>[]`)")
        shape = self._shape()
        return Key(KEY_IMPLEMENTATIONS[name.text], shape, self.range_from(start))

    def _display(self) -> Node:
        opening = self.advance()
        closing = {"{": "}", "[": "]", "(": ")"}[opening.text]
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.fail(f"brackets nest deeper than {DEEPEST}", opening)
        keys: list[Node] = []
        children: list[Node] = []
        mapping = False
        comma = False
        while not self.token.is_(closing):
            self._not_at_end(opening, closing)
            child = self.value()
            if opening.text == "{":
                if not children:
                    mapping = self.token.is_(":")
                if mapping:
                    keys.append(self._dict_key(child, keys))
                    self.take(":", "`:` after a dict's key")
                    child = self.value()
                elif not is_literal(child):
                    raise Malformed(
                        problem(
                            MALFORMED,
                            child.range,
                            "a dict's item is `key: example`; a set holds literals",
                        )
                    )
            children.append(child)
            comma = self.token.is_(",")
            if comma:
                self.advance()
            elif not self.token.is_(closing):
                self._not_at_end(opening, closing)
                raise self.expected(f"`,` or `{closing}`")
        self.advance()
        self._depth -= 1
        range = self.range_from(opening.start)
        match opening.text:
            case "[":
                return Tree("list", tuple(children), range=range)
            case "(" if len(children) == 1 and not comma:
                return children[0]
            case "(":
                return Tree("tuple", tuple(children), range=range)
            case _ if mapping or not children:
                return Tree("dict", tuple(children), tuple(map(show, keys)), range)
            case _:
                return Literal("{" + ", ".join(map(show, children)) + "}", range)

    def _not_at_end(self, opening: Token, closing: str) -> None:
        if self.token.kind == "end":
            raise self.fail(f"`{opening.text}` is not closed: expected `{closing}`", opening)

    def _dict_key(self, key: Node, before: list[Node]) -> Node:
        if not _hashable(key):
            raise Malformed(
                problem(MALFORMED, key.range, "a dict's key is a literal, such as `'w'` or `0`")
            )
        if key in before:
            raise Malformed(problem(CONFLICT, key.range, f"the key {show(key)} is there twice"))
        return key

    def _literal(self) -> Literal:
        first = self.token
        match first.kind:
            case "string":
                parts = [self._string()]
                while self.token.kind == "string":
                    parts.append(self._string())
                source = " ".join(parts)
            case "name":
                source = self.advance().text
            case "operator" if first.text == "...":
                source = self.advance().text
            case _:
                source = self._number()
        try:
            ast.literal_eval(source)
        except (SyntaxError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise Malformed(
                problem(MALFORMED, self.range_from(first.start), f"not a Python literal: {reason}")
            ) from error
        return Literal(source, self.range_from(first.start))

    def _string(self) -> str:
        token = self.token
        prefix = STRING.match(token.text)
        if prefix is not None and "f" in prefix["prefix"].lower():
            raise self.fail(f"an f-string is an expression: write `{self.subject} = …`")
        return self.advance().text

    def _number(self) -> str:
        """A number with its sign, possibly complex: `-1`, `1e-3`, `1+2j`."""
        sign = self.advance().text if self.token.is_("-", "+") else ""
        if self.token.kind != "number":
            raise self.expected("a number")
        source = sign + self.advance().text
        after = self.peek()
        if self.token.is_("+", "-") and after.kind == "number" and after.text[-1] in "jJ":
            source += self.advance().text + self.advance().text
        if self.token.is_a("name"):
            raise self.expected("the end of the number")
        if self.token.is_("+", "-", "*", "/", "//", "%", "**"):
            raise self.fail(f"arithmetic is an expression: write `{self.subject} = …`")
        return source

    # Sizes.

    def _shape(self) -> tuple[Size, ...]:
        opening = self.take("[")
        sizes: list[Size] = []
        while not self.token.is_("]"):
            self._not_at_end(opening, "]")
            sizes.append(self.size())
            if self.token.is_(","):
                self.advance()
            elif not self.token.is_("]"):
                self._not_at_end(opening, "]")
                raise self.expected("`,` or `]`")
        self.advance()
        return tuple(sizes)

    def size(self) -> Size:
        """A size: a number, a name, or arithmetic on them."""
        self._operations = 0
        return self._sum()

    def _sum(self) -> Size:
        start = self.token.start
        left = self._product()
        while self.token.is_("+", "-"):
            left = self._arithmetic(start, left, self._product)
        return left

    def _product(self) -> Size:
        start = self.token.start
        left = self._factor()
        while self.token.is_("*", "//", "%"):
            left = self._arithmetic(start, left, self._factor)
        if self.token.is_("/", "**"):
            instead = "`//` divides sizes" if self.token.text == "/" else "sizes know + - * // %"
            raise self.fail(f"`{self.token.text}` is not for sizes: {instead}")
        return left

    def _arithmetic(self, start: int, left: Size, operand: Operand) -> Size:
        operator = _OPERATORS[self.advance().text]
        self._operate()
        right = operand()
        return Arithmetic(operator, left, right, self.range_from(start))

    def _operate(self) -> None:
        self._operations += 1
        if self._operations > DEEPEST:
            raise self.fail("this size is too long")

    def _factor(self) -> Size:
        token = self.token
        match token.kind:
            case "number":
                self.advance()
                try:
                    value = int(token.text, 0)
                except ValueError as error:
                    raise self.fail("a size is a whole number", token) from error
                if value > LARGEST:
                    raise self.fail("this is too large for a size", token, UNKNOWN_SIZE)
                return Number(value, self.token_range(token))
            case "name":
                self.advance()
                return Named(token.text, self.token_range(token))
            case "operator" if token.text == "(":
                self.advance()
                self._operate()
                inner = self._sum()
                self._not_at_end(token, ")")
                self.take(")")
                return inner
            case "operator" if token.text == "-":
                raise self.fail("a size is at least 0")
            case "operator" if token.text in ("...", ":", "?"):
                raise self.fail(
                    f"`{token.text}` is no size: an example has a number or a name there"
                )
            case _:
                raise self.expected("a size: a number or a name")


def found(token: Token) -> str:
    """How a message names a token."""
    return "the end of the line" if token.kind == "end" else f"`{token.text}`"


def _hashable(node: Node) -> bool:
    match node:
        case Literal(source):
            return not source.startswith("{")
        case Tree("tuple", children):
            return all(map(_hashable, children))
        case _:
            return False


def read(text: str) -> Node:
    """The example that a whole text is; raises `Malformed`."""
    reader = Reader(Source(text))
    node = reader.value()
    reader.finish()
    return node
