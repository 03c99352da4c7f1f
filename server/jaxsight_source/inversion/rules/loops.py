"""Inverses of loops with a known number of iterations, from those of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import jax
from jax import lax

from jaxsight_source.compat import control_flow
from jaxsight_source.inversion.inner_programs import (
    Values,
    by_node,
    culprit,
    index_values,
    known_positions,
)
from jaxsight_source.inversion.network import (
    Blocked,
    Network,
    Node,
    Placed,
    Plan,
    Solution,
    inverses,
)

Slices = TypeVar("Slices")
"""The slices of arrays that a step of a loop takes."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """A scan with the nodes around it, in groups.

    `consts` are shared by all steps, `init` and `final` are carries, and `xs` and `ys` are sliced
    into steps.
    """

    scan: control_flow.Scan
    consts: Sequence[Node]
    init: Sequence[Node]
    xs: Sequence[Node]
    final: Sequence[Node]
    ys: Sequence[Node]

    @classmethod
    def of(cls, placed: Placed) -> _Loop:
        scan = control_flow.scan(dict(placed.params))
        first = scan.consts + scan.carry
        return cls(
            scan,
            placed.inputs[: scan.consts],
            placed.inputs[scan.consts : first],
            placed.inputs[first:],
            placed.outputs[: scan.carry],
            placed.outputs[scan.carry :],
        )

    def carry_in(self, body: Network, index: int) -> Node:
        return body.inputs[self.scan.consts + index]

    def carries_in(
        self, body: Network, indices: Sequence[int], values: Values
    ) -> dict[Node, jax.Array]:
        return {
            self.carry_in(body, index): value for index, value in zip(indices, values, strict=True)
        }

    def carry_out(self, body: Network, index: int) -> Node:
        return body.outputs[index]

    def x(self, body: Network, index: int) -> Node:
        return body.inputs[self.scan.consts + self.scan.carry + index]

    def y(self, body: Network, index: int) -> Node:
        return body.outputs[self.scan.carry + index]


@dataclass(frozen=True, slots=True)
class _Around:
    """The positions in each group whose values are known outside the loop."""

    consts: list[int]
    init: list[int]
    xs: list[int]
    final: list[int]
    ys: list[int]

    @classmethod
    def of(cls, loop: _Loop, network: Network) -> _Around:
        groups = (loop.consts, loop.init, loop.xs, loop.final, loop.ys)
        return cls(*(known_positions(network, group) for group in groups))


@inverses("scan")
def _scan(placed: Placed, network: Network) -> Solution | Blocked:
    """Solve a scan forwards or backwards.

    Carries with known initial values are followed forwards, which may determine `xs` from `ys`; the
    other carries are inverted from their final values.
    """
    return _solution(_Loop.of(placed), network)


def _solution(loop: _Loop, network: Network) -> Solution | Blocked:
    around = _Around.of(loop, network)
    forwards, followed = _follow(loop, around, network)
    unknown_xs = [index for index in range(len(loop.xs)) if index not in around.xs]
    determined = [index for index in unknown_xs if forwards.knows(loop.x(forwards, index))]
    if determined:
        wanted_xs = [loop.x(forwards, index) for index in determined]
        carried, plan = _needed(loop, forwards, followed, wanted_xs)
        ahead = _Pass(loop, around, forwards, carried, plan)

        def compute(*values: jax.Array) -> list[jax.Array]:
            consts, init, xs, ys = _groups(values, around.consts, carried, around.xs, around.ys)

            def step(carry: Values, slices: tuple[Values, Values]) -> tuple[Values, Values]:
                values = ahead.known(consts, slices) | loop.carries_in(forwards, carried, carry)
                return ahead.computed(values)

            _, stacked = _run(loop, step, init, (xs, ys), reverse=loop.scan.reverse)
            return list(stacked)

        reads = _reads(loop, around, carried)
        return Solution(reads, tuple(loop.xs[index] for index in determined), compute)
    return _backwards(loop, around, network, forwards, followed, unknown_xs)


def _solved(
    loop: _Loop, around: _Around, network: Network, begun: list[int], ended: list[int]
) -> Network:
    """Return the body, with the carries `begun` known before each step and `ended` after it."""
    scan = loop.scan
    inputs = [
        *around.consts,
        *(scan.consts + index for index in begun),
        *(scan.consts + scan.carry + index for index in around.xs),
    ]
    outputs = [*ended, *(scan.carry + index for index in around.ys)]
    constants = index_values(network, loop.consts)
    return network.solver.solved(scan.body, inputs, outputs, constants)


def _follow(loop: _Loop, around: _Around, network: Network) -> tuple[Network, list[int]]:
    """Return the body with all values known at the start of each step, and the known carries."""
    followed = around.init
    while True:
        body = _solved(loop, around, network, followed, [])
        staying = [index for index in followed if body.knows(loop.carry_out(body, index))]
        if staying == followed:
            return body, followed
        followed = staying


def _reads(loop: _Loop, around: _Around, carried: Sequence[int]) -> tuple[Node, ...]:
    """Return the nodes whose values both directions read."""
    return (
        *(loop.consts[i] for i in around.consts),
        *(loop.init[i] for i in carried),
        *(loop.xs[i] for i in around.xs),
        *(loop.ys[i] for i in around.ys),
    )


def _needed(
    loop: _Loop, body: Network, followed: Sequence[int], wanted: Sequence[Node]
) -> tuple[list[int], Plan]:
    """Return the carries on which `wanted` depends, directly or through others, and a plan.

    The plan computes the next values of these carries, then `wanted`.
    """
    carried: list[int] = []
    while True:
        plan = body.plan([*(loop.carry_out(body, index) for index in carried), *wanted])
        needed = [index for index in followed if loop.carry_in(body, index) in plan.reads]
        if set(needed) <= set(carried):
            return carried, plan
        carried = sorted({*carried, *needed})


def _backwards(
    loop: _Loop,
    around: _Around,
    network: Network,
    forwards: Network,
    followed: list[int],
    unknown_xs: list[int],
) -> Solution | Blocked:
    hopeful, body, undone = _undo(loop, around, network, followed)
    determined = [index for index in undone if index not in around.init]
    determined_xs = [index for index in unknown_xs if body.knows(loop.x(body, index))]
    if not determined and not determined_xs:
        return culprit([hopeful], "has results that do not determine its unknown operands")
    plan = body.plan([
        *(loop.carry_in(body, index) for index in undone),
        *(loop.x(body, index) for index in determined_xs),
    ])  # fmt: skip
    history = [index for index in followed if loop.carry_in(body, index) in plan.reads]
    past = [loop.carry_in(forwards, index) for index in history]
    carried, follow = _needed(loop, forwards, followed, past)
    ahead = _Pass(loop, around, forwards, carried, follow)
    compute = _Backwards(ahead, _Pass(loop, around, body, undone, plan), history, determined)
    reads = (*_reads(loop, around, carried), *(loop.final[i] for i in undone))
    writes = (*(loop.init[i] for i in determined), *(loop.xs[i] for i in determined_xs))
    return Solution(reads, writes, compute)


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """A walk through the steps of a loop that computes the `carries` by a plan for the body."""

    loop: _Loop
    around: _Around
    body: Network
    carries: list[int]
    plan: Plan

    def known(self, consts: Values, slices: tuple[Values, Values]) -> dict[Node, jax.Array]:
        """Return the values that a step reads, except carries."""
        known = by_node(self.body.inputs, self.around.consts, consts)
        for place, indices, values in zip(
            (self.loop.x, self.loop.y), (self.around.xs, self.around.ys), slices, strict=True
        ):
            known |= {place(self.body, i): v for i, v in zip(indices, values, strict=True)}
        return known

    def computed(self, values: dict[Node, jax.Array]) -> tuple[Values, Values]:
        """Return the carries after a step, and the other values that the plan computes."""
        results = self.plan(values)
        return results[: len(self.carries)], results[len(self.carries) :]


@dataclass(frozen=True, slots=True, eq=False)
class _Backwards:
    """Computes operands of a loop from its results, in a pass from the last step to the first.

    A pass `ahead` provides the carries in `history`, which are known from the first step on. The
    pass `back` computes the initial values of carries, of which those `determined` are returned.
    """

    ahead: _Pass
    back: _Pass
    history: list[int]
    determined: list[int]

    def __call__(self, *values: jax.Array) -> list[jax.Array]:
        loop, around = self.back.loop, self.back.around
        undone = self.back.carries
        consts, init, xs, ys, final = _groups(
            values, around.consts, self.ahead.carries, around.xs, around.ys, undone
        )

        def ahead(carry: Values, slices: tuple[Values, Values]) -> tuple[Values, Values]:
            values = self.ahead.known(consts, slices)
            values |= loop.carries_in(self.ahead.body, self.ahead.carries, carry)
            return self.ahead.computed(values)

        def back(carry: Values, slices: tuple[Values, Values, Values]) -> tuple[Values, Values]:
            *own, before = slices
            values = self.back.known(consts, (own[0], own[1]))
            values |= loop.carries_in(self.back.body, self.history, before)
            values |= by_node(self.back.body.outputs, undone, carry)
            return self.back.computed(values)

        before: Values = []
        if self.history:
            _, before = _run(loop, ahead, init, (xs, ys), reverse=loop.scan.reverse)
        begun, stacked = _run(loop, back, final, (xs, ys, before), reverse=not loop.scan.reverse)
        starts = [
            value for index, value in zip(undone, begun, strict=True) if index in self.determined
        ]
        return [*starts, *stacked]


def _undo(
    loop: _Loop, around: _Around, network: Network, followed: list[int]
) -> tuple[Network, Network, list[int]]:
    """Return two networks of the body, and the carries that each step determines from its end.

    The first network assumes that all carries known at the end of the loop are known at the end of
    each step; it only serves to explain a failure. The second knows only the carries returned.
    """
    hopeful: Network | None = None
    undone = [index for index in around.final if index not in followed]
    while True:
        body = _solved(loop, around, network, followed, undone)
        hopeful = hopeful or body
        staying = [index for index in undone if body.knows(loop.carry_in(body, index))]
        if staying == undone:
            return hopeful, body, undone
        undone = staying


def _groups(values: Values, *groups: Sequence[int]) -> list[Values]:
    """Split a list into consecutive parts, as long as each group."""
    parts: list[Values] = []
    start = 0
    for group in groups:
        parts.append(list(values[start : start + len(group)]))
        start += len(group)
    return parts


def _run(
    loop: _Loop,
    step: Callable[[Values, Slices], tuple[Values, Values]],
    init: Values,
    slices: Slices,
    *,
    reverse: bool,
) -> tuple[Values, Values]:
    """Return the last carries and the stacked results of a loop over slices."""
    scan = loop.scan
    return lax.scan(
        step, list(init), slices, length=scan.length, reverse=reverse, unroll=scan.unroll
    )
