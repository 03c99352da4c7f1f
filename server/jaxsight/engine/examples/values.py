"""Reads an example: an array, a key, a literal, or a display of such; stops at the first wrong token.

A hand-written descent rather than a generated parser: what was expected is said in the words of example inputs
("a scalar is `f32[]`", "a Python expression comes after `=`"), which a grammar does not know.
"""

from __future__ import annotations

import ast

from jaxsight.engine.examples.dtypes import BY_NAME, KEY_IMPLEMENTATIONS, suggestion
from jaxsight.engine.examples.notation import Array, Key, Literal, Node, Tree, is_literal, show
from jaxsight.engine.examples.problems import (
    CONFLICT,
    MALFORMED,
    UNKNOWN_DTYPE,
    Malformed,
    nearest,
    problem,
)
from jaxsight.engine.examples.shapes import read_shape
from jaxsight.engine.examples.source import Source
from jaxsight.engine.examples.tokens import DEEPEST, STRING, Reader, Token


def read(text: str) -> Node:
    """The example that a whole text is; raises `Malformed`."""
    reader = Reader(Source(text))
    node = read_value(reader)
    reader.finish()
    return node


def read_value(reader: Reader, subject: str = "x") -> Node:
    """The example that comes next; `subject` is the argument that it is for, for messages."""
    return _Values(reader, subject).value()


class _Values:
    def __init__(self, reader: Reader, subject: str) -> None:
        self.reader = reader
        self.subject = subject
        self._depth = 0

    def value(self) -> Node:
        """One example: an array, a key, a literal, or a display of such."""
        token = self.reader.token
        match token.kind:
            case "operator" if token.text in ("{", "[", "("):
                return self._display()
            case "operator" if token.text == "~":
                self.reader.advance()
                if self.reader.token.kind != "name" or self.reader.token.text in (
                    "key",
                    "True",
                    "False",
                    "None",
                ):
                    raise self.reader.expected("a dtype after `~`, such as `~f32[]`")
                return self._array(token.start, weak=True)
            case "operator" if token.text in ("-", "+", "..."):
                return self._literal()
            case "operator" if token.text in ("'", '"'):
                raise self.reader.fail("this string is not closed")
            case "string" | "number":
                return self._literal()
            case "name" if token.text in ("True", "False", "None"):
                return self._literal()
            case "name" if token.text == "key" and self.reader.peek().is_("<", "["):
                return self._key()
            case "name":
                return self._array(token.start, weak=False)
            case _:
                raise self.reader.expected(
                    "an example such as `f32[8, 16]`, a pytree of them, or a literal"
                )

    def _array(self, start: int, *, weak: bool) -> Array:
        token = self.reader.token
        after = self.reader.peek()
        if token.text not in BY_NAME and not after.is_("["):
            raise self._not_a_value(token, after)
        if token.text not in BY_NAME:
            near = suggestion(token.text)
            end = (
                f": did you mean `{near}`?"
                if near
                else "; jaxprs print `f32`, `bf16`, `i32`, `bool`, …"
            )
            raise self.reader.fail(f"`{token.text}` is no dtype{end}", code=UNKNOWN_DTYPE)
        self.reader.advance()
        if not self.reader.token.is_("["):
            raise self.reader.expected(
                f"`[` and a shape after `{token.text}` (a scalar is `{token.text}[]`)"
            )
        shape = read_shape(self.reader)
        return Array(BY_NAME[token.text], shape, weak, self.reader.range_from(start))

    def _not_a_value(self, token: Token, after: Token) -> Malformed:
        name = token.text
        if after.is_("(", "."):
            return self.reader.fail(
                f"`{name}` begins a Python expression, which comes after `=`: write `{self.subject} = {name}…`"
            )
        near = suggestion(name)
        if near is not None:
            return self.reader.fail(
                f"`{name}` is no dtype: did you mean `{near}[…]`?", code=UNKNOWN_DTYPE
            )
        return self.reader.fail(
            f"expected an example such as `f32[8, 16]`, found `{name}`"
            f" (a string is `'{name}'`, a Python expression `{self.subject} = {name}`)"
        )

    def _key(self) -> Key:
        start = self.reader.advance().start
        self.reader.take("<", "`<` and a key implementation after `key`, as in `key<fry>[]`")
        name = self.reader.token
        if name.kind != "name":
            raise self.reader.expected("a key implementation: `fry`, `rbg` or `urbg`")
        if name.text not in KEY_IMPLEMENTATIONS:
            near = nearest(name.text, KEY_IMPLEMENTATIONS)
            end = f"did you mean `{near}`?" if near else "JAX has `fry`, `rbg` and `urbg`"
            raise self.reader.fail(
                f"`{name.text}` is no key implementation: {end}", code=UNKNOWN_DTYPE
            )
        self.reader.advance()
        self.reader.take(">")
        if not self.reader.token.is_("["):
            raise self.reader.expected(f"`[` and a shape (one key is `key<{name.text}>[]`)")
        shape = read_shape(self.reader)
        return Key(KEY_IMPLEMENTATIONS[name.text], shape, self.reader.range_from(start))

    def _display(self) -> Node:
        opening = self.reader.advance()
        closing = {"{": "}", "[": "]", "(": ")"}[opening.text]
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.reader.fail(f"brackets nest deeper than {DEEPEST}", opening)
        keys: list[Node] = []
        children: list[Node] = []
        mapping = False
        comma = False
        while not self.reader.token.is_(closing):
            self.reader.check_closed(opening, closing)
            child = self.value()
            if opening.text == "{":
                if not children:
                    mapping = self.reader.token.is_(":")
                if mapping:
                    keys.append(self._dict_key(child, keys))
                    self.reader.take(":", "`:` after a dict's key")
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
            comma = self.reader.token.is_(",")
            if comma:
                self.reader.advance()
            elif not self.reader.token.is_(closing):
                self.reader.check_closed(opening, closing)
                raise self.reader.expected(f"`,` or `{closing}`")
        self.reader.advance()
        self._depth -= 1
        range = self.reader.range_from(opening.start)
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

    def _dict_key(self, key: Node, before: list[Node]) -> Node:
        if not _hashable(key):
            raise Malformed(
                problem(MALFORMED, key.range, "a dict's key is a literal, such as `'w'` or `0`")
            )
        if key in before:
            raise Malformed(problem(CONFLICT, key.range, f"the key {show(key)} is there twice"))
        return key

    def _literal(self) -> Literal:
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
            ast.literal_eval(source)
        except (SyntaxError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise Malformed(
                problem(
                    MALFORMED,
                    self.reader.range_from(first.start),
                    f"not a Python literal: {reason}",
                )
            ) from error
        return Literal(source, self.reader.range_from(first.start))

    def _string(self) -> str:
        token = self.reader.token
        prefix = STRING.match(token.text)
        if prefix is not None and "f" in prefix["prefix"].lower():
            raise self.reader.fail(f"an f-string is an expression: write `{self.subject} = …`")
        return self.reader.advance().text

    def _number(self) -> str:
        """A number with its sign, possibly complex: `-1`, `1e-3`, `1+2j`."""
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
            raise self.reader.fail(f"arithmetic is an expression: write `{self.subject} = …`")
        return source


def _hashable(node: Node) -> bool:
    match node:
        case Literal(source):
            return not source.startswith("{")
        case Tree("tuple", children):
            return all(map(_hashable, children))
        case _:
            return False
