"""Profiles that tests write: the messages of `xplane.proto` and `hlo.proto`, field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.profiles.protobuf import number

MICRO = 1_000_000
"""Picoseconds."""


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Return a message with some fields."""
    parts = bytearray()
    for key, value in fields:
        if isinstance(value, int):
            parts += number(key << 3) + number(value % (1 << 64))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += number(key << 3 | 2) + number(len(data)) + data
    return bytes(parts)


@dataclass(frozen=True)
class Event:
    """An event; times are in microseconds."""

    name: str
    start: float
    duration: float
    stats: Mapping[str, int | str] = field(default_factory=dict)


@dataclass
class MadePlane:
    """A plane with its lines by name."""

    name: str
    lines: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """Statistics that belong to names of events."""
    programs: Mapping[str, bytes] = field(default_factory=dict)
    own: Mapping[str, int | str] = field(default_factory=dict)

    def written(self) -> bytes:
        """Return the plane as an XPlane."""
        events: dict[str, int] = {}
        stats: dict[str, int] = {}

        def stat(name: str, value: int | str) -> bytes:
            key = stats.setdefault(name, len(stats) + 1)
            if isinstance(value, int):
                return message((1, key), (4, value))
            return message((1, key), (7, stats.setdefault(value, len(stats) + 1)))

        lines = []
        for at, (name, found) in enumerate(self.lines.items()):
            body = message((1, at), (2, name), (3, 0))
            for event in found:
                key = events.setdefault(event.name, len(events) + 1)
                start, duration = round(event.start * MICRO), round(event.duration * MICRO)
                body += message(
                    (
                        4,
                        message(
                            (1, key),
                            (2, start),
                            (3, duration),
                            *((4, stat(name, value)) for name, value in event.stats.items()),
                        ),
                    )
                )
            lines.append((3, body))
        own = [(6, stat(name, value)) for name, value in self.own.items()]
        names = [
            (
                4,
                message(
                    (1, key),
                    (
                        2,
                        message(
                            (1, key),
                            (2, name),
                            *(
                                (5, stat(each, value))
                                for each, value in self.named.get(name, {}).items()
                            ),
                        ),
                    ),
                ),
            )
            for name, key in events.items()
        ]
        names += [
            (4, message((1, at), (2, message((1, at), (2, name), (5, message((1, 1), (6, hlo)))))))
            for at, (name, hlo) in enumerate(self.programs.items())
        ]
        texts = [
            (5, message((1, key), (2, message((1, key), (2, name))))) for name, key in stats.items()
        ]
        return message((2, self.name), *lines, *names, *texts, *own)


@dataclass(frozen=True)
class Op:
    """An instruction of a program; `line` is one of `model.py`, or there is none."""

    name: str
    opcode: str = "fusion"
    line: int = 0
    file: str = "/project/model.py"
    function: str = "loss"
    scope: str = "jit(step)/add"
    operands: Sequence[int] = ()


def program(name: str, ops: Sequence[Op]) -> bytes:
    """Return an HloProto whose entry computation has some instructions, numbered from 1."""
    places = list(dict.fromkeys((op.file, op.function, op.line) for op in ops if op.line))
    files = list(dict.fromkeys(place[0] for place in places))
    functions = list(dict.fromkeys(place[1] for place in places))
    frames = message(
        *((1, file) for file in files),
        *((2, function) for function in functions),
        *(
            (3, message((1, files.index(file) + 1), (2, functions.index(function) + 1), (3, line)))
            for file, function, line in places
        ),
        *((4, message((1, at + 1))) for at in range(len(places))),
    )
    written = []
    for at, op in enumerate(ops):
        metadata = (
            message((2, op.scope), (15, places.index((op.file, op.function, op.line)) + 1))
            if op.line
            else b""
        )
        operands = [(36, number(operand)) for operand in op.operands]
        written.append(
            (2, message((1, op.name), (2, op.opcode), (7, metadata), (35, at + 1), *operands))
        )
    computation = message((1, "main"), *written, (5, 1), (6, len(ops)))
    module = message((1, name), (2, "main"), (3, computation), (6, 1), (17, frames))
    return message((1, module))


def write(path: Path, *planes: MadePlane, host: str = "host") -> Path:
    """Write a profile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(message(*((1, plane.written()) for plane in planes), (4, host)))
    return path


STEP = program(
    "jit_step",
    [
        Op("fusion.1", line=3),
        Op("gemm.2", "custom-call", line=4, scope="jit(step)/jvp(Net)/Dense_0/dot_general"),
        Op("all-reduce.3", "all-reduce", line=9, function="step"),
        Op("copy.4", "copy", operands=[2]),
        Op("tanh.5", line=7, file="/env/lib/python3.12/site-packages/flax/linen/linear.py"),
    ],
)


def gpu_plane(device: int, steps: int, slower: float = 1.0) -> MadePlane:
    """Return a GPU's plane: each step has a fusion, a product by two kernels and an all-reduce.

    The all-reduce begins while the product is computed, and goes on for 50 µs after it.
    """
    kernels, transfers = [], []
    of_program = {"hlo_module": "jit_step", "program_id": 7}
    for step in range(steps):
        begin = 1000 * slower * step

        def event(name: str, op: str, start: float, length: float, begin: float = begin) -> Event:
            stats = {"correlation_id": 1 << 40, "hlo_op": op, **of_program}
            return Event(name, begin + slower * start, slower * length, stats)

        kernels += [
            event("loop_add_fusion", "fusion.1", 0, 200),
            event("void cutlass::gemm<128>", "gemm.2", 200, 300),
            event("cutlass::reduce_k", "gemm.2", 500, 100),
            event("loop_copy", "copy.4", 650, 20),
            event("tanh", "tanh.5", 670, 30),
        ]
        transfers += [
            event("ncclDevKernel_AllReduce", "all-reduce.3", 550, 100),
            Event("MemcpyH2D", begin + slower * 800, 40 * slower),
        ]
    lines = {
        "Stream #1(Kernel)": kernels,
        "Stream #2(Kernel,MemcpyH2D)": transfers,
        "XLA Ops": kernels,
    }
    return MadePlane(f"/device:GPU:{device}", lines)


PROGRAMS = MadePlane(
    "/host:metadata", programs={"jit_step(7)": STEP}, own={"jax_version": "0.12.0"}
)


def host_plane(steps: int) -> MadePlane:
    """Return the plane of a host that marks steps all at once, and waits for the last one."""
    marks = [
        Event("train", 10 * step, 10, {"_r": 1, "step_num": step + 100}) for step in range(steps)
    ]
    waits = [
        Event("np.asarray(jax.Array)", 10 * steps, 900),
        Event("$array.py:640 block_until_ready", 10 * steps + 5, 800),
    ]
    return MadePlane("/host:CPU", {"python": [*marks, *waits]})
