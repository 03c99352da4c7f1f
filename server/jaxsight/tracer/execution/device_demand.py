"""How many simulated devices a file needs: as many as its meshes and its `pmap`s have.

Code runs with one device first. When it fails for want of more, its file runs again with as many as
its error asks for (`device_errors`). A file that sets the number itself is left alone, and no
number is read off a program that has enough devices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.lru import Recent
from jaxsight.tracer.compat import devices
from jaxsight.tracer.execution import device_errors
from jaxsight.tracer.failures import OwnNote
from jaxsight.wire.device_mentions import mentions_devices, names_devices
from jaxsight.wire.messages.requests import Trace

MOST = 512
"""Maximum number of devices; each costs 100 KiB and 2 threads (measured with JAX 0.10.2).
`MOST_DEVICES` of a target is the same."""

_MOST_ROWS = 64
"""The same where an error does not say how many: it may be another mistake."""
_KEPT = 256
"""Statements whose demand is remembered; one that is forgotten fails once more first."""

_LIST = r"(?:local_)?devices\([^()]*\)"
_END = r"\s*(?:#.*)?$"
_NAMED = re.compile(
    rf"\b(\w+)\s*=\s*(?:np\.(?:as)?array\()?(?:jax\.)?{_LIST}\)?{_END}", re.MULTILINE
)
"""`devices = jax.devices()`, a name whose subscripts are looked for too."""
_CONSTANT = re.compile(rf"^(\w+)\s*(?::\s*int\s*)?=\s*(\d+){_END}", re.MULTILINE)
"""`N = 4`, which a subscript may name."""
_INDEX = r"\s*\[\s*(?:(\w*)\s*:\s*)?(\w+)\s*\]"
"""`[7]`, `[:8]` and `[4:8]`, which fail nowhere if they are slices, but have fewer elements."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A number of devices that code asks for."""

    count: int
    is_guess: bool = False
    """Whether its error says only that it needs more."""


class MoreDevices(BaseException):
    """Code of the user needs more devices; the request is repeated with them.

    `chunk` is the key of the statement that failed, empty if tracing the function did.
    """

    def __init__(self, demand: Demand, chunk: str = "") -> None:
        super().__init__(demand)
        self.demand = demand
        self.chunk = chunk


class Demands:
    """The numbers of devices that statements and traces have failed for."""

    def __init__(self) -> None:
        self._demands: Recent[object, Demand] = Recent(_KEPT)

    def add(self, request: Trace, need: MoreDevices) -> None:
        """Remember what failed, until a statement about devices or meshes changes."""
        for key in filter(None, (need.chunk, _identity(request))):
            self._demands.put(key, need.demand)

    def of(self, request: Trace) -> Demand | None:
        """Return the number of devices for a request; `None` if its text asks for none.

        A slice that names neither devices nor meshes may keep those that there are: another backend
        would have all of its statements executed again.
        """
        keys = [*(chunk.key for chunk in request.chunks), _identity(request)]
        demands = [known for key in keys if (known := self._demands.get(key)) is not None]
        if not demands and not names_devices(request):
            return None
        demands.append(Demand(written_in([chunk.text for chunk in request.chunks])))
        # Of equal counts, prefer one that is certain.
        return max(demands, key=lambda demand: (demand.count, not demand.is_guess))


def wanted(error: BaseException, texts: Sequence[str], target: int = 0) -> Demand | None:
    """Return how many devices code would need to run that failed with an error.

    Return `None` if the error has another reason, if the code sets the number of devices itself, or
    if the devices are not simulated.

    Args:
        error: what the code raised; if it lacks devices of the target, it gets a note.
        texts: the statements.
        target: the number of devices of the target, if code cannot have more.
    """
    needs = device_errors.needs(error, texts)
    # Before the error is known to be about devices, none must be initialized.
    if not needs or (not target and any(map(devices.mentioned, texts))):
        return None
    present = devices.simulated()
    if present is None:
        return None
    if target:
        if present == target and any(need.is_about(present) for need in needs):
            many = "1 device" if target == 1 else f"{target} devices"
            error.add_note(OwnNote(f"the target has {many}"))
        return None
    demands = (Demand(need.count(present, _MOST_ROWS), need.is_guess) for need in needs)
    return next((demand for demand in demands if present < demand.count <= MOST), None)


def demand(error: BaseException, request: Trace, chunk: str = "") -> None:
    """Raise `MoreDevices` if a statement, a function or its inputs failed for want of devices.

    Args:
        chunk: the key of the statement that failed.
    """
    texts = [chunk.text for chunk in request.chunks]
    more = wanted(error, texts, request.devices)
    if more is not None:
        raise MoreDevices(more, chunk) from None


def written_in(texts: Sequence[str]) -> int:
    """Return the number of devices that subscripts of `jax.devices()` need, at least 1."""
    if not any("devices" in text for text in texts):
        return 1
    names = {match[1] for text in texts for match in _NAMED.finditer(text)}
    constants = {match[1]: int(match[2]) for text in texts for match in _CONSTANT.finditer(text)}
    lists = "|".join([_LIST, *(rf"\b{name}" for name in sorted(names))])
    subscript = re.compile(rf"(?:{lists}){_INDEX}")
    counts = [1]
    for text in texts:
        for match in subscript.finditer(text):
            number = constants.get(match[2], int(match[2]) if match[2].isdecimal() else 0)
            # `devices[7]` needs eight devices, and so does `devices[:8]`.
            counts.append(number + (match[1] is None and match[2].isdecimal()))
    return max(count for count in counts if count <= MOST)


def _identity(request: Trace) -> object:
    about = tuple(chunk.key for chunk in request.chunks if mentions_devices(chunk.text))
    return request.file, request.function, request.arguments, request.sizes, about
