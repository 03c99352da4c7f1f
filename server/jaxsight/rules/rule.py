"""What a rule is: its code and name, what it looks at, what it yields, and how that is fixed.

`features/findings/run_rules.py` finds the places of violations in the text, which makes them
findings; `features/fixes/` proves what fixes propose.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.recompilation import Miss
from jaxsight.rules.text.expressions import FunctionNode
from jaxsight.rules.text.statements import Statement
from jaxsight.wire.chunks import Span
from jaxsight.wire.observations import Failure

PAGES = "https://jaxsight.readthedocs.io/en/latest/rules/"

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
    """Figures and names for the rule's fix: a value, or a frozen dataclass of the rule's own."""
    span: Span | None = None
    """In place of `at`, where something other than an equation is meant."""
    related: tuple[tuple[str, str], ...] = ()
    """Other equations that it speaks of, each with a word on them. Those at its own place are not
    shown.
    """
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


FindInProgram = Callable[[ProgramView], Iterator[Violation | None]]
"""Yields what it finds at each equation, perhaps nothing; the first one at a place is reported."""
FindInText = Callable[[ast.Module], Iterator[NodeViolation | None]]
FindInModule = Callable[[Sequence[Statement]], Iterator[ModuleViolation]]
FindInAnnotations = Callable[["AnnotatedFunction"], Iterator[NodeViolation]]
Explain = Callable[[RaisedError], Violation | None]
ExplainAny = Callable[[Failure], Violation]
ExplainProcesses = Callable[["DifferingPrograms"], "NodeViolation | Violation"]
ExplainMisses = Callable[[str, Sequence[Miss]], Iterator[Violation]]


class CompileTimes(Enum):
    """What a rule about kernels is told of a compile besides its kernels."""

    FOLDING = "how long it takes with constant folding and without"
    SLOWNESS = "how long it takes, if that is long, or if it does not end"


@dataclass(frozen=True, slots=True)
class AnnotatedFunction:
    """A traced function with jaxtyping annotations."""

    definition: FunctionNode
    parameters: Mapping[str, str]
    """The traced types of parameters by name."""
    outputs: Sequence[str]
    """The traced type of the result, or those of its items for a tuple."""
    seen: Callable[[ast.expr], str]
    """Returns the type of an assignment target, empty if it had none or several."""
    sizes: Mapping[str, int]
    """The sizes of the example inputs by name."""
    named: Callable[[str], str]
    """Returns a traced type with names of sizes."""


class Decides(Enum):
    """What decides which program of a function a process traces."""

    INDEX = "the number of the process"
    HASH_SEED = "the hash seed, so the order of sets"
    RUN = "something else that differs between two runs"


@dataclass(frozen=True, slots=True)
class DifferingPrograms:
    """Two processes of a job that trace different programs of a function."""

    decides: Decides
    process: int
    """The process whose program differs from that of process 0."""
    processes: int
    """The number of processes of the job."""
    primitive: str
    """That of the first equation that differs; empty if only captured arrays do."""
    expression: str
    """The user's text of that equation; empty if it has no place in the file."""
    tree: ast.AST
    """The syntax tree of the file."""
    at: tuple[int, int]
    """Where the expression begins in it: a line (from 1) and a column in bytes."""


class Proof(Enum):
    """How a changed program is shown to be better than the original."""

    GONE = "the rule has fewer findings"
    FEWER = "less is launched, stored or moved, with no more findings of the rule"
    SMALLER = "temporaries are smaller"
    WRITTEN = "the text has fewer findings, and is the same but for waits; nothing is traced"


LAUNCHED, STORED, MOVED, TIME = "launched", "stored", "moved", "time"
ALL = frozenset({LAUNCHED, STORED, MOVED, TIME})
"""Figures of a target."""

Propose = Callable[..., Iterator[Any]]
"""Yields `Candidate`s, the best first.

It takes a `FixContext` and, if it has a second parameter, the data of the finding: it is not called
for findings without any.
"""


@dataclass(frozen=True, slots=True)
class Remedy:
    """How findings of a rule are fixed."""

    summary: str
    """The proposed code, for the table of fixes."""
    propose: Propose
    proof: Proof = Proof.GONE
    timed: bool = False
    """Whether the title also shows the compile times of both forms."""
    trades: frozenset[str] = frozenset()
    """Figures of the target that may get worse in exchange; the title shows both.

    A change that makes another figure worse is dropped.
    """
    costs_any: bool = False
    """Whether the change may take any time: it fixes an error, or a cost of seconds.

    Other changes may take at most twice as long as the original.
    """


@dataclass(eq=False, slots=True)
class Rule:
    """A diagnostic rule, declared in the `rule.py` of its folder.

    The decorators say what the rule looks at: the syntax of a statement, a traced program, the
    kernels that a target makes of it, or an exception that ended a trace. A rule that uses none of
    them (`is_own`) is reported by the engine itself: wrong settings, example inputs that cannot be
    read. No other module knows any other rule.
    """

    module: str
    """That declares it, whose folder says its code and name; for the engine's own the folder."""
    summary: str
    """One line for the lists of rules."""
    severity: SeverityName = "error"
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
    of_whole_program: bool = False
    """Whether it is about what goes into or comes out of a program, which a called function alone
    is not.
    """
    needs_value: bool = False
    """Whether it reports that Python needs a value that is traced."""
    measures: CompileTimes | None = None
    """What has to be measured for it."""
    failures: tuple[str, ...] = ()
    """Types of failures of example inputs whose messages say it all; their note is the help."""
    word: str = ""
    """What a statement must contain to be looked at in text, or the module for `finds_in_module`.

    Others are not parsed for the rule.
    """
    in_module: FindInModule | None = field(default=None, init=False)
    in_program: FindInProgram | None = field(default=None, init=False)
    in_kernels: FindInProgram | None = field(default=None, init=False)
    in_annotations: FindInAnnotations | None = field(default=None, init=False)
    explain: Explain | None = field(default=None, init=False)
    explain_inputs: ExplainAny | None = field(default=None, init=False)
    explain_any: ExplainAny | None = field(default=None, init=False)
    explain_processes: ExplainProcesses | None = field(default=None, init=False)
    explain_misses: ExplainMisses | None = field(default=None, init=False)
    remedy: Remedy | None = field(default=None, init=False)

    @property
    def folder(self) -> str:
        """The name of its folder, `jx207_short_loop`."""
        return self.module.removesuffix(".rule").rpartition(".")[2]

    @property
    def code(self) -> str:
        """`JX207`. Stable: a code never changes its meaning."""
        return self.folder.partition("_")[0].upper()

    @property
    def name(self) -> str:
        """`short-loop`. Accepted wherever the code is."""
        return self.folder.partition("_")[2].replace("_", "-")

    @property
    def is_own(self) -> bool:
        """Whether the engine itself reports it, and names it."""
        finds = (self.in_module, self.in_program, self.in_kernels)
        explains = (self.explain, self.explain_any, self.explain_misses)
        return not any((*finds, *explains, self.in_annotations, self.explain_processes))

    @property
    def url(self) -> str:
        """The rule's page."""
        return f"{PAGES}{self.code}/"

    def finds_in_text(self, find: FindInText) -> FindInText:
        """Look at the syntax of each top-level statement; nothing is traced."""

        def read(tree: ast.Module) -> list[NodeViolation]:
            return [violation for violation in find(tree) if violation is not None]

        def find_in_each(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
            for number, statement in enumerate(statements):
                if self.word in statement.text:
                    yield from (ModuleViolation(number, each) for each in statement.read(read))

        self.in_module = find_in_each
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

        The function returns `None` for an exception that is another rule's, or nobody's.
        """
        self.explain = explain
        return explain

    def finds_in_annotations(self, find: FindInAnnotations) -> FindInAnnotations:
        """Compare the annotations of each traced function with its trace."""
        self.in_annotations = find
        return find

    def explains_inputs(self, explain: ExplainAny) -> ExplainAny:
        """Explain the exceptions of example inputs, before the function is called."""
        self.explain_inputs = explain
        return explain

    def explains_any(self, explain: ExplainAny) -> ExplainAny:
        """Explain the exceptions that no other rule recognizes."""
        self.explain_any = explain
        return explain

    def explains_processes(self, explain: ExplainProcesses) -> ExplainProcesses:
        """Explain that processes of a job trace different programs of a function.

        The function returns a violation at a node of the file's tree, or one that has no place of
        its own and is at the expression.
        """
        self.explain_processes = explain
        return explain

    def explains_misses(self, explain: ExplainMisses) -> ExplainMisses:
        """Explain why a call of a function was traced again in a run of the user's program."""
        self.explain_misses = explain
        return explain

    def fixes(
        self,
        summary: str,
        proof: Proof = Proof.GONE,
        *,
        timed: bool = False,
        trades: frozenset[str] = frozenset(),
        costs_any: bool = False,
    ) -> Callable[[Propose], Propose]:
        """Propose edits that fix the findings, as `Remedy` says."""

        def declare(propose: Propose) -> Propose:
            self.remedy = Remedy(summary, propose, proof, timed, trades, costs_any)
            return propose

        return declare

    def corrects(self, summary: str) -> Callable[[Propose], Propose]:
        """Propose edits whose results are right where they were not, for what that takes."""
        return self.fixes(summary, trades=ALL, costs_any=True)
