"""What is said about the sharding of a value, besides its type."""

from __future__ import annotations

import re

from jaxsight.text.markdown import span
from jaxsight.wire.meshes import MANUAL
from jaxsight.wire.observations import Seen

_SIZES = re.compile(r"\[([^\[\]]*)\]")
_SIZE = re.compile(r"(?:^|,)(\d+)(?:@(?:\([^()]*\)|\w+))?")


def notes(value: Seen) -> list[str]:
    """Return the type on one device, the mesh, and how devices differ, in Markdown.

    A value that is not an array, or is the same on all devices, has no notes.
    """
    sharding = value.sharding
    if sharding is None:
        return []
    words: list[str] = []
    if any(sharding.spec):
        words += [f"per device {span(_local(value))}", f"mesh {span(sharding.mesh.text)}"]
    if sharding.is_given:
        words.append("sharding given, not traced")
    if MANUAL in sharding.mesh.types:
        words.append("shape per device")
    if sharding.varying:
        words.append(f"varies over {_names(sharding.varying)}")
    if sharding.unreduced:
        words.append(f"not yet summed over {_names(sharding.unreduced)}")
    return words


def _names(axes: tuple[str, ...]) -> str:
    return ", ".join(map(span, axes))


def _local(value: Seen) -> str:
    """Return the type on one device."""
    match = _SIZES.search(value.text)
    if match is None or value.sharding is None:
        return value.text
    shape = tuple(int(size) for size in _SIZE.findall(match[1]))
    local = value.sharding.local_shape(shape) if len(shape) == len(value.sharding.spec) else shape
    return f"{value.text[: match.start()]}[{','.join(map(str, local))}]"
