"""JX203: an FFT over non-trailing axes needs transposes, which cost kernels and memory."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import steps_of
from jaxsight.rules.rule import STORED, Proof, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, integer, keyword, reads_of, stores_of
from jaxsight.text.units import KIB, size
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.primitives import RESHAPES
from jaxsight.wire.program import Step

RULE = Rule(__name__, "FFT over non-trailing axes requires transposes.", severity="warning")
LEAST = 64 * KIB
"""Bytes that the transposes write at least: 20 ns at 3 TB/s, beside a launch of 3 µs for each. A
choice: lower reports transforms of toy sizes, higher misses those that run in every step."""
_MOVES = RESHAPES | {"transpose"}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find FFTs that the program transposes for, in kernels that do nothing else."""
    graph, flow = view.on_target.graph, view.flow
    for index, kernel in enumerate(graph.kernels):
        fft = flow.steps.get(kernel.ends_at)
        if kernel.ends_because != "fft" or fft is None or fft.primitive != "fft":
            continue
        before, after = _transposed(flow, fft)
        neighbours = dict.fromkeys(
            there.index
            for edge in graph.edges
            if edge.source.what == edge.target.what == "kernel"
            for here, there, is_transposed in (
                (edge.target, edge.source, before),
                (edge.source, edge.target, after),
            )
            if is_transposed and here.index == index
        )
        kernels = map(graph.kernels.__getitem__, neighbours)
        moves = [neighbour for neighbour in kernels if _moves(flow, neighbour)]
        moved = sum(move.bytes_out for move in moves)
        if not moves or moved < LEAST:
            continue
        count = f"{len(moves)} transpose kernel{'s' if len(moves) > 1 else ''}"
        yield Violation(
            f"FFT over non-trailing axes adds {count} ({size(moved)})",
            kernel.ends_at,
            help="move the batch axes first, so that the transformed axes are the last ones",
        )


def _moves(flow: Flow, kernel: Kernel) -> bool:
    """Whether a kernel only moves elements: one that also computes is launched in any layout.

    The kernels that an FFT consists of do not count.
    """
    if steps := steps_of(flow, kernel):
        return all(step.primitive in _MOVES for step in steps)
    return "transpose" in kernel.title or kernel.kind == "copy"


def _transposed(flow: Flow, fft: Step) -> tuple[bool, bool]:
    """Whether the program transposes for an FFT before it, and whether after it.

    Transposes that only cuFFT asks for are not the user's, and those of other FFTs are reported
    there.
    """
    others = {step.span for step in flow.steps.values() if step.primitive == "fft"} - {fft.span}
    maker = flow.producer(fft.operands[0])
    before, after = (
        any(step.primitive == "transpose" and step.span not in others for step in steps)
        for steps in ([maker] if maker is not None else [], flow.used_by(fft.results[0]))
    )
    return before, after


# The fix: join FFTs along several axes.

_FFT = re.compile(r"jax\.numpy\.fft\.(?P<inverse>i?)(?P<real>r?)fft(?P<many>[2n]?)")


@dataclass(frozen=True, slots=True)
class _Fft:
    """A call of a function of `jax.numpy.fft`, with its axes as they are written."""

    call: ast.Call
    operand: ast.expr
    inverse: bool
    real: bool
    axes: tuple[int, ...]

    @staticmethod
    def of(context: FixContext, node: ast.AST) -> _Fft | None:
        """Return `None` for other calls, and for those with lengths or norms."""
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            return None
        match = _FFT.fullmatch(context.called(node.func))
        if match is None or any(keyword.arg not in ("axis", "axes") for keyword in node.keywords):
            return None
        many, argument = match["many"], keyword(node, "axes" if match["many"] else "axis")
        axes = _integers(argument) if argument is not None else {"": (-1,), "2": (-2, -1)}.get(many)
        if axes is None:
            return None
        return _Fft(node, node.args[0], bool(match["inverse"]), bool(match["real"]), axes)


def _integers(node: ast.expr) -> tuple[int, ...] | None:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    values = [value for part in parts if (value := integer(part)) is not None]
    return tuple(values) if len(values) == len(parts) else None


# Fewer kernels, for larger temporaries.
@RULE.fixes(
    "one FFT along several axes instead of one after the other",
    Proof.FEWER,
    trades=frozenset({STORED}),
)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Write `fft(fft(x, axis=0), axis=1)` as `fftn(x, axes=(0, 1))`.

    The inner FFT may have a name, if that is read only once.
    """
    function = context.subject
    if function is None:
        return
    extent = context.finding.range
    chains = [_chain(context, function, node) for node in ast.walk(function)]
    for chain, removed in sorted(chains, key=lambda pair: -len(pair[0])):
        name = _one_for(chain)
        aval = context.aval_of(chain[-1].operand) if name else None
        if aval is None or not any(context.range(fft.call).touches(extent) for fft in chain):
            continue
        outer, inner = chain[0], chain[-1]
        rank = len(aval.shape)
        real = inner if inner.real else outer if outer.real else None
        last = [axis % rank for axis in real.axes] if real is not None else []
        first = sorted(axis % rank for fft in chain if fft is not real for axis in fft.axes)
        axes = (*first, *last)
        if len(set(axes)) == len(axes):
            head = context.text(outer.call.func).rpartition(".")
            text = f"{head[0]}{head[1]}{name}({context.text(inner.operand)}, axes={axes})"
            lines = map(context.without, removed)
            title = f"Transform axes {', '.join(map(str, axes))} with one FFT"
            yield Candidate(title, (context.replace(outer.call, text), *lines))


def _chain(
    context: FixContext, function: FunctionNode, node: ast.AST
) -> tuple[list[_Fft], list[ast.stmt]]:
    """Return nested FFTs, the outermost first, and the statements that name the inner ones."""
    chain: list[_Fft] = []
    removed: list[ast.stmt] = []
    while (fft := _Fft.of(context, node)) is not None:
        chain.append(fft)
        node = fft.operand
        if isinstance(node, ast.Name):
            statement = _only(context, function, node)
            if statement is None or _Fft.of(context, statement.value) is None:
                break
            removed.append(statement)
            node = statement.value
    return chain, removed


def _only(context: FixContext, function: FunctionNode, name: ast.Name) -> ast.Assign | None:
    """Return the assignment that a name reads, if nothing else reads that value.

    Return `None` if the assignment shares a line with other code.
    """
    for index, (before, statement) in enumerate(itertools.pairwise(function.body), 2):
        match before:
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name.id and reads_of(
                target, statement
            ) == [name]:
                is_assigned = stores_of(target, statement)
                if is_assigned or not reads_of(target, *function.body[index:]):
                    return before if context.is_alone(before) else None
    return None


def _one_for(chain: Sequence[_Fft]) -> str:
    """Return the name of the one function that does what a chain does; empty if there is none."""
    if len(chain) < 2 or len({fft.inverse for fft in chain}) > 1:
        return ""
    inverse, real = chain[0].inverse, [i for i, fft in enumerate(chain) if fft.real]
    # The real FFT is applied first (innermost), the real inverse FFT last (outermost).
    if real and real != [0 if inverse else len(chain) - 1]:
        return ""
    return f"{'i' if inverse else ''}{'r' if real else ''}fftn"
