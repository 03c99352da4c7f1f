"""The facts of a compiled function, each with the line of the source that it is about."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import get_args

from jaxsight.figures.figures import AnyFigures
from jaxsight.hlo.metadata import digest
from jaxsight.hlo.text import Computation, parse
from jaxsight.text import units
from jaxsight.wire.kernel_graph import REASONS, CollectiveKind, Graph

_NAMED = frozenset(
    {"f64", "f32", "f16", "bf16", "c64", "c128", "i64", "u64", "i4", "i8", "u4", "u8"}
)
"""Dtypes that cost or lose something where they appear. Others are indices and conditions."""
_ARRAY = re.compile(r"\b(?P<dtype>[a-z]+(?P<bits>\d+)\w*)\[(?P<shape>[^\]]*)\]")
_PLACES = frozenset({"sharding_constraint", "reshard"})
"""Primitives that make the partitioner move what the equation before them computes."""
_REASONS = {reason.replace(" ", "-"): reason for reason in REASONS}
_KINDS: tuple[CollectiveKind, ...] = get_args(CollectiveKind)
_LONGEST = 120
"""Characters of the types of inputs or results, a choice: those of a model's parameters are cut."""
_TYPE = re.compile(r"[a-z]\w*(?:<\w+>)?\[[^\]]*\]")


UNKNOWN = "?"
"""How an amount or a number of iterations that is not known is written."""


def exact(amount: int) -> str:
    """Return bytes in the largest unit that divides them, such as `1536KiB`."""
    if amount < 0:
        return UNKNOWN
    for unit, size in (("GiB", units.GIB), ("MiB", units.MIB), ("KiB", units.KIB)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return f"{amount}B"


def read_amount(text: str) -> int:
    """Return the bytes or the number that `exact` or `str` has written; -1 if unknown.

    Raises:
        ValueError: it is neither.
    """
    amount = -1.0 if text == UNKNOWN else units.parse_size(text)
    if amount is None:
        raise ValueError(f"invalid number {text!r}")
    return int(amount)


@dataclass(frozen=True, slots=True)
class KernelFact:
    """A kernel: its fusion boundary, and the bytes that a launch writes."""

    reason: str
    bytes: int
    line: int = field(default=0, compare=False)
    """The line (from 1) of its fusion boundary; 0 if unknown."""
    kept: int = field(default=0, compare=False)
    """Bytes of its results that wait for other kernels, and of its workspace."""

    def __str__(self) -> str:
        return f"{self.reason.replace(' ', '-')}:{exact(self.bytes)}"

    @staticmethod
    def parse(text: str) -> KernelFact:
        """Read `layout-change:512KiB`."""
        reason, _, amount = text.rpartition(":")
        return KernelFact(_REASONS.get(reason, reason), read_amount(amount))


@dataclass(frozen=True, slots=True)
class CollectiveFact:
    """A collective: its kind, bytes on one device, and mesh axes."""

    kind: CollectiveKind
    bytes: int
    axes: tuple[str, ...] = ()
    runs: int = 1
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        runs = f":{self.runs}" if self.runs != 1 else ""
        return f"{self.kind}:{exact(self.bytes)}:{','.join(self.axes)}{runs}"

    @staticmethod
    def parse(text: str) -> CollectiveFact:
        """Read `all-gather:64MiB:data,model:12`; 12 are its runs.

        Raises:
            ValueError: there is no such collective, or it is malformed.
        """
        kind, amount, axes, *runs = text.split(":")
        named = tuple(axis for axis in axes.split(",") if axis)
        if (known := next((each for each in _KINDS if each == kind), None)) is None:
            raise ValueError(f"unknown collective {kind!r}")
        return CollectiveFact(known, read_amount(amount), named, *map(int, runs[:1]))


@dataclass(frozen=True, slots=True)
class ConstantFact:
    """An array in the executable."""

    bytes: int
    is_folded: bool = False
    """Whether the compiler computed it."""
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return exact(self.bytes) + (":folded" if self.is_folded else "")

    @staticmethod
    def parse(text: str) -> ConstantFact:
        """Read `4MiB:folded`."""
        amount, _, folded = text.partition(":")
        return ConstantFact(read_amount(amount), is_folded=folded == "folded")


@dataclass(frozen=True, slots=True)
class LoopFact:
    """A loop of the compiled program; `trips` is `None` if XLA does not know its iterations."""

    trips: int | None
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return UNKNOWN if self.trips is None else str(self.trips)

    @staticmethod
    def parse(text: str) -> LoopFact:
        """Read `20` or `?`."""
        return LoopFact(None if text == UNKNOWN else int(text))


@dataclass(frozen=True, slots=True)
class DtypeFact:
    """A dtype that a program computes, and the bytes of its largest array."""

    name: str
    bytes: int
    line: int = field(default=0, compare=False)
    """Where the largest array is computed."""
    first: int = field(default=0, compare=False)
    """Where the dtype appears first; 0 also if it is that of an input."""

    @property
    def bits(self) -> int:
        """The size of a number; of a complex one, that of its real part."""
        digits = re.search(r"\d+", self.name)
        return int(digits[0]) // (2 if self.name.startswith("c") else 1) if digits else 0

    @property
    def is_float(self) -> bool:
        """Whether it is a dtype of floats or complex numbers."""
        return self.name.startswith(("f", "bf", "c"))

    def __str__(self) -> str:
        return f"{self.name}:{exact(self.bytes)}"

    @staticmethod
    def parse(text: str) -> DtypeFact:
        """Read `f64:16KiB`."""
        name, _, amount = text.partition(":")
        return DtypeFact(name, read_amount(amount))


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What a function compiles to on a target. Amounts are bytes of one device.

    The line of a fact is not compared, and is not in a lock.
    """

    kernels: tuple[KernelFact, ...] = ()
    launches: int = 0
    """As `Graph.launch_count`: a loop of unknown length counts once."""
    temporaries: int = 0
    """The minimum where the device decides; -1 if unknown."""
    arguments: int = 0
    outputs: int = 0
    traffic: int = 0
    """Bytes that all launches read and write."""
    moved: int = 0
    """Bytes that collectives move in one run."""
    collectives: tuple[CollectiveFact, ...] = ()
    constants: tuple[ConstantFact, ...] = ()
    loops: tuple[LoopFact, ...] = ()
    host: int = 0
    """Bytes of transfers between host and device in one run, without those of callbacks."""
    callbacks: int = 0
    not_reused: int = 0
    """Donated inputs whose buffers no result takes."""
    devices: int = 1
    equations: int = 0
    dtypes: tuple[DtypeFact, ...] = ()
    """Of inputs and equations: floats, complex numbers, integers of 64 and of at most 8 bits."""
    inputs: str = ""
    results: str = ""
    program: str = ""
    """A digest of the optimized HLO without names, places and settings of the code generator."""
    origin: str = field(default="", compare=False)
    """`observed` or `recorded` if nobody wrote the inputs."""
    densest: tuple[int, int] = field(default=(0, 0), compare=False)
    """The line with the most equations, and their number."""


@dataclass(frozen=True, slots=True)
class FactSources:
    """A completely compiled function, as far as facts are taken from it."""

    figures: AnyFigures
    inputs: Sequence[str]
    """The types of its parameters."""
    results: str
    """The types of its results."""
    line: Callable[[str], int | None]
    """Returns the line of an equation by its path, if it is known."""

    @property
    def graph(self) -> Graph:
        """The kernel graph."""
        return self.figures.graph

    def facts(self) -> ProgramFacts:
        """Return the facts."""
        graph, compiled, equations = self.graph, self.figures.compiled, self.figures.equations
        lines = Counter(line for path in equations if (line := self.line(path)))
        return ProgramFacts(
            kernels=self.kernels(),
            launches=graph.launch_count,
            temporaries=compiled.temporaries,
            arguments=sum(value.bytes for value in graph.parameters if not value.on_host),
            outputs=sum(value.bytes for value in graph.outputs if not value.on_host),
            traffic=sum((each.bytes_in + each.bytes_out) * each.launches for each in graph.kernels),
            moved=graph.moved_bytes,
            collectives=self.collectives(),
            constants=self.constants(),
            loops=tuple(LoopFact(loop.trips, self.place((loop.equation,))) for loop in graph.loops),
            host=graph.host_bytes(graph.offloads),
            callbacks=graph.callback_count,
            not_reused=sum(not each.result for each in self.figures.donations),
            devices=compiled.devices,
            equations=len(equations),
            dtypes=self.dtypes(),
            inputs=shortened(", ".join(self.inputs)),
            results=shortened(self.results),
            program=digest(compiled.hlo),
            densest=max(lines.items(), key=itemgetter(1), default=(0, 0)),
        )

    def place(self, paths: Iterable[str]) -> int:
        """Return the line of the first of some equations that has one; else 0."""
        return next((line for path in paths if path and (line := self.line(path))), 0)

    def kernels(self) -> tuple[KernelFact, ...]:
        """Return the kernels, each with the line of its fusion boundary."""
        graph = self.graph
        kept = Counter(dict(enumerate(kernel.workspace for kernel in graph.kernels)))
        for each in graph.temporaries:
            kept[each.producer] += each.value.bytes
        return tuple(
            KernelFact(
                self.figures.reason(kernel),
                kernel.bytes_out,
                self.place((kernel.ends_at, *reversed(kernel.equations), *kernel.feeds)),
                kept[index],
            )
            for index, kernel in enumerate(graph.kernels)
        )

    def collectives(self) -> tuple[CollectiveFact, ...]:
        """Return the collectives, each with the line that it communicates for."""
        after = {
            before.path: self.line(each.path) or 0
            for before, each in pairwise(self.figures.lowered.equations)
            if each.primitive in _PLACES
        }
        found = []
        for kernel in self.graph.collectives:
            if (of := kernel.collective) is not None:
                asked = (after[path] for path in kernel.equations if of.inserted and path in after)
                line = next(asked, 0) or self.place((*kernel.equations, *kernel.feeds))
                found.append(CollectiveFact(of.kind, of.bytes, of.axes, kernel.runs, line))
        return tuple(found)

    def dtypes(self) -> tuple[DtypeFact, ...]:
        """Return the dtypes of inputs and equations by name, without those of indices."""
        found: dict[str, DtypeFact] = {}
        equations = self.figures.lowered.equations
        rows = [
            (self.inputs, 0),
            *((each.outputs, self.line(each.path) or 0) for each in equations),
        ]
        for texts, line in rows:
            for array in _ARRAY.finditer(" ".join(texts)):
                name = array["dtype"]
                if name not in _NAMED and not name.startswith("f8"):
                    continue
                sizes = (int(size.partition("@")[0]) for size in array["shape"].split(",") if size)
                amount = math.prod(sizes) * int(array["bits"]) // 8
                known = found.get(name, DtypeFact(name, -1, line, first=line))
                if amount > known.bytes:
                    found[name] = replace(known, bytes=amount, line=line)
        return tuple(found[name] for name in sorted(found))

    def constants(self) -> tuple[ConstantFact, ...]:
        """Return the constants, each with the line of what reads it first."""
        module = parse(self.figures.compiled.hlo)
        computations = {each.name: each for each in module.computations()}
        return tuple(
            ConstantFact(
                each.value.bytes,
                each.folded,
                self.place((*each.equations, *_readers(computations, each.name))),
            )
            for each in self.graph.constants
        )


def _readers(computations: Mapping[str, Computation], name: str) -> Iterator[str]:
    """Yield the paths of the equations that read an instruction, which may be in a fusion."""
    for computation in computations.values():
        for reader in computation.users.get(name, ()):
            called = computations.get(reader.calls) if reader.opcode == "fusion" else None
            if called is not None:
                parameter = called.parameters()[reader.operands.index(name)]
                yield from _readers({called.name: called}, parameter.name)
            yield from reader.equations


def shortened(types: str) -> str:
    """Return types on one line; of long ones, their number and a digest."""
    text = " ".join(types.split())
    if len(text) <= _LONGEST:
        return text
    arrays = len(_TYPE.findall(text))
    return f"{arrays} arrays, {hashlib.sha256(text.encode()).hexdigest()[:12]}"
