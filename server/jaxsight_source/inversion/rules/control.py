"""Inverses of loops with a known number of iterations, from those of their bodies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
from jax import lax

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.staging import opened
from jaxsight_source.inversion.network import (
    Blocked,
    Network,
    Node,
    Placed,
    Plan,
    Solution,
    inverses,
)

Values: TypeAlias = Sequence[jax.Array]

_Step: TypeAlias = Callable[[Values, Values], tuple[Values, Values]]
"""Computes the next carries, and other values, from carries and slices of arrays."""


class _Loop:
    """A scan with the nodes around it, in groups, and the positions in each that are known there.

    `consts` are shared by all steps, `init` and `final` are carries, and `xs` and `ys` are sliced
    into steps.
    """

    def __init__(self, placed: Placed, network: Network) -> None:
        self.network = network
        self.scan = scan = control_flow.scan(placed.params)
        first = scan.consts + scan.carry
        self.consts, self.init = placed.inputs[: scan.consts], placed.inputs[scan.consts : first]
        self.xs = placed.inputs[first:]
        self.final, self.ys = placed.outputs[: scan.carry], placed.outputs[scan.carry :]
        self.known_consts = solved_positions(network, self.consts)
        self.known_init = solved_positions(network, self.init)
        self.known_xs = solved_positions(network, self.xs)
        self.known_final = solved_positions(network, self.final)
        self.known_ys = solved_positions(network, self.ys)

    def carries_in(self, body: Network, indices: Sequence[int]) -> list[Node]:
        return [body.inputs[self.scan.consts + index] for index in indices]

    def carries_out(self, body: Network, indices: Sequence[int]) -> list[Node]:
        return [body.outputs[index] for index in indices]

    def xs_in(self, body: Network, indices: Sequence[int]) -> list[Node]:
        return [body.inputs[self.scan.consts + self.scan.carry + index] for index in indices]

    def ys_out(self, body: Network, indices: Sequence[int]) -> list[Node]:
        return [body.outputs[self.scan.carry + index] for index in indices]

    def reads(self, carried: Sequence[int]) -> tuple[Node, ...]:
        """Return the nodes whose values both directions read."""
        return (
            *(self.consts[index] for index in self.known_consts),
            *(self.init[index] for index in carried),
            *(self.xs[index] for index in self.known_xs),
            *(self.ys[index] for index in self.known_ys),
        )

    def groups(self, values: Values, *sizes: int) -> list[Values]:
        """Return the values of `reads`, and others, in groups: constants, carries, slices."""
        rest, (carried, *others) = iter(values), sizes
        slices = len(self.known_xs) + len(self.known_ys)
        counts = len(self.known_consts), carried, slices, *others
        return [[*itertools.islice(rest, count)] for count in counts]

    def solved(self, begun: list[int], ended: list[int]) -> Network:
        """Return the body, with carries `begun` known before each step, and `ended` after it."""
        scan = self.scan
        inputs = [
            *self.known_consts,
            *(scan.consts + index for index in begun),
            *(scan.consts + scan.carry + index for index in self.known_xs),
        ]
        outputs = [*ended, *(scan.carry + index for index in self.known_ys)]
        constants = index_values(self.network, self.consts)
        return self.network.solver.solved(scan.body, inputs, outputs, constants)

    def step(
        self,
        body: Network,
        plan: Plan,
        consts: Values,
        carried: Sequence[Node],
        before: Sequence[Node] = (),
    ) -> _Step:
        """Return a step that computes carries, and then other values, by a plan for the body.

        Args:
            body: the network of the loop's body.
            plan: for it.
            consts: the known constants.
            carried: the nodes of the carries that the step takes.
            before: nodes of values that another pass computed.
        """
        constants = [body.inputs[index] for index in self.known_consts]
        slices = [*self.xs_in(body, self.known_xs), *self.ys_out(body, self.known_ys)]
        nodes = [*constants, *carried, *slices, *before]

        def step(carry: Values, slices: Values) -> tuple[Values, Values]:
            results = plan(dict(zip(nodes, [*consts, *carry, *slices], strict=True)))
            return results[: len(carried)], results[len(carried) :]

        return step

    def run(
        self, step: _Step, init: Values, slices: Values, *, backwards: bool = False
    ) -> tuple[Values, Values]:
        """Return the last carries and the stacked results of the loop with another step."""
        reverse = self.scan.reverse != backwards
        length, unroll = self.scan.length, self.scan.unroll
        return lax.scan(step, init, slices, length=length, reverse=reverse, unroll=unroll)


@inverses("scan")
def _scan(placed: Placed, network: Network) -> Solution | Blocked:
    """Solve a scan forwards or backwards.

    Carries with known initial values are followed forwards, which may determine `xs` from `ys`; the
    other carries are inverted from their final values.
    """
    loop = _Loop(placed, network)
    body, followed = _follow(loop)
    unknown_xs = [index for index in range(len(loop.xs)) if index not in loop.known_xs]
    determined = [index for index in unknown_xs if body.knows(*loop.xs_in(body, [index]))]
    if not determined:
        return _backwards(loop, body, followed, unknown_xs)
    carried, plan = _needed(loop, body, followed, loop.xs_in(body, determined))

    def compute(*values: jax.Array) -> list[jax.Array]:
        consts, init, slices = loop.groups(values, len(carried))
        step = loop.step(body, plan, consts, loop.carries_in(body, carried))
        return [*loop.run(step, init, slices)[1]]

    writes = tuple(loop.xs[index] for index in determined)
    return Solution(loop.reads(carried), writes, compute)


def _follow(loop: _Loop) -> tuple[Network, list[int]]:
    """Return the body with all values known at the start of each step, and the known carries."""
    followed = loop.known_init
    while True:
        body = loop.solved(followed, [])
        staying = [index for index in followed if body.knows(body.outputs[index])]
        if staying == followed:
            return body, followed
        followed = staying


def _needed(
    loop: _Loop, body: Network, followed: Sequence[int], wanted: Sequence[Node]
) -> tuple[list[int], Plan]:
    """Return the carries on which `wanted` depends, directly or through others, and a plan.

    The plan computes the next values of these carries, then `wanted`.
    """
    carried: list[int] = []
    while True:
        plan = body.plan([*loop.carries_out(body, carried), *wanted])
        begun = zip(followed, loop.carries_in(body, followed), strict=True)
        needed = {index for index, node in begun if node in plan.reads}
        if needed <= {*carried}:
            return carried, plan
        carried = sorted({*carried, *needed})


def _backwards(
    loop: _Loop, forwards: Network, followed: list[int], unknown_xs: list[int]
) -> Solution | Blocked:
    """Solve a scan by a pass from the last step to the first.

    A pass ahead of it computes the carries that it reads, and that are known from the first step.
    """
    hopeful, body, undone = _undo(loop, followed)
    determined = [index for index in undone if index not in loop.known_init]
    determined_xs = [index for index in unknown_xs if body.knows(*loop.xs_in(body, [index]))]
    if not determined and not determined_xs:
        return culprit([hopeful], "has results that do not determine its unknown operands")
    plan = body.plan([*loop.carries_in(body, undone), *loop.xs_in(body, determined_xs)])
    begun = zip(followed, loop.carries_in(body, followed), strict=True)
    history = [index for index, node in begun if node in plan.reads]
    carried, follow = _needed(loop, forwards, followed, loop.carries_in(forwards, history))

    def compute(*values: jax.Array) -> list[jax.Array]:
        consts, init, slices, final = loop.groups(values, len(carried), len(undone))
        before: Values = []
        if history:
            ahead = loop.step(forwards, follow, consts, loop.carries_in(forwards, carried))
            _, before = loop.run(ahead, init, slices)
        past = loop.carries_in(body, history)
        back = loop.step(body, plan, consts, loop.carries_out(body, undone), past)
        starts, stacked = loop.run(back, final, [*slices, *before], backwards=True)
        wanted = [at for at, index in enumerate(undone) if index in determined]
        return [*(starts[at] for at in wanted), *stacked]

    reads = (*loop.reads(carried), *(loop.final[index] for index in undone))
    writes = (*(loop.init[i] for i in determined), *(loop.xs[i] for i in determined_xs))
    return Solution(reads, writes, compute)


def _undo(loop: _Loop, followed: list[int]) -> tuple[Network, Network, list[int]]:
    """Return two networks of the body, and the carries that each step determines from its end.

    The first network assumes that all carries known at the end of the loop are known at the end of
    each step; it only serves to explain a failure. The second knows only the carries returned.
    """
    hopeful: Network | None = None
    undone = [index for index in loop.known_final if index not in followed]
    while True:
        body = loop.solved(followed, undone)
        hopeful = hopeful or body
        staying = [index for index in undone if body.knows(*loop.carries_in(body, [index]))]
        if staying == undone:
            return hopeful, body, undone
        undone = staying


@inverses("cond")
def _cond(placed: Placed, network: Network) -> Solution | Blocked:
    choice, *operands = placed.inputs
    if not network.knows(choice):
        return Blocked("selects its branch by an unknown value")
    inputs = solved_positions(network, operands)
    outputs = solved_positions(network, placed.outputs)
    solved = [
        network.solver.solved(opened(branch), inputs, outputs, index_values(network, operands))
        for branch in placed.params["branches"]
    ]
    determined = [
        index
        for index in range(len(operands))
        if index not in inputs and all(body.knows(body.inputs[index]) for body in solved)
    ]
    if not determined:
        return culprit(solved, "has branches that do not determine its unknown operands")
    plans = [body.plan(body.inputs[index] for index in determined) for body in solved]

    def branch(body: Network, plan: Plan) -> Callable[[Values, Values], list[jax.Array]]:
        def run(arguments: Values, results: Values) -> list[jax.Array]:
            return plan(
                by_node(body.inputs, inputs, arguments) | by_node(body.outputs, outputs, results)
            )

        return run

    branches = [branch(body, plan) for body, plan in zip(solved, plans, strict=True)]

    def compute(index: jax.Array, *values: jax.Array) -> list[jax.Array]:
        arguments, results = values[: len(inputs)], values[len(inputs) :]
        return list(lax.switch(index, branches, arguments, results))

    reads = (choice, *(operands[i] for i in inputs), *(placed.outputs[i] for i in outputs))
    return Solution(reads, tuple(operands[index] for index in determined), compute)


def solved_positions(network: Network, nodes: Sequence[Node]) -> list[int]:
    return [index for index, node in enumerate(nodes) if network.knows(node)]


def index_values(network: Network, nodes: Sequence[Node]) -> dict[int, jax.Array]:
    """Return the known values, by position, of the nodes that may be indices."""
    values = {
        index: network.constant(node)
        for index, node in enumerate(nodes)
        if node.aval.dtype in _INDICES and math.prod(node.aval.shape) <= _MOST_INDICES
    }
    return {index: value for index, value in values.items() if value is not None}


_INDICES = ("bool", "int32", "int64", "uint32", "uint64")
_MOST_INDICES = 1 << 20
"""Elements of an array whose values are computed, as they may be indices: chosen, 4 MiB."""


def by_node(
    nodes: Sequence[Node], positions: Sequence[int], values: Values
) -> dict[Node, jax.Array]:
    return {nodes[index]: value for index, value in zip(positions, values, strict=True)}


def culprit(networks: Sequence[Network], otherwise: str) -> Blocked:
    """Return the reason of the innermost equation to blame, or `otherwise` if there is none."""
    for network in networks:
        for placed, why in network.blocked():
            return Blocked(why.reason, why.culprit or placed)
    return Blocked(otherwise)
