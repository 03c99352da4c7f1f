"""The instructions that one launch contains: those of a fusion, an asynchronous start or a call."""

from __future__ import annotations

from jaxsight.hlo.text import Computation, HloModule, Instruction

_INDEXED = frozenset(
    {
        "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "pad",
        "reduce", "reduce-window", "reverse", "scatter", "slice", "transpose",
    }
)  # fmt: skip
"""Operations that read their operands at other indices than their own."""
_FEW = 16
"""Instructions of a fusion below which each counts once, chosen: most fusions are spared a look."""
_MOST_INDICES = 4096
"""Indices of one instruction that are told apart, chosen: with fewer, less code is counted than is
generated; with more, sets that may double with each instruction take long."""
_WITH_BODY = frozenset({"fusion", "fusion-start", "async-start"})
_WRAPPERS = frozenset({"bitcast", "tuple", "reshape", "copy"})
_CONVERSIONS = frozenset({"bitcast", "reshape", "convert"})
"""Operations that a result passes through after the one that it is named after: of a computation
within, and of the launch itself."""


class Fused:
    """The computations within one launch, each parsed once.

    They are as many as there are instructions in the program, so they are dropped with this.
    """

    def __init__(self, instruction: Instruction, module: HloModule) -> None:
        self.instruction = instruction
        self._module = module
        self._computations: dict[str, Computation | None] = {}
        self._known: dict[str, list[Instruction]] = {}
        names = _names(instruction)
        self.inside = [inner for name in names for inner in self._instructions(name)]
        """All instructions of the launch, or the instruction itself if it contains none."""
        if not names:
            self.inside = [instruction]
        self.opcodes = frozenset([inner.opcode for inner in self.inside])
        """The operations of `inside`."""
        self.body = self.called(instruction) if instruction.opcode in _WITH_BODY else None
        """The computation of a fusion or an asynchronous start."""

    @property
    def emitted(self) -> int:
        """How many instructions code is generated for: each for every index it is read at.

        Readers with different indices call a function of what they read
        (`PartitionedComputation` in `xla/codegen/emitters/computation_partitioner.h`), and these
        calls are inlined. In a chain of updates, of which each reads the one before it at its own
        index and at another one, they are exponentially many.
        """
        if self.body is None or len(self.inside) < _FEW:
            return len(self.inside)
        read_at: dict[str, set[int]] = {root.name: {0} for root in self.body.results()}
        for reader in reversed(self.body.instructions):
            indices = read_at.get(reader.name, set())
            for number, operand in enumerate(reader.operands):
                known = read_at.setdefault(operand, set())
                if len(known) >= _MOST_INDICES:
                    continue
                at = hash((reader.opcode, *reader.operands[:number], reader.attributes))
                # The array that is updated is read where it stays.
                updated = reader.opcode == "dynamic-update-slice" and number == 0
                shifted = reader.opcode in _INDEXED and not updated
                known |= {hash((at, index)) for index in indices} if shifted else indices
        return sum(map(len, read_at.values()))

    def roots(self) -> list[Instruction]:
        """Return the operations that compute the results, one for each result."""
        names = _names(self.instruction)
        computation = self.computation(names[0]) if names else None
        if computation is None or computation.root is None:
            return [self.instruction]
        return [
            self._root(computation.source(result, _CONVERSIONS, until="parameter"))
            for result in computation.results()
        ]

    def called(self, instruction: Instruction) -> Computation | None:
        """Return the computation that a fusion calls."""
        return self.computation(instruction.calls)

    def computation(self, name: str) -> Computation | None:
        """Return a computation of the module."""
        if name not in self._computations:
            self._computations[name] = self._module.computation(name)
        return self._computations[name]

    def _root(self, instruction: Instruction) -> Instruction:
        """Return the operation that computes the result, skipping tuples and bitcasts."""
        depth = 0  # XLA's computations never contain themselves, a damaged text may
        while (names := _names(instruction)) and depth < 50:
            computation = self.computation(names[0])
            root = computation.root if computation is not None else None
            if computation is None or root is None:
                break
            instruction = computation.source(root, _WRAPPERS, until="parameter")
            depth += 1
        return instruction

    def _instructions(self, name: str) -> list[Instruction]:
        """Return the instructions of a computation, with those of fusions and calls in it."""
        cached = self._known.get(name)
        if cached is not None:
            return cached
        instructions = self._known[name] = list[Instruction]()
        computation = self.computation(name)
        for instruction in computation.instructions if computation is not None else ():
            if names := _names(instruction):
                for inner in names:
                    instructions += self._instructions(inner)
            else:
                instructions.append(instruction)
        return instructions


def _names(instruction: Instruction) -> tuple[str, ...]:
    """Return the computations that run within a launch of an instruction."""
    if instruction.opcode in ("fusion", "call", "async-start"):
        roles = ("calls", "to_apply", "called_computations")
        return next(filter(None, map(instruction.called.get, roles)), ())
    if instruction.opcode == "while":
        return instruction.called.get("body", ()) + instruction.called.get("condition", ())
    return ()
