"""Estimate the kernels of a program on the CPU from its StableHLO alone.

Nothing is compiled: this is a greedy model of how XLA fuses. An operation is computed within the
kernels that read it, unless its result has to be stored: it is returned, or read by what cannot be
fused, or would be computed again and again. Layouts, vectorization and XLA's simplifications are
not modelled. `docs/dataset-tasks.md` says how often it is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from jaxsight.dataset.tasks.estimating.reading import TextOperation, TextProgram, read_program
from jaxsight.text.names import words

_LIBRARY = frozenset(words("dot_general convolution custom_call fft cholesky triangular_solve"))
_COLLECTIVES = frozenset(
    words("all_reduce all_gather all_to_all collective_permute reduce_scatter")
)
_REGIONS = frozenset(words("case if manual_computation"))
_ALONE = _LIBRARY | _COLLECTIVES | _REGIONS | frozenset(words("sort scatter while"))
"""Operations that are a kernel, or several, whose operands and results are stored."""

_REDUCTIONS = frozenset({"reduce", "reduce_window"})
_EXPENSIVE = _REDUCTIONS | frozenset(
    words(
        """exponential log tanh sine cosine divide power sqrt rsqrt log_plus_one atan2 logistic erf
        exponential_minus_one erf_inv erfc remainder cbrt"""
    )
)
"""Operations that XLA does not compute twice (`InstructionFusion::IsExpensive`, and reductions)."""

_SAME = frozenset(words("reshape bitcast_convert optimization_barrier"))
_NOTHING = _SAME | frozenset(words("constant tuple create_token after_all"))
_SMALL = frozenset(words("constant broadcast_in_dim iota"))
"""Operations that cost no memory access to compute again."""

_SMALL_LOOP = 600
"""Bytes that a loop carries until XLA runs it as one kernel, which fits the split `train` of the
sample; XLA's own limit is 1024 bytes that are accessed in a run of its body."""

_DEEPEST = 50
"""Levels of calls and regions, a choice: rows have at most ten."""


def kinds(stablehlo: str) -> list[str]:
    """Return the estimated kinds of kernels."""
    program = read_program(stablehlo)
    return list(_Block(program.functions.get("main", []), program).kinds())


class _Block:
    """What is computed in a function or a region, with the functions that it calls."""

    def __init__(
        self, operations: list[TextOperation], program: TextProgram, depth: int = 0
    ) -> None:
        self._program = program
        self._depth = depth
        self._by_name: dict[str, TextOperation] = {}
        returned = self._inline(operations, {}, "", depth)
        self._outputs = dict.fromkeys(name for each in returned for name in self._sources(each))
        self._users: dict[str, list[TextOperation]] = defaultdict(list)
        self._computed: list[TextOperation] = []
        later: set[str] = set()
        for each in reversed(self._by_name.values()):
            later.add(each.name)
            is_used = each.name in self._users or each.name in self._outputs
            if is_used and each.opcode not in _NOTHING:
                self._computed.append(each)
                for name in self._operands(each).keys() - later:  # damaged text may have cycles
                    self._users[name].append(each)
        self._computed.reverse()
        self._stored = {each.name for each in self._computed if self._is_alone(each)}
        self._store_repeated()
        self._store_shared()

    def kinds(self) -> Iterator[str]:
        """Yield the kinds of kernels."""
        for each in self._computed:
            if each.name not in self._stored:
                continue
            if each.opcode == "while":
                yield from self._loop(each)
            elif each.opcode in _REGIONS:
                yield from self._of_regions(each)
            elif each.opcode in _LIBRARY:
                yield "library"
            elif each.opcode in _COLLECTIVES:
                yield "collective"
            elif each.opcode == "sort":
                yield "sort"
            elif each.opcode == "transpose" and not self._fused(each):
                yield "copy"
            else:
                yield from ("copy", "fusion") if each.opcode == "scatter" else ("fusion",)
        for name in self._outputs:
            if self._is_given(name):
                yield "copy"

    def _inline(
        self, operations: list[TextOperation], known: dict[str, str], prefix: str, depth: int
    ) -> list[str]:
        """Add operations under unique names, and return the names of what they return."""
        for each in operations:
            self._program.left -= 1
            if self._program.left < 0 or depth > _DEEPEST:
                break
            name, kind = prefix + each.name, each.opcode
            operands = [known.get(operand, prefix + operand) for operand in each.operands]
            if kind == "return":
                return operands
            if kind == "call":
                called = self._program.functions.get(each.callee, [])
                names = {f"arg{at}": operand for at, operand in enumerate(operands)}
                kind, operands = "tuple", self._inline(called, names, f"{name}/", depth + 1)
            self._by_name[name] = TextOperation(name, kind, operands, each.text, each.blocks)
        return []

    def _sources(self, name: str) -> dict[str, None]:
        """Return the names of parameters and operations that a value comes from."""
        seen, waiting = {name: None}, [name]
        found: dict[str, None] = {}
        while waiting:
            each = self._by_name.get(name := waiting.pop())
            if each is None or each.opcode not in _SAME | {"tuple"}:
                found[name] = None
                continue
            read = each.operands if each.opcode == "tuple" else each.operands[:1]
            waiting += [operand for operand in read if operand not in seen]
            seen |= dict.fromkeys(read)
        return found

    def _operands(self, operation: TextOperation) -> dict[str, None]:
        return {name: None for each in operation.operands for name in self._sources(each)}

    def _fused(self, operation: TextOperation) -> list[str]:
        """Return the operands that are computed within the kernel of an operation."""
        names = self._operands(operation)
        return [name for name in names if name in self._by_name and name not in self._stored]

    def _is_given(self, name: str) -> bool:
        """Return whether a value is a parameter or a constant."""
        return name not in self._by_name or self._by_name[name].opcode == "constant"

    def _is_alone(self, operation: TextOperation) -> bool:
        users = self._users[operation.name]
        kinds = {operation.opcode, *(user.opcode for user in users)}
        return operation.name in self._outputs or not kinds.isdisjoint(_ALONE)

    def _store_repeated(self) -> None:
        """Store what fused would be computed again for each element of a larger result."""
        largest: dict[str, int] = {}  # of the arrays that a result is broadcast to
        for each in reversed(self._computed):
            repeats = [user for user in self._users[each.name] if user.opcode == "broadcast_in_dim"]
            sizes = (max(user.elements, largest[user.name]) for user in repeats)
            largest[each.name] = max(sizes, default=0)
        expensive: set[str] = set()
        reduced: set[str] = set()
        for each in self._computed:
            fused = self._fused(each)
            if each.opcode in _EXPENSIVE or not expensive.isdisjoint(fused):
                expensive.add(each.name)
            if each.opcode in _REDUCTIONS or not reduced.isdisjoint(fused):
                reduced.add(each.name)
            is_reduced = any(user.opcode in _REDUCTIONS for user in self._users[each.name])
            is_repeated = each.name in expensive and largest[each.name] > each.elements
            if is_repeated or (is_reduced and each.name in reduced):
                self._stored.add(each.name)

    def _store_shared(self) -> None:
        """Store what several kernels read, unless it reads one array and costs little."""
        kernels: dict[str, set[str]] = {}
        for each in reversed(self._computed):
            readers = {name for user in self._users[each.name] for name in kernels[user.name]}
            arrays = [name for name in self._operands(each) if not self._is_small(name)]
            if len(readers) > 1 and (each.opcode in _EXPENSIVE or len(arrays) > 1):
                self._stored.add(each.name)
            is_stored = each.name in self._stored
            kernels[each.name] = {each.name} if is_stored else set(sorted(readers)[:2])

    def _is_small(self, name: str) -> bool:
        return name in self._by_name and self._by_name[name].opcode in _SMALL

    def _of_regions(self, operation: TextOperation) -> Iterator[str]:
        for block in operation.blocks:
            yield from _Block(block, self._program, self._depth + 1).kinds()

    def _loop(self, loop: TextOperation) -> Iterator[str]:
        """Yield the kinds of kernels of a loop, and of copies of what it changes."""
        body = loop.blocks[-1] if loop.blocks else []
        kept = body[-1].operands if body else []
        carried = zip(loop.carried, loop.operands, kept, strict=False)
        for name, operand, result in carried:
            if name != result and any(map(self._is_given, self._sources(operand))):
                yield "copy"
        inside = list(self._of_regions(loop))
        size = sum(elements * bits // 8 for elements, bits in loop.results())
        is_small = size <= _SMALL_LOOP and not {"library", "sort"} & set(inside)
        yield from ["op"] if is_small else [kind for kind in inside if kind != "copy"]
