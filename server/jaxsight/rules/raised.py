"""An exception that ended a trace, with the user's text where it was raised."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from jaxsight.meshes.divided import ArrayType, array_type
from jaxsight.rules import failure_text
from jaxsight.rules.text.expressions import (
    Expression,
    dotted,
    name_of,
    operands_of,
    parsed,
    parsed_call,
)
from jaxsight.rules.wording import MOST_QUOTED, quoted
from jaxsight.text.inert import words
from jaxsight.wire.observations import Failure


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An exception, and what its innermost frame in the file computes there."""

    failure: Failure
    expression: str
    """The user's source at the innermost frame; empty where it is not known."""
    line: str
    """The line that it begins on."""

    @property
    def message(self) -> str:
        """What the exception says."""
        return self.failure.message

    @property
    def said(self) -> str:
        """The first sentence of what it says, which is quoted."""
        return words(failure_text.first_sentence(self.message))

    def is_a(self, *names: str) -> bool:
        """Whether its class, or one that it derives from, has one of these bare names."""
        return failure_text.is_a(self.failure, *names)

    def quoted(self, fallback: str = "this value", most: int = MOST_QUOTED) -> str:
        """Return the expression in backticks, cut at `most`; else `fallback`."""
        return quoted(self.expression, fallback, most)

    @property
    def node(self) -> Expression | None:
        """The expression's syntax."""
        return parsed(self.expression)

    @property
    def call(self) -> ast.Call | None:
        """The expression, if it is a call."""
        return parsed_call(self.expression)

    @property
    def called(self) -> str:
        """The dotted name of the function that the expression calls, if it has one."""
        return dotted(self.call.func) if self.call is not None else ""

    @property
    def name(self) -> str:
        """The last part of the name of what the expression calls; empty where it is no call."""
        return name_of(self.call) if self.call is not None else ""

    @property
    def arguments(self) -> list[ast.expr]:
        """The positional arguments of the call."""
        return self.call.args if self.call is not None else []

    @property
    def operands(self) -> list[ast.expr]:
        """The operands of the operator or the arguments of the call, in order.

        An array whose method is called comes first, perhaps a module: whether it was seen decides.
        The items of a list or tuple stand for it.
        """
        match self.node:
            case ast.Call(func=function, args=arguments):
                found = [function.value] if isinstance(function, ast.Attribute) else []
                for argument in arguments:
                    if isinstance(argument, ast.List | ast.Tuple):
                        found += argument.elts
                    elif not isinstance(argument, ast.Starred):
                        found.append(argument)
                return found
            case ast.Subscript(value=array):
                return [array]
            case node:
                return operands_of(node)

    @property
    def arrays(self) -> list[tuple[str, ArrayType]]:
        """The operands that are arrays, in order: their sources and types."""
        types = ((ast.unparse(source), self.operand(source)) for source in self.operands)
        return [(source, type) for source, type in types if type is not None]

    def operand(self, source: ast.expr | None) -> ArrayType | None:
        """Return the type of a part of the expression; `None` if it is not known."""
        return array_type(self.operand_text(source))

    def operand_text(self, source: ast.expr | None) -> str:
        """Return the type or value of a part of the expression as hints show it."""
        text = _squeezed(ast.unparse(source)) if source is not None else ""
        return next((type for each, type in self.failure.operands if _squeezed(each) == text), "")

    def is_key(self, source: ast.expr | None) -> bool:
        """Whether a part of the expression is a typed PRNG key, or an array of keys."""
        return self.operand_text(source).startswith("key<")

    def rank(self, source: ast.expr) -> int | None:
        """Return how many axes a part of the expression has, 0 for a number; `None` if unknown."""
        text = self.operand_text(source)
        array = re.fullmatch(r"[\w<>]+\[([\d,]*)\]", text)
        if array is not None:
            return len(re.findall(r"\d+", array[1]))
        number = re.fullmatch(r"-?[\d.]+(?:e[-+]?\d+)?", text or ast.unparse(source))
        return 0 if number is not None else None


def _squeezed(source: str) -> str:
    return "".join(source.split()).replace("'", '"')
