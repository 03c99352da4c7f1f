"""A jaxpr as a graph in the language DOT, for Graphviz: equations, and the values between them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Jaxpr
from jaxsight_source.compat.staging import is_dropped, is_literal, open_jaxpr


@dataclass(frozen=True, slots=True)
class DotLine:
    """A line of a graph; that of an equation's box has the equation, and its path in the jaxpr."""

    text: str
    path: str = ""
    equation: Equation | None = None


def dot(jaxpr: object, name: str) -> list[DotLine]:
    """Return a graph: a box for each equation, an arrow for each value, with its type.

    Equations of inner jaxprs are in a frame of their own, below the equation that has them.
    """
    begin = [f"digraph {json.dumps(name)} {{", '  node [shape=box, fontname="monospace"];']
    inside = _Drawing().program(open_jaxpr(jaxpr), "  ", "")
    return [*map(DotLine, begin), *inside, DotLine("}")]


@dataclass(slots=True)
class _Drawing:
    numbers: Iterator[int] = field(default_factory=itertools.count)
    nodes: dict[int, str] = field(default_factory=dict)
    """The node that each variable comes from, by the variable's id."""

    def program(self, jaxpr: Jaxpr, indent: str, prefix: str) -> Iterator[DotLine]:
        for words, variables in (("constant", jaxpr.constvars), ("input", jaxpr.invars)):
            for variable in variables:
                node = self.nodes[id(variable)] = self.new()
                label = _label(f"{words} {avals.text(variable.aval)}")
                yield DotLine(f"{indent}{node} [shape=ellipse, label={label}];")
        for index, equation in enumerate(jaxpr.eqns):
            yield from self.equation(equation, indent, f"{prefix}{index}")
        for number, atom in enumerate(jaxpr.outvars):
            node = self.new()
            label = f"result {number} {avals.text(atom.aval)}"
            yield DotLine(f"{indent}{node} [shape=ellipse, label={_label(label)}];")
            yield from self.arrow(atom, node, indent)

    def equation(self, equation: Equation, indent: str, path: str) -> Iterator[DotLine]:
        node, name = self.new(), equation.primitive.name
        yield DotLine(f"{indent}{node} [label={_label(name)}];", path, equation)
        for atom in equation.invars:
            yield from self.arrow(atom, node, indent)
        for part in inner_jaxprs(equation):
            yield DotLine(f"{indent}subgraph cluster_{self.new()} {{")
            yield DotLine(f"{indent}  label={_label(f'{name} {part.name}')};")
            yield from self.program(part.jaxpr, f"{indent}  ", f"{path}/{part.name}/")
            yield DotLine(f"{indent}}}")
        for variable in equation.outvars:
            if not is_dropped(variable):
                self.nodes[id(variable)] = node

    def arrow(self, atom: Atom, node: str, indent: str) -> Iterator[DotLine]:
        text = avals.text(atom.aval)
        if is_literal(atom):
            begin = self.new()
            label = _label(f"{atom.val} {text}")
            yield DotLine(f"{indent}{begin} [shape=plaintext, label={label}];")
            yield DotLine(f"{indent}{begin} -> {node};")
            return
        yield DotLine(f"{indent}{self.nodes[id(atom)]} -> {node} [label={_label(text)}];")

    def new(self) -> str:
        return f"n{next(self.numbers)}"


def _label(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
