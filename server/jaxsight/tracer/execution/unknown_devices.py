"""Say where a program is traced for a number of devices that nobody has named.

`Mesh(jax.devices(), ("x",))` has the devices of the machine that runs it. Without a target that has
a number, the program is traced for as many as it needs at least, which may be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from jaxsight.meshes.compat import meshes
from jaxsight.tracer.compat import devices
from jaxsight.tracer.execution.device_errors import READS_DEVICES
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.observations import Caveat

_NUMBERED = re.compile(r"devices\([^()]*\)\s*\[[\w\s:]*\]")
_CHOOSES = re.compile(r"\bif\b")
_DISTRIBUTES = re.compile(r"[Mm]esh|pmap|[Ss]harding")


def reads_all(text: str) -> bool:
    """Return whether code reads how many devices there are, or all of them."""
    return READS_DEVICES.search(_NUMBERED.sub("", text)) is not None


def caveat(
    chunks: Sequence[Chunk],
    names: Mapping[str, object],
    jaxpr: object,
    modules: Mapping[str, str],
    importer_of: Callable[[str], Chunk | None],
) -> Caveat | None:
    """Return the caveat of a program for a guessed number of devices.

    Return `None` if it has no mesh of that number, nor makes one for another number. A caveat about
    a module of the project is at its import, and names its file and line.

    Args:
        chunks: the slice as it was executed.
        names: its names.
        jaxpr: the program.
        modules: the texts of the project's modules that it imports, by file.
        importer_of: returns the chunk that imports a file.
    """
    reading, where = next((chunk for chunk in chunks if reads_all(chunk.text)), None), ""
    if reading is None:
        file = next((file for file, text in modules.items() if reads_all(text)), None)
        reading = importer_of(file) if file is not None else None
        if file is None or reading is None:
            return None
        lines = enumerate(modules[file].split("\n"), 1)
        first = next((number for number, line in lines if reads_all(line)), 1)
        where = f"imports `{PurePath(file).name}`, whose line {first} "
    count = devices.simulated()
    if count is None:
        return None
    chooses = _CHOOSES.search(reading.text) is not None and any(
        _DISTRIBUTES.search(chunk.text) for chunk in chunks
    )
    if chooses or count in {
        *(mesh.size for mesh in meshes.meshes_in(names.values())),
        *meshes.mesh_sizes(jaxpr),
    }:
        return Caveat(reading.id, f"{where}{_reason(count)}")
    return None


def note(chunks: Sequence[Chunk]) -> str:
    """Return a note for the error of a program for a guessed number of devices, or nothing."""
    count = devices.simulated() if any(reads_all(chunk.text) for chunk in chunks) else None
    return f"the program {_reason(count)}" if count is not None else ""


def _reason(count: int) -> str:
    many = "1 device" if count == 1 else f"{count} devices"
    return f"sees {many}: neither it nor the target names their number"
