"""Read the shardings that the partitioner chose, from HLO before it is partitioned.

XLA prints a sharding in two formats (`xla/hlo/ir/hlo_sharding.cc`, `named_sharding.cc`):

* `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`: an array of devices with a dimension for each of
  the value's, and further ones for devices that have the same part; also `{replicated}`;
* `{mesh['a'=2,'b'=4], [{'a'}, {}]}`: axes of a mesh for each dimension.

The first is converted to axes of the program's meshes.
Values that are local to a device, inside `shard_map`, are left out, and so are those that are
divided in a way that is not along whole axes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from jaxsight.compiler.hlo.distributed import groups
from jaxsight.hlo.shapes import arrays, dims, split_at_commas, without_layout
from jaxsight.hlo.text import Computation, HloModule, Instruction, parse
from jaxsight.hlo.text import instruction as parsed_instruction
from jaxsight.wire.meshes import Chosen, Divided, Mesh, Rematerialization, Spec

_TILES = re.compile(r"devices=\[([\d,]+)\]")
_KINDS = re.compile(r"last_tile_dims=\{([^}]*)\}")
_QUOTED = re.compile(r"'([^']*)'(:\(\d+\)\d+)?")
_SIZED = re.compile(r"'([^']*)'=(\d+)")
_REPLICATED = "{replicated}"
_MOST = 20_000
"""Computations that are read, chosen: of more, as calls may be nested, values have no sharding."""


@dataclass(frozen=True, slots=True)
class HloSharding:
    """A sharding of a value in terms of axes."""

    spec: Spec
    unreduced: tuple[str, ...] = ()


def read(text: str, meshes: Sequence[Mesh] = ()) -> tuple[Chosen, ...]:
    """Return the shardings of the values of a program, one for each equation and type.

    Args:
        text: the HLO before the program is partitioned.
        meshes: the meshes of the program.
    """
    module = parse(text)
    if module.entry is None:
        return ()
    reader = _Reader(module, tuple(meshes))
    reader.read(module.entry)
    return tuple(
        Chosen(
            path,
            type_,
            sharding.spec,
            sharding.unreduced,
            reader.operands.get((path, type_), ()),
        )
        for (path, type_), sharding in reader.chosen.items()
        if sharding is not None
    )


def sharding(text: str, rank: int, meshes: Sequence[Mesh] = ()) -> HloSharding | None:
    """Return the sharding of an array from its text, or `None` if it is not along whole axes.

    Args:
        text: the sharding as HLO prints it, in braces.
        rank: the number of dimensions of the value.
        meshes: the meshes of the program.
    """
    inside = text.strip()[1:-1]
    pieces = [piece.strip() for piece in split_at_commas(inside)]
    if pieces[-1] == "replicated":
        return HloSharding(())
    if pieces[0].startswith("mesh["):
        return _named(pieces, rank, meshes)
    if (tiles := _TILES.match(inside)) is not None:
        return _tiled(inside, dims(tiles[1]), rank, meshes)
    return None


def tiles(text: str, rank: int) -> tuple[int, ...]:
    """Return how many parts each dimension of an array is divided into, from its sharding's text.

    All are 1 for a sharding that is not understood.
    """
    whole = (1,) * rank
    if (devices := _TILES.search(text)) is not None:
        return (*dims(devices[1]), *whole)[:rank]
    inside = text.strip()[1:-1]
    pieces = [piece.strip() for piece in split_at_commas(inside)]
    sizes = dict(_SIZED.findall(pieces[0]))
    dimensions = next((piece for piece in pieces[1:] if piece.startswith("[")), "[]")[1:-1]
    parts = tuple(
        math.prod(
            int(part.rpartition(")")[2]) if part else int(sizes.get(name, 1))
            for name, part in _QUOTED.findall(dimension)
        )
        for dimension in split_at_commas(dimensions)
    )
    return (*parts, *whole)[:rank]


@dataclass(slots=True)
class _Reader:
    module: HloModule
    meshes: tuple[Mesh, ...]
    chosen: dict[tuple[str, str], HloSharding | None] = field(default_factory=dict)
    """By path and type; `None` if it is not known, or several results differ."""
    operands: dict[tuple[str, str], tuple[Divided, ...]] = field(default_factory=dict)

    def read(self, entry: Computation) -> None:
        """Read all values that are reached from the entry computation."""
        for number, parameter in enumerate(entry.parameters()):
            self._add(f"parameter {number}", parameter)
        root = entry.root
        if root is not None:
            # What has no sharding is replicated (`SpmdPartitioner::PreprocessSharding`).
            unsharded = [(value.text, _REPLICATED) for value in arrays(root.shape)]
            for number, (value, text) in enumerate(_leaves(root) or unsharded):
                self.chosen[f"output {number}", value] = self._sharding(value, text)
        waiting = [(entry, "")]
        visited = {(entry.name, "")}
        while waiting and len(visited) < _MOST:
            computation, prefix = waiting.pop()
            for instruction in computation.instructions:
                path = _within(prefix, instruction.equation)
                if path and instruction.opcode not in ("parameter", "tuple"):
                    self._add(path, instruction, computation.operands(instruction))
                for name, inner in self._called(instruction, prefix, path):
                    called = self.module.computation(name)
                    if called is not None and (name, inner) not in visited:
                        visited.add((name, inner))
                        waiting.append((called, inner))

    def _called(
        self, instruction: Instruction, prefix: str, path: str
    ) -> Iterator[tuple[str, str]]:
        """Yield the computations that an instruction runs, with what is before their paths."""
        if instruction.opcode == "call":
            # The names of a function's operations begin in the function.
            for name in instruction.called.get("to_apply", ()):
                yield name, path or prefix
        elif instruction.opcode in ("while", "conditional"):
            for name in itertools.chain(*instruction.called.values()):
                yield name, prefix

    def _add(
        self, path: str, instruction: Instruction, operands: Sequence[Instruction] = ()
    ) -> None:
        own: dict[str, HloSharding | None] = {}
        for value, text in _leaves(instruction):
            chosen = self._sharding(value, text)
            own[value] = chosen if own.get(value, chosen) == chosen else None
        read = tuple(
            Divided(type_, divided.spec)
            for operand in operands
            for type_, text in _leaves(operand)
            if own and (divided := self._sharding(type_, text)) is not None
        )
        for value, chosen in own.items():
            self.chosen[path, value] = chosen
            self.operands[path, value] = read

    def _sharding(self, value: str, text: str) -> HloSharding | None:
        return sharding(text, value.count(",") + (not value.endswith("[]")), self.meshes)


def _leaves(instruction: Instruction) -> list[tuple[str, str]]:
    """Return the type and the sharding of each array of an instruction's value."""
    text = instruction.attribute("sharding")
    if not text:
        return []
    values = [value.text for value in arrays(instruction.shape)]
    if not instruction.shape.startswith("("):
        return list(zip(values, [text], strict=False))
    if text.startswith("{{"):
        texts = [piece.strip() for piece in split_at_commas(text[1:-1])]
        return list(zip(values, texts, strict=True)) if len(texts) == len(values) else []
    return [(value, text) for value in values]


def _within(prefix: str, path: str) -> str:
    """Return the path of an equation from the program; in a function, it begins there: `body/3`."""
    if not path or path[0].isdigit():
        return path
    return f"{prefix}/{path}" if prefix else ""


def _named(pieces: list[str], rank: int, meshes: Sequence[Mesh]) -> HloSharding | None:
    """Return a sharding that names axes of the program, unless some are manual or divided."""
    dimensions: list[tuple[str, ...]] = []
    unreduced: tuple[str, ...] = ()
    for piece in pieces[1:]:
        names = _QUOTED.findall(piece)
        if piece.startswith("manual") or any(part for _, part in names):
            return None
        if piece.startswith("["):
            dimensions = [
                tuple(name for name, _ in _QUOTED.findall(dimension))
                for dimension in split_at_commas(piece[1:-1])
                if dimension.strip()
            ]
        elif piece.startswith("unreduced"):
            unreduced = tuple(name for name, _ in names)
    if len(dimensions) not in (0, rank):
        return None
    spec = tuple(dimensions) if any(dimensions) else ()
    known = {name for mesh in meshes for name, _ in mesh.axes}
    used = {name for names in (*spec, unreduced) for name in names}
    return HloSharding(spec, unreduced) if used <= known or not known else None


def _tiled(
    inside: str, sizes: tuple[int, ...], rank: int, meshes: Sequence[Mesh]
) -> HloSharding | None:
    """Return a sharding of an array of devices in terms of the program's meshes."""
    after = inside[inside.index("]") + 1 :]
    devices = groups.device_ids(after.partition(" ")[0].removeprefix("<="))
    if len(devices) != math.prod(sizes):
        return None
    kinds = ["replicated"] if "last_tile_dim_replicate" in after else []
    if (others := _KINDS.search(after)) is not None:
        kinds = [kind.strip() for kind in others[1].split(",")]
    if "manual" in kinds or len(sizes) - len(kinds) != rank:
        return None
    places = itertools.product(*map(range, sizes))
    summed = [rank + number for number, kind in enumerate(kinds) if kind == "unreduced"]
    wanted = [*range(rank), *summed]
    tiles = {
        device: tuple(place[dimension] for dimension in wanted)
        for device, place in zip(devices, places, strict=True)
    }
    return _of_tiles(tiles, rank, meshes)


def _of_tiles(
    tiles: Mapping[int, tuple[int, ...]], rank: int, meshes: Iterable[Mesh]
) -> HloSharding | None:
    """Return the sharding over the first mesh over whose devices an array is divided like this.

    Args:
        tiles: for each device, the index of its part in each dimension, then in what is unreduced.
        rank: the number of dimensions.
        meshes: the meshes of the program.
    """
    for mesh in meshes:
        if set(groups.coordinates(mesh)) == tiles.keys():
            count = max(map(len, tiles.values()))
            axes = [_axes_of(tiles, dimension, mesh) for dimension in range(count)]
            known = [names for names in axes if names is not None]
            if len(known) == count:
                spec = tuple(known[:rank]) if any(known[:rank]) else ()
                return HloSharding(spec, tuple(itertools.chain(*known[rank:])))
    return None


def _axes_of(
    tiles: Mapping[int, tuple[int, ...]], dimension: int, mesh: Mesh
) -> tuple[str, ...] | None:
    """Return the axes that a dimension is divided over, major to minor."""
    places = groups.coordinates(mesh)
    at_place = {place: tiles[device][dimension] for device, place in places.items()}
    origin = (0,) * len(mesh.axes)
    strides = []
    for axis, (name, size) in enumerate(mesh.axes):
        next_one = (*origin[:axis], 1, *origin[axis + 1 :])
        stride = at_place[next_one] - at_place[origin] if size > 1 else 0
        strides.append((stride, size, name))
    expected = 1
    divided = sorted((each for each in strides if each[0]), key=itemgetter(0))
    for stride, size, _ in divided:
        if stride != expected:
            return None
        expected *= size
    for place, tile in at_place.items():
        if tile != sum(at * stride for at, (stride, _, _) in zip(place, strides, strict=True)):
            return None
    return tuple(name for _, _, name in reversed(divided))


# Find the values that the partitioner replicated to reshard them, in what XLA logs.
#
# XLA logs them as warnings (`PartitionedHlo::ReshardNoCache` in
# `xla/service/spmd/spmd_partitioner.cc`), which it does not write to standard error if
# `TF_CPP_MIN_LOG_LEVEL` is above 1.


_LOGGED = re.compile(
    r"\[spmd\] Involuntary full rematerialization\..*? from sharding (?P<source>\{.*?\}) to "
    r"(?P<target>\{.*?\}) (?:efficiently|without .*?) for HLO operation:? "
    r"(?P<instruction>[^\n]*)",
    re.IGNORECASE,
)


def rematerialized(log: str) -> tuple[Rematerialization, ...]:
    """Return the values in XLA's log, without duplicates.

    Their equation is `parameter 0` for a parameter of the program, and empty if it is not known.
    """
    values: dict[Rematerialization, None] = {}
    for match in _LOGGED.finditer(log):
        logged = parsed_instruction(f" {match['instruction']}", 0)
        if logged is None:
            continue
        path = logged.equation
        if logged.opcode == "parameter" and not path and logged.op_name:
            path = f"parameter {logged.number}"
        elif not path[:1].isdigit():
            path = ""  # It is in a function, and its name begins there.
        value = Rematerialization(
            path, _whole(logged.shape, match["source"]), match["source"], match["target"]
        )
        values[value] = None
    return tuple(values)


def _whole(part: str, sharding: str) -> str:
    """Return the type of a whole value from that of one device's part, which XLA logs.

    Dimensions that the devices do not divide evenly are those of the padded value.
    """
    text = without_layout(part)
    name, _, inside = text.partition("[")
    sizes = dims(inside)
    divided = tiles(sharding, len(sizes))
    return f"{name}[{','.join(str(size * by) for size, by in zip(sizes, divided, strict=True))}]"
