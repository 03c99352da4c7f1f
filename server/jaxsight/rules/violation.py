"""What rules yield: violations, at equations of a program or at nodes of a syntax tree.

`features/findings/run_rules.py` finds their places in the text, which makes them findings.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from jaxsight.wire.chunks import Span

SeverityName = Literal["error", "warning", "information", "hint"]


@dataclass(frozen=True, slots=True)
class Violation:
    """What a rule reports of a traced program, its kernels, or an exception."""

    message: str
    """What is wrong: one clause of at most 100 characters, without a full stop."""
    at: str = ""
    """The path of the equation that it is about; empty for the whole function."""
    help: str = ""
    """What to do, in the imperative."""
    notes: tuple[str, ...] = ()
    """Facts that explain: why, how it was found out, what a figure is based on."""
    data: object = None
    """Figures and names for the rule's fix: a number, or a frozen dataclass of the rule's own."""
    span: Span | None = None
    """In place of `at`, where something other than an equation is meant."""
    related: tuple[tuple[str, str], ...] = ()
    """Other equations that it speaks of, each with a word on them."""
    severity: SeverityName | Literal[""] = ""
    """In place of the rule's own."""
    url: str = ""
    """A page that says more, in place of the rule's own."""


@dataclass(frozen=True, slots=True)
class NodeViolation:
    """What a rule reports of the syntax of a statement, at a node."""

    node: ast.expr | ast.alias
    message: str
    help: str = ""
    notes: tuple[str, ...] = ()
    data: object = None
    severity: SeverityName | Literal[""] = ""
    """In place of the rule's own."""


@dataclass(frozen=True, slots=True)
class ModuleViolation:
    """What a rule reports of the syntax of a module."""

    statement: int
    """The number of the top-level statement that it is in."""
    violation: NodeViolation
