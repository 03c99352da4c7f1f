"""How many simulated devices a file needs: as many as its meshes and its `pmap`s have.

Code runs with one device first. When it fails for want of more, its file runs again with as many as
its error asks for. A file that sets the number itself is left alone, and no number is read off a
program that has enough devices.
The messages are those of JAX 0.8 to 0.12 and of NumPy; another wording leaves the user's own error.
"""

from __future__ import annotations

import linecache
import math
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax

from jaxsight.tracer.compat import devices
from jaxsight.wire.messages.requests import Trace

MOST = 512
"""Maximum number of devices; each costs 100 KiB and 2 threads (measured with JAX 0.10.2)."""

_MOST_ROWS = 64
"""The same where an error does not say how many: it may be another mistake."""
_KEPT = 256
"""Maximum number of statements whose demand is remembered."""
_CAUSES = 8

_MESH = re.compile(r"Number of devices (\d+) must .* the product of mesh_shape \(([\d, ]+)\)")
"""`jax.make_mesh` and `mesh_utils.create_device_mesh`."""
_RESHAPED = re.compile(r"cannot reshape array of size (\d+) into shape \(([\w,]+)\)")
"""`np.array(jax.devices()).reshape(2, 4)`; -1 is `newaxis`."""
_MAPPED = re.compile(
    r"squeeze out which has size .* got shape=\(([\d, ]+)\) and dimensions=\((\d+)"
)
"""`jax.pmap` maps an axis that is longer than there are devices. JAX hides its own frames, so that
the statements have to name `pmap`.
"""
_NO_ELEMENT = "list index out of range"
"""`[jax.devices()[i] for i in range(4)]`, or a mesh of `jax.device_count() // 4` by 4: the number
is doubled until there are enough.
"""
_READS_DEVICES = re.compile(r"\bdevices\(|device_count\(")
_SUBSCRIPT = re.compile(r"\bdevices\([^()]*\)\s*\[\s*(:?)\s*(\d+)\s*\]")
"""`jax.devices()[7]`, or `jax.devices()[:8]`, which fails nowhere but has fewer elements."""
_READS = re.compile(r"devices?\b|device_count|[Mm]esh|pmap|[Ss]hard")


class MoreDevices(BaseException):
    """Code of the user needs `count` devices; the request is repeated with them.

    `chunk` is the key of the statement that failed, empty if tracing the function did.
    """

    def __init__(self, count: int, chunk: str = "") -> None:
        super().__init__(count)
        self.count = count
        self.chunk = chunk


class Demands:
    """The numbers of devices that statements and traces have failed for."""

    def __init__(self) -> None:
        self._counts: OrderedDict[object, int] = OrderedDict()

    def add(self, request: Trace, need: MoreDevices) -> None:
        """Remember what failed, until a statement about devices or meshes changes."""
        for key in filter(None, (need.chunk, _identity(request))):
            self._counts[key] = need.count
            self._counts.move_to_end(key)
        while len(self._counts) > _KEPT:
            self._counts.popitem(last=False)

    def of(self, request: Trace) -> int | None:
        """Return the number of devices for a request; `None` if any number is as good.

        A slice that names neither devices nor meshes keeps those that there are: another backend
        would have all of its statements executed again.
        """
        demanded = (chunk.key for chunk in request.chunks if chunk.key in self._counts)
        about = [chunk for chunk in request.chunks if _READS.search(chunk.text) is not None]
        identity = _identity(request)
        counts = [self._counts[key] for key in demanded]
        mesh = request.mesh.size if request.mesh is not None else 1
        declared = mesh if mesh <= MOST else 1
        if not about and not counts and identity not in self._counts and declared == 1:
            return None
        written = [written_in(chunk.text) for chunk in about]
        return max([declared, self._counts.get(identity, 1), *counts, *written])


def wanted(error: BaseException, texts: Sequence[str]) -> int | None:
    """Return how many devices code would need to run that failed with an error.

    Return `None` if the error has another reason, if the code sets the number of devices itself, or
    if the devices are not simulated.

    Args:
        error: what the code raised.
        texts: the statements.
    """
    has_pmap = any("pmap" in text for text in texts)
    needs = [need for each in _causes(error) if (need := _need(each, has_pmap)) is not None]
    # Before the error is known to be about devices, none must be initialized.
    if not needs or any(map(devices.mentioned, texts)):
        return None
    present = devices.simulated()
    if present is None:
        return None
    counts = (need.count(present) for need in needs)
    return next((count for count in counts if present < count <= MOST), None)


@dataclass(frozen=True, slots=True)
class _Need:
    """What an error asks for: `size` devices instead of `present`, or `size` times as many.

    `present` is -1 in the latter case.
    """

    size: int
    present: int = -1

    def count(self, present: int) -> int:
        """Return the number of devices to have instead of `present`, 0 if it is about others."""
        if self.present < 0:
            count = self.size * present
            return count if count <= _MOST_ROWS else 0
        return self.size if self.present == present else 0


def _need(error: BaseException, has_pmap: bool) -> _Need | None:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - user code: the class's __str__
        return None
    for pattern in (_MESH, _RESHAPED):
        if (match := pattern.search(message)) is not None:
            return _Need(math.prod(_sizes(match[2])), int(match[1]))
    if has_pmap and (match := _MAPPED.search(message)) is not None:
        return _Need(_sizes(match[1])[int(match[2])])
    if isinstance(error, IndexError) and message == _NO_ELEMENT:
        return _Need(2) if _READS_DEVICES.search(_innermost_line(error)) is not None else None
    return None


def _innermost_line(error: BaseException) -> str:
    """Return the text of the innermost line outside of JAX that raised an error."""
    line, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if Path(jax.__file__).parent not in Path(file).parents:
            line = linecache.getline(file, trace.tb_lineno)
        trace = trace.tb_next
    return line


def _sizes(shape: str) -> list[int]:
    """Return the sizes of a shape in a message, without `newaxis`, which is -1."""
    return [int(size) for size in re.findall(r"\d+", shape)]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def written_in(text: str) -> int:
    """Return the number of devices that constant subscripts of `jax.devices()` need, at least 1."""
    counts = (int(match[2]) + (not match[1]) for match in _SUBSCRIPT.finditer(text))
    return max((count for count in counts if count <= MOST), default=1)


def _identity(request: Trace) -> object:
    about = tuple(chunk.key for chunk in request.chunks if _READS.search(chunk.text))
    inputs = (request.arguments, request.sizes, request.call, request.mesh, request.mesh_source)
    return request.file, request.function, inputs, about
