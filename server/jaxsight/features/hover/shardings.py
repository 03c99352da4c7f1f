"""What is said about the sharding of a value, besides its type."""

from __future__ import annotations

import re

from jaxsight.wire.meshes import MANUAL
from jaxsight.wire.observations import Seen

_SIZES = re.compile(r"\[([^\[\]]*)\]")
_SIZE = re.compile(r"(?:^|,)(\d+)(?:@(?:\([^()]*\)|\w+))?")


def notes(value: Seen) -> list[str]:
    """Return the type on one device, the mesh, and how the value differs between devices.

    A value that is not an array, or is the same on all devices, has no notes.
    """
    sharding = value.sharding
    if sharding is None:
        return []
    manual = sharding.mesh.of_type(MANUAL)
    words = []
    if any(sharding.spec):
        words += [f"per device {_local(value)}", f"mesh {sharding.mesh.text}"]
    if sharding.is_given:
        words.append("sharding given, not traced")
    if manual:
        words.append(f"per device of {', '.join(manual)}")
    if sharding.varying:
        words.append(f"varies over {', '.join(sharding.varying)}")
    if sharding.unreduced:
        words.append(f"not yet summed over {', '.join(sharding.unreduced)}")
    return words


def _local(value: Seen) -> str:
    """Return the type on one device."""
    match = _SIZES.search(value.text)
    if match is None or value.sharding is None:
        return value.text
    shape = tuple(int(size) for size in _SIZE.findall(match[1]))
    local = value.sharding.local_shape(shape) if len(shape) == len(value.sharding.spec) else shape
    return f"{value.text[: match.start()]}[{','.join(map(str, local))}]"
