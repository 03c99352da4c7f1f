"""Stages of JAX as arguments of `show`: traced, lowered and compiled functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jaxsight.library.kernels import Kernels, lines_at, sources_at
from jaxsight.text.inert import clause
from jaxsight.wire.messages.compiling import ON_DEVICE, Compiled
from jaxsight_source.errors import NotAProgram

if TYPE_CHECKING:
    from jaxsight_source.compat.locations import Location

Call = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]


class CannotShow(TypeError):
    """What was passed is no function that has kernels; the message is one clause."""


def call(fn: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Call:
    """Return the call of a function, or of the program that a stage or a jaxpr is.

    Raises:
        CannotShow: it is neither.
    """
    import jax

    if isinstance(fn, jax.stages.Traced):
        return fn, (), {}  # `kernels_on` takes it as it is
    if callable(fn) and not hasattr(fn, "eqns"):
        return fn, args, kwargs
    from jaxsight_source import program_of

    try:
        given = program_of(fn)  # type: ignore[arg-type]
    except NotAProgram:
        raise CannotShow(f"expected a function, got {clause(repr(fn), 60)}") from None
    bound = given.call()
    return bound.function, bound.bound.args, bound.bound.kwargs


def of_compiled(fn: object, target: str | None) -> Kernels | None:
    """Return the kernels of a compiled function, which are known from its HLO; `None` for others.

    Raises:
        CannotShow: another target is asked for than it is compiled for.
    """
    import jax

    if isinstance(fn, jax.stages.Lowered) and target in (None, jax.default_backend()):
        fn = fn.compile()
    if not isinstance(fn, jax.stages.Compiled):
        return None
    from jaxsight.compiler.compat.xla import memory_of
    from jaxsight.compiler.hlo import read
    from jaxsight.targets.target import parse

    executable: Any = fn.runtime_executable()
    device = executable.local_devices()[0]
    version = str(getattr(device.client, "platform_version", ""))
    gpu = "rocm" if "rocm" in version.lower() else "cuda"
    own = parse({"gpu": gpu}.get(device.platform, device.platform))
    if target is not None and parse(target).name != own.name:
        raise CannotShow(f"it is compiled for {own.name}; pass the function for another target")
    hlo, written = numbered(fn.as_text() or "")
    graph = read(hlo, platform=own.platform, capability=own.capability)
    memory = memory_of(executable)
    kind = "" if own.platform == "cpu" else device.device_kind
    devices = len(executable.local_devices())
    answer = Compiled(
        0, own.name, ON_DEVICE, graph, memory, hlo, 0.0, device_kind=kind, devices=devices
    )
    places = {path: at for path, (_, at) in written.items() if at is not None}
    return Kernels(
        _NAME.sub("", graph.module),
        own.name,
        ON_DEVICE,
        graph,
        hlo,
        sources=lines_at(places),
        expressions=sources_at(places),
        operations={path: operation for path, (operation, _) in written.items()},
        places=places,
        device_kind=kind,
        devices=devices,
        compiled=answer,
        _temporaries=memory.temporaries,
        _memory=lambda: memory,
    )


def numbered(hlo: str) -> tuple[str, dict[str, tuple[str, Location | None]]]:
    """Return HLO with the path of an equation in the metadata of each instruction.

    JAX's own has names such as `jit(f)/mul` and places: each pair of both is an equation. Places
    are in the metadata, or since JAX 0.9 in tables before the program.

    Returns:
        The text, and the primitive and the place of each equation by its path.
    """
    from jaxsight_source.compat.locations import Location

    frames = _frames(hlo)
    paths: dict[tuple[str, Location | None], str] = {}

    def name(match: re.Match[str]) -> str:
        operation = match["name"].rpartition("/")[2]
        fields = {key: text.strip('"') for key, text in _FIELD.findall(match["others"])}
        at = frames.get(fields.get("stack_frame_id", ""))
        if at is None and "source_file" in fields:
            line = int(fields.get("source_line", 0))
            at = Location(
                fields["source_file"],
                line,
                int(fields.get("source_column", 0)),
                int(fields.get("source_end_line", line)),
                int(fields.get("source_end_column", 0)),
            )
        if at is None and "/" not in match["name"]:
            return match[0]  # a parameter's name
        path = paths.setdefault((operation, at), str(len(paths)))
        return f'op_name="eq[{path}]"{match["others"]}}}'

    text = _OPERATION.sub(name, hlo)
    return text, {path: pair for pair, path in paths.items()}


_NAME = re.compile(r"^jit_|^pmap_")
_OPERATION = re.compile(r'op_name="(?P<name>(?:[^"\\]|\\.)*)"(?P<others>[^{}]*)\}')
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[\w.-]+)')
_ROW = re.compile(r"^(?P<number>\d+) (?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|\{(?P<fields>[^{}]*)\})$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def _frames(hlo: str) -> dict[str, Location]:
    """Return the places in the tables before a program, by the number of the stack frame."""
    from jaxsight_source.compat.locations import Location

    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] | None = None
    for line in hlo.split("\n"):
        if line in _TABLES:
            table = tables.setdefault(line, {})
        elif table is not None and (row := _ROW.match(line)) is not None:
            table[row["number"]] = row["text"] if row["text"] is not None else row["fields"]
        elif line.startswith(("%", "ENTRY")):
            break
    files, found = tables.get("FileNames", {}), dict[str, Location]()
    for number, text in tables.get("StackFrames", {}).items():
        location = tables.get("FileLocations", {}).get(
            dict(_FIELD.findall(text)).get("file_location_id", "")
        )
        fields = dict(_FIELD.findall(location or ""))
        if (file := files.get(fields.get("file_name_id", ""))) is not None:
            begin = int(fields.get("line", 0)), int(fields.get("column", 0))
            end = int(fields.get("end_line", begin[0])), int(fields.get("end_column", 0))
            found[number] = Location(file, *begin, *end)
    return found
