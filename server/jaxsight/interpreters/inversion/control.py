"""Inverses of control flow, from those of the inner programs.

Supported are branches whose index is known, and loops with a fixed number of iterations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax import lax

from jaxsight.interpreters.compat import parameters
from jaxsight.interpreters.compat.staging import opened
from jaxsight.interpreters.inversion.network import (
    Blocked,
    Network,
    Node,
    Placed,
    Plan,
    Solution,
    inverses,
)


@inverses("while")
def _while(placed: Placed, network: Network) -> Solution | Blocked:
    return Blocked("runs a data-dependent number of iterations")


@inverses("cond")
def _cond(placed: Placed, network: Network) -> Solution | Blocked:
    choice, *operands = placed.inputs
    if not network.knows(choice):
        return Blocked("selects its branch by an unknown value")
    inputs = _known(network, operands)
    outputs = _known(network, placed.outputs)
    solved = [
        network.solver.solved(opened(branch), inputs, outputs, _indices(network, operands))
        for branch in placed.params["branches"]
    ]
    found = [
        index
        for index in range(len(operands))
        if index not in inputs and all(each.knows(each.inputs[index]) for each in solved)
    ]
    if not found:
        return _culprit(solved, "has branches that do not determine its unknown operands")
    plans = [each.plan(each.inputs[index] for index in found) for each in solved]

    def branch(inner: Network, plan: Plan) -> Any:
        def run(own: Sequence[Any], results: Sequence[Any]) -> list[Any]:
            given = _given(inner.inputs, inputs, own) | _given(inner.outputs, outputs, results)
            return plan(given)

        return run

    branches = [branch(inner, plan) for inner, plan in zip(solved, plans, strict=True)]

    def compute(index: Any, *values: Any) -> list[Any]:
        own, results = values[: len(inputs)], values[len(inputs) :]
        return list(lax.switch(index, branches, own, results))

    reads = (choice, *(operands[i] for i in inputs), *(placed.outputs[i] for i in outputs))
    return Solution(reads, tuple(operands[index] for index in found), compute)


def _known(network: Network, nodes: Sequence[Node]) -> list[int]:
    return [index for index, node in enumerate(nodes) if network.knows(node)]


def _indices(network: Network, nodes: Sequence[Node]) -> dict[int, Any]:
    """Return the known values, by position, of the nodes that may be indices."""
    found = {
        index: network.constant(node)
        for index, node in enumerate(nodes)
        if node.aval.dtype in _INDICES and math.prod(node.aval.shape) <= _MOST_INDICES
    }
    return {index: value for index, value in found.items() if value is not None}


_INDICES = ("bool", "int32", "int64", "uint32", "uint64")
_MOST_INDICES = 1 << 20


def _given(nodes: Sequence[Node], which: Sequence[int], values: Sequence[Any]) -> dict[Node, Any]:
    return {nodes[index]: value for index, value in zip(which, values, strict=True)}


def _culprit(networks: Sequence[Network], otherwise: str) -> Blocked:
    """Return the reason of the innermost equation to blame, or `otherwise` if there is none."""
    for network in networks:
        for placed, why in network.blocked():
            return Blocked(why.reason, why.culprit or placed)
    return Blocked(otherwise)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A scan with the nodes around it, in groups.

    `consts` are shared by all steps, `init` and `final` are carries, and `xs` and `ys` are sliced
    into steps.
    """

    scan: parameters.Scan
    consts: Sequence[Node]
    init: Sequence[Node]
    xs: Sequence[Node]
    final: Sequence[Node]
    ys: Sequence[Node]

    @classmethod
    def of(cls, placed: Placed) -> _Loop:
        scan = parameters.scan(dict(placed.params))
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
        return cls(*(_known(network, group) for group in groups))


@inverses("scan")
def _scan(placed: Placed, network: Network) -> Solution | Blocked:
    """Solve a scan forwards or backwards.

    Carries with known initial values are followed forwards, which may determine `xs` from `ys`; the
    other carries are inverted from their final values.
    """
    loop = _Loop.of(placed)
    around = _Around.of(loop, network)
    forwards, followed = _follow(loop, around, network)
    unknown_xs = [index for index in range(len(loop.xs)) if index not in around.xs]
    found = [index for index in unknown_xs if forwards.knows(loop.x(forwards, index))]
    if found:
        return _forwards(loop, around, forwards, followed, found)
    return _backwards(loop, around, network, forwards, followed, unknown_xs)


def _follow(loop: _Loop, around: _Around, network: Network) -> tuple[Network, list[int]]:
    """Return the body with all values known at the start of each step, and the known carries."""
    followed = around.init
    first_x = loop.scan.consts + loop.scan.carry
    while True:
        body = network.solver.solved(
            loop.scan.body,
            [
                *around.consts,
                *(loop.scan.consts + index for index in followed),
                *(first_x + index for index in around.xs),
            ],
            [loop.scan.carry + index for index in around.ys],
            _indices(network, loop.consts),
        )
        staying = [index for index in followed if body.knows(loop.carry_out(body, index))]
        if staying == followed:
            return body, followed
        followed = staying


def _forwards(
    loop: _Loop, around: _Around, body: Network, followed: list[int], found: list[int]
) -> Solution:
    wanted_xs = [loop.x(body, index) for index in found]
    carried, plan = _needed(loop, body, followed, wanted_xs)

    def compute(*values: Any) -> list[Any]:
        consts, init, xs, ys = _groups(values, around.consts, carried, around.xs, around.ys)
        outer = _given(body.inputs, around.consts, consts)

        def step(carry: Sequence[Any], cut: Any) -> Any:
            given = outer | _step_given(loop, around, body, cut)
            given |= {
                loop.carry_in(body, index): value
                for index, value in zip(carried, carry, strict=True)
            }
            results = plan(given)
            return results[: len(carried)], results[len(carried) :]

        _, stacked = _run(loop, step, init, (xs, ys), reverse=loop.scan.reverse)
        return list(stacked)

    reads = (
        *(loop.consts[i] for i in around.consts),
        *(loop.init[i] for i in carried),
        *(loop.xs[i] for i in around.xs),
        *(loop.ys[i] for i in around.ys),
    )
    return Solution(reads, tuple(loop.xs[index] for index in found), compute)


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


def _step_given(loop: _Loop, around: _Around, body: Network, cut: Any) -> dict[Node, Any]:
    xs, ys = cut
    return {loop.x(body, index): value for index, value in zip(around.xs, xs, strict=True)} | {
        loop.y(body, index): value for index, value in zip(around.ys, ys, strict=True)
    }


def _backwards(
    loop: _Loop,
    around: _Around,
    network: Network,
    forwards: Network,
    followed: list[int],
    unknown_xs: list[int],
) -> Solution | Blocked:
    hopeful, body, undone = _undo(loop, around, network, followed)
    found = [index for index in undone if index not in around.init]
    found_xs = [index for index in unknown_xs if body.knows(loop.x(body, index))]
    if not found and not found_xs:
        return _culprit([hopeful], "has results that do not determine its unknown operands")
    plan = body.plan([
        *(loop.carry_in(body, index) for index in undone),
        *(loop.x(body, index) for index in found_xs),
    ])  # fmt: skip
    history = [index for index in followed if loop.carry_in(body, index) in plan.reads]
    past = [loop.carry_in(forwards, index) for index in history]
    carried, follow = _needed(loop, forwards, followed, past)

    def compute(*values: Any) -> list[Any]:
        consts, init, xs, ys, final = _groups(
            values, around.consts, carried, around.xs, around.ys, undone
        )

        def ahead(carry: Sequence[Any], cut: Any) -> Any:
            given = _given(forwards.inputs, around.consts, consts)
            given |= _step_given(loop, around, forwards, cut)
            given |= {
                loop.carry_in(forwards, index): value
                for index, value in zip(carried, carry, strict=True)
            }
            results = follow(given)
            return results[: len(carried)], results[len(carried) :]

        def back(carry: Sequence[Any], cut: Any) -> Any:
            *own, before = cut
            given = _given(body.inputs, around.consts, consts)
            given |= _step_given(loop, around, body, own)
            given |= {
                loop.carry_in(body, index): value
                for index, value in zip(history, before, strict=True)
            }
            given |= {
                loop.carry_out(body, index): value
                for index, value in zip(undone, carry, strict=True)
            }
            results = plan(given)
            return results[: len(undone)], results[len(undone) :]

        before: Sequence[Any] = []
        if history:
            _, before = _run(loop, ahead, init, (xs, ys), reverse=loop.scan.reverse)
        begun, stacked = _run(loop, back, final, (xs, ys, before), reverse=not loop.scan.reverse)
        starts = [value for index, value in zip(undone, begun, strict=True) if index in found]
        return [*starts, *stacked]

    reads = (
        *(loop.consts[i] for i in around.consts),
        *(loop.init[i] for i in carried),
        *(loop.xs[i] for i in around.xs),
        *(loop.ys[i] for i in around.ys),
        *(loop.final[i] for i in undone),
    )
    writes = (*(loop.init[i] for i in found), *(loop.xs[i] for i in found_xs))
    return Solution(reads, writes, compute)


def _undo(
    loop: _Loop, around: _Around, network: Network, followed: list[int]
) -> tuple[Network, Network, list[int]]:
    """Return two networks of the body, and the carries that each step determines from its end.

    The first network assumes that all carries known at the end of the loop are known at the end of
    each step; it only serves to explain a failure. The second knows only the carries returned.
    """
    hopeful: Network | None = None
    undone = [index for index in around.final if index not in followed]
    first_x = loop.scan.consts + loop.scan.carry
    while True:
        body = network.solver.solved(
            loop.scan.body,
            [
                *around.consts,
                *(loop.scan.consts + index for index in followed),
                *(first_x + index for index in around.xs),
            ],
            [*undone, *(loop.scan.carry + index for index in around.ys)],
            _indices(network, loop.consts),
        )
        hopeful = hopeful or body
        staying = [index for index in undone if body.knows(loop.carry_in(body, index))]
        if staying == undone:
            return hopeful, body, undone
        undone = staying


def _groups(values: Sequence[Any], *groups: Sequence[Any]) -> list[Sequence[Any]]:
    """Split a list into consecutive parts, as long as each group."""
    out: list[Sequence[Any]] = []
    at = 0
    for group in groups:
        out.append(list(values[at : at + len(group)]))
        at += len(group)
    return out


def _run(loop: _Loop, step: Any, init: Sequence[Any], cut: Any, *, reverse: bool) -> Any:
    scan = loop.scan
    return lax.scan(step, list(init), cut, length=scan.length, reverse=reverse, unroll=scan.unroll)
