"""The instructions that one launch contains: those of a fusion, an asynchronous start or a call."""

from __future__ import annotations

from jaxsight.hlo.text import Computation, HloModule, Instruction

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
