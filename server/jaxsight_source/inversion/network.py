"""A jaxpr as a network through which known values spread, forwards and backwards.

An equation with known inputs determines its results; one with known results may determine its
inputs, if its primitive has a rule for that. The network only finds out which values can be known
and in which order; a `Plan` computes them later, with no unnecessary step. Nothing recurses per
equation, and an inner program is analysed once for each set of its known values.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import jax

from jaxsight_source.compat import avals
from jaxsight_source.compat.equations import CALLS, attributed_to, bind, called
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Params
from jaxsight_source.compat.staging import Program, is_dropped, is_literal, is_tracer
from jaxsight_source.jaxprs.base import Environment, Rules

Compute: TypeAlias = Callable[..., Sequence[jax.Array]]
"""Computes the values of nodes from those of others."""


@dataclass(eq=False, slots=True)
class Node:
    """A value in the network.

    `constant` is its value if that is known beforehand; `fixed` marks a value of the program
    itself, which is not a variable.
    """

    aval: Aval
    constant: object = None
    fixed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An equation with the nodes that it connects.

    `joins` marks one input and one output that are the same value. `within` is the call that was
    inlined here and contains the equation.
    """

    equation: Equation
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    within: Placed | None = None
    joins: bool = False

    @property
    def name(self) -> str:
        """The name of the primitive; empty where values are joined."""
        return "" if self.joins else self.equation.primitive.name

    @property
    def params(self) -> Params:
        return self.equation.params


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of a rule: `compute` returns the values of `writes` from those of `reads`."""

    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    compute: Compute


@dataclass(frozen=True, slots=True)
class Blocked:
    """The reason why a rule has no solution with the values known so far.

    `culprit` is set if the reason is in an inner program.
    """

    reason: str
    culprit: Placed | None = None


Rule = Callable[[Placed, "Network"], Solution | Blocked]

inverses: Rules[Rule] = Rules()
"""The rules of `jaxsight.inverse`, by primitive.

A rule is called when some result of an equation is known and some input is not.
"""


@dataclass(frozen=True, slots=True)
class InverseStep:
    placed: Placed
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    fresh: frozenset[Node]
    """The nodes of `writes` that were not known before; others keep their first value."""
    compute: Compute


def forwards(placed: Placed) -> Compute:
    """Return the function that computes an equation's results from its operands."""
    return (
        _itself
        if placed.joins or placed.name == "pvary"
        else lambda *values: bind(placed.equation, values)
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps that compute `wanted` from the nodes `reads`, whose values are known."""

    steps: tuple[InverseStep, ...]
    reads: frozenset[Node]
    wanted: tuple[Node, ...]

    def __call__(self, known_values: Mapping[Node, jax.Array]) -> list[jax.Array]:
        """Return the values of `wanted`.

        Operations are bound with the source locations of the user's equations.
        """
        values: Environment[jax.Array] = Environment()
        for node, value in known_values.items():
            values.write(node, value)

        def read(node: Node) -> jax.Array:
            return cast(jax.Array, node.constant) if node.fixed else values.read(node)

        for step in self.steps:
            with attributed_to(step.placed.equation):
                computed = step.compute(*map(read, step.reads))
            for node, value in zip(step.writes, computed, strict=True):
                if node not in step.fresh:
                    continue
                aval = avals.of(value)
                if aval.shape != node.aval.shape or aval.dtype != node.aval.dtype:
                    types = f"{avals.text(aval)} where {avals.text(node.aval)} was"
                    raise TypeError(f"the rule for {step.placed.name} gave {types}")
                values.write(node, value)
        return [read(node) for node in self.wanted]


_Key: TypeAlias = tuple[int, frozenset[int], frozenset[int], frozenset[tuple[int, int]]]
"""The id of a jaxpr, the positions of known inputs and outputs, and the ids of constants."""


@dataclass(slots=True)
class Solver:
    """Solves programs by rules, each program once for each set of its known values."""

    rule_of: Callable[[Equation], Rule | None]
    resort: Callable[[Network], bool]
    """What is tried on a network in which no rule helps; true if it helps."""
    _networks: dict[_Key, Network] = field(default_factory=dict)

    def solved(
        self,
        program: Program,
        inputs: Iterable[int],
        outputs: Iterable[int],
        constants: Mapping[int, object],
    ) -> Network:
        """Return the network of a program whose inputs and outputs at these positions are known.

        `constants` holds the values of the inputs that are known beforehand; they are compared by
        identity.
        """
        inputs, outputs = frozenset(inputs), frozenset(outputs)
        values = frozenset((index, id(value)) for index, value in constants.items())
        key = (id(program.jaxpr), inputs, outputs, values)
        network = self._networks.get(key)
        if network is None:
            network = self._networks[key] = Network(program, inputs, outputs, self, constants)
        return network


class Network:
    """The values of a program that can be known.

    `inputs` and `outputs` are the nodes of its inputs and outputs, in order.
    """

    def __init__(
        self,
        program: Program,
        inputs: Iterable[int],
        outputs: Iterable[int],
        solver: Solver,
        constants: Mapping[int, object],
    ) -> None:
        self.solver = solver
        self._program = program
        """Kept alive, because the solver keys it by its `id`."""
        self._known: set[Node] = set()
        self._around: dict[Node, list[Placed]] = {}
        self._pending: dict[Placed, Blocked | None] = {}
        self._queue: deque[Placed] = deque()
        self._steps: list[InverseStep] = []
        self._results: dict[Hashable, tuple[Node, ...]] = {}
        jaxpr = program.jaxpr
        self.inputs = [
            Node(var.aval, constants.get(index)) for index, var in enumerate(jaxpr.invars)
        ]
        self._constants: dict[Node, jax.Array | None] = {}
        """The nodes that depend on constants alone, with those values that were asked for."""
        self.outputs = self._place(program, self.inputs)
        for index in inputs:
            self._learn([self.inputs[index]])
        for index in outputs:
            self._learn([self.outputs[index]])
        # Calls are inlined only if nothing else helps: one that can run forwards stays a call.
        self._spread()
        while self._help():
            self._queue.extend(placed for placed, why in self._pending.items() if why is not None)
            self._spread()

    def _help(self) -> bool:
        """Change something about the equations from which nothing follows, or return false."""
        if self._open(lambda placed: self._any(placed.outputs)) or self._open(
            lambda placed: self._any(placed.inputs)
        ):
            return True
        if self.knows(*self.inputs) or not self.blocked():
            return False
        without_rule = lambda placed: self.solver.rule_of(placed.equation) is None
        return self._open(without_rule) or self.solver.resort(self)

    def knows(self, *nodes: Node) -> bool:
        """Return whether all of these nodes are known."""
        return all(node.fixed or node in self._known for node in nodes)

    def readers(self, node: Node) -> list[Placed]:
        """Return the equations that take a node as an input, in the program's order."""
        return [placed for placed in self._around.get(node, ()) if node in placed.inputs]

    def maker(self, node: Node) -> Placed | None:
        """Return the unsolved equation that a node is a result of, or None."""
        for placed in self._around.get(node, ()):
            if node in placed.outputs and placed in self._pending:
                return placed
        return None

    def pending(self) -> list[Placed]:
        """Return the equations that are not solved, in the program's order."""
        return list(self._pending)

    def take(self, placed: Placed, solution: Solution) -> None:
        """Apply a solution of an equation."""
        fresh = frozenset(node for node in solution.writes if not self.knows(node))
        self._steps.append(
            InverseStep(placed, solution.reads, solution.writes, fresh, solution.compute)
        )
        if not placed.equation.effects and all(map(self._is_constant, solution.reads)):
            self._constants.update(dict.fromkeys(fresh))
        self._learn(solution.writes)

    def refuse(self, placed: Placed, reason: str) -> None:
        """Give a reason for a group of equations, unless an equation alone is the reason."""
        if not any(blamed.name in REASONS for blamed, _ in self.blocked()):
            self._pending[placed] = Blocked(reason)

    def blocked(self) -> list[tuple[Placed, Blocked]]:
        """Return the equations with known results and unknown inputs, and the reasons.

        Those with all results known come first.
        """
        blocked = [
            (placed, why)
            for placed, why in self._pending.items()
            if why is not None and not self.knows(*placed.inputs)
        ]
        return sorted(blocked, key=lambda pair: not self.knows(*pair[0].outputs))

    def plan(self, wanted: Iterable[Node]) -> Plan:
        """Return the plan that computes `wanted`, which must be known."""
        wanted = tuple(wanted)
        needed = set(wanted)
        steps: list[InverseStep] = []
        for step in reversed(self._steps):
            if not needed.isdisjoint(step.fresh):
                needed -= step.fresh
                needed.update(step.reads)
                steps.append(step)
        reads = frozenset(node for node in needed if not node.fixed)
        return Plan(tuple(reversed(steps)), reads, wanted)

    def constant(self, node: Node) -> jax.Array | None:
        """Return the value of a node that is the same in all calls of the program.

        Return None if it depends on the arguments or is not known.
        """
        if node.constant is not None:
            return None if is_tracer(node.constant) else cast(jax.Array, node.constant)
        if node not in self._constants:
            return None
        value = self._constants[node]
        if value is None:
            plan = self.plan([node])
            with jax.ensure_compile_time_eval():
                (value,) = plan({read: cast(jax.Array, read.constant) for read in plan.reads})
            self._constants[node] = value
        return value

    def _is_constant(self, node: Node) -> bool:
        if node.constant is not None:
            return not is_tracer(node.constant)
        return node in self._constants

    def _place(
        self, program: Program, inputs: Sequence[Node], within: Placed | None = None
    ) -> list[Node]:
        """Add a program's equations, with `inputs` as its inputs; return its output nodes."""
        jaxpr = program.jaxpr
        nodes: Environment[Node] = Environment()
        for var, node in zip(jaxpr.invars, inputs, strict=True):
            nodes.write(var, node)
        for var, value in zip(jaxpr.constvars, program.consts, strict=True):
            nodes.write(var, Node(var.aval, value, True))

        def node_of(atom: Atom) -> Node:
            return Node(atom.aval, atom.val, True) if is_literal(atom) else nodes.read(atom)

        for equation in jaxpr.eqns:
            operands = tuple(map(node_of, equation.invars))
            fresh = tuple(Node(var.aval) for var in equation.outvars)
            results = self._shared(equation, operands, fresh)
            for var, node in zip(equation.outvars, results, strict=True):
                if not is_dropped(var):
                    nodes.write(var, node)
            if results is fresh:
                self._add(Placed(equation, operands, results, within))
        return [node_of(atom) for atom in jaxpr.outvars]

    def _shared(
        self, equation: Equation, operands: tuple[Node, ...], fresh: tuple[Node, ...]
    ) -> tuple[Node, ...]:
        """Return the results of an equal equation that was added before, or fresh ones."""
        if equation.effects:
            return fresh
        with contextlib.suppress(TypeError):  # of parameters without a hash
            key = equation.primitive.name, operands, tuple(equation.params.items())
            return self._results.setdefault(key, fresh)
        return fresh

    def _add(self, placed: Placed) -> None:
        for node in dict.fromkeys((*placed.inputs, *placed.outputs)):
            if not node.fixed:
                self._around.setdefault(node, []).append(placed)
        self._pending[placed] = None
        self._queue.append(placed)

    def _learn(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if not self.knows(node):
                self._known.add(node)
                self._queue.extend(
                    placed for placed in self._around.get(node, ()) if placed in self._pending
                )

    def _any(self, nodes: Iterable[Node]) -> bool:
        return any(not node.fixed and node in self._known for node in nodes)

    def _open(self, chosen: Callable[[Placed], bool]) -> bool:
        """Inline the pending calls that `chosen` selects; return whether there were any."""
        calls = [placed for placed in self._pending if placed.name in CALLS and chosen(placed)]
        opened = False
        for placed in calls:
            program = called(placed.equation)
            if program is None:
                continue
            opened = True
            del self._pending[placed]
            self._join(self._place(program, placed.inputs, placed), placed)
        return opened

    def _join(self, results: Sequence[Node], placed: Placed) -> None:
        """Make the results of a program those of the equation in whose place it is."""
        for inner, outer in zip(results, placed.outputs, strict=True):
            self._add(Placed(placed.equation, (inner,), (outer,), placed, joins=True))

    def _spread(self) -> None:
        while self._queue:
            placed = self._queue.popleft()
            if placed in self._pending:
                self._attempt(placed)

    def _attempt(self, placed: Placed) -> None:
        if self.knows(*placed.inputs):
            del self._pending[placed]
            if not self.knows(*placed.outputs):
                self.take(placed, Solution(placed.inputs, placed.outputs, forwards(placed)))
            return
        if not self._any(placed.outputs):
            return
        rule = self.solver.rule_of(placed.equation)
        solution: Solution | Blocked = Blocked(REASONS.get(placed.name, NO_RULE))
        if placed.joins:
            solution = Solution(placed.outputs, placed.inputs, _itself)
        elif rule is not None:
            solution = rule(placed, self)
        if isinstance(solution, Blocked):
            self._pending[placed] = solution
        else:
            self.take(placed, solution)


def _itself(value: jax.Array) -> Sequence[jax.Array]:
    return (value,)


NO_RULE = "has no inverse"

_REASONS = {
    "adds elements up, and many operands have the same sum": "reduce_sum",
    "discards the elements that are not a new maximum": "cummax",
    "discards the elements that are not a new minimum": "cummin",
    "discards the imaginary part": "real",
    "discards the larger of its operands": "min",
    "discards the magnitude": "sign",
    "discards the real part": "imag",
    "discards the smaller elements": "top_k",
    "discards the smaller of its operands": "max",
    "forgets the order of its operand": "sort",
    "keeps a remainder, which many operands share": "rem",
    "keeps an index and discards the elements": "argmax argmin",
    "keeps one bit of all elements": "reduce_and reduce_or",
    "keeps one bit of its operand": "is_finite",
    "keeps one bit of its operands": "eq ge gt le lt ne",
    "keeps the largest element and discards the others": "reduce_max",
    "keeps the smallest element and discards the others": "reduce_min",
    "maps all values outside its bounds to a bound": "clamp",
    "maps x and -x to the same result": "abs",
    "multiplies elements, and many operands have the same product": "reduce_prod",
    "rounds, so an interval of operands has the same result": "ceil floor round",
    "runs a number of iterations that its results do not tell": "while",
}
"""Why primitives without a rule are not injective, with their names."""

REASONS = {name: reason for reason, names in _REASONS.items() for name in names.split()}
