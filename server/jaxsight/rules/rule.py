"""What a rule declares of itself: its code and name, and what it looks at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.statements import Statement
from jaxsight.rules.violation import ModuleViolation, NodeViolation, Violation
from jaxsight.wire.observations import Failure

PAGES = "https://jaxsight.readthedocs.io/en/latest/rules/"

FindInProgram = Callable[[ProgramView], Iterator[Violation]]
Explain = Callable[[Failure, str, str], Violation | None]
FindInText = Callable[[ast.Module], Iterator[NodeViolation]]
FindInModule = Callable[[Sequence[Statement]], Iterator[ModuleViolation]]


@dataclass(eq=False, slots=True)
class Rule:
    """A diagnostic rule, declared in the `rule.py` of its folder.

    The decorators say what the rule looks at: the syntax of a statement, a traced program, the
    kernels that a target makes of it, or an exception that ended a trace. A rule that uses none of
    them is reported by the engine itself: wrong settings, example inputs that cannot be read.
    """

    code: str
    """Stable: a code never changes its meaning."""
    name: str
    """In kebab case. Accepted wherever the code is."""
    summary: str
    """One line for the lists of rules."""
    severity: str = "error"
    """`error`, `warning`, `information` or `hint`."""
    on: bool = True
    """Whether it is reported unless `select` says otherwise."""
    once_a_line: bool = False
    """Whether it speaks of the program as a whole, so that one finding a line is enough."""
    always: bool = True
    """Whether every check looks for it. Otherwise a comment that ignores it is never unused."""
    unless: str = ""
    """The code of a rule that says the same with certainty: on its lines this one is silent."""
    without_inputs: bool = False
    """Whether what it finds depends neither on sizes nor on values of inputs.

    Then it is also reported where inputs are assumed.
    """
    word: str = ""
    """What a statement must contain to be looked at in text, or the module for `finds_in_module`.

    Others are not parsed for the rule.
    """
    in_text: FindInText | None = field(default=None, init=False)
    in_module: FindInModule | None = field(default=None, init=False)
    in_program: FindInProgram | None = field(default=None, init=False)
    in_kernels: FindInProgram | None = field(default=None, init=False)
    explain: Explain | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        """The rule's page."""
        return f"{PAGES}{self.code}/"

    def finds_in_text(self, find: FindInText) -> FindInText:
        """Look at the syntax of each top-level statement; nothing is traced."""
        self.in_text = find
        return find

    def finds_in_module(self, find: FindInModule) -> FindInModule:
        """Look at the syntax of all top-level statements together; nothing is traced."""
        self.in_module = find
        return find

    def finds_in_program(self, find: FindInProgram) -> FindInProgram:
        """Look at each traced function; nothing is compiled."""
        self.in_program = find
        return find

    def finds_in_kernels(self, find: FindInProgram) -> FindInProgram:
        """Look at each traced function with its kernels on a target."""
        self.in_kernels, self.once_a_line = find, True
        return find

    def explains(self, explain: Explain) -> Explain:
        """Recognize exceptions of traces.

        The function takes the failure, the user's expression at the innermost frame and the line
        that it begins on, both empty where they are not known. It returns `None` for an exception
        that is another rule's, or nobody's.
        """
        self.explain = explain
        return explain
