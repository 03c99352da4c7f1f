"""How many simulated devices a file needs: as many as its meshes and its `pmap`s have.

Code runs with one device first. When it fails for want of more, its file runs again with as many as
its error asks for. A file that sets the number itself is left alone, and no
number is read off a program that has enough devices.

`Mesh(jax.devices(), ("x",))` has the devices of the machine that runs it. Without a target that has
a number, the program is traced for as many as it needs at least, which may be one: answers say so.

The messages are those of JAX 0.8 to 0.12 and of NumPy; another wording leaves the user's own error.
"""

from __future__ import annotations

import linecache
import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import jax

from jaxsight.lru import Recent
from jaxsight.meshes.compat import meshes
from jaxsight.tracer.compat import devices
from jaxsight.tracer.failures import OwnNote
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.device_mentions import mentions_devices, names_devices
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import Caveat

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

_NUMBERED = re.compile(r"devices\([^()]*\)\s*\[[\w\s:]*\]")
_CHOOSES = re.compile(r"\bif\b")
_DISTRIBUTES = re.compile(r"[Mm]esh|pmap|[Ss]harding")
_CAUSES = 8
"""Causes of an error that are read; without a limit, a cyclic chain never ends."""
_MORE = 2
"""How many times as many devices to try if an error does not say how many it asks for.

Programs ask for powers of two; a larger step would skip the number that they run with.
"""

_MESH = re.compile(r"Number of devices (\d+) must .* the product of mesh_shape \(([\d, ]+)\)")
"""`jax.make_mesh` and `mesh_utils.create_device_mesh`."""
_RESHAPED = re.compile(r"cannot reshape array of size (\d+) into shape \(([\w,]+)\)")
"""`np.array(jax.devices()).reshape(2, 4)`; -1 is `newaxis`."""
_MAPPED = re.compile(
    r"squeeze out which has size .* got shape=\(([\d, ]+)\) and dimensions=\((\d+)"
)
"""`jax.pmap` maps an axis that is so many times as long as there are devices.

JAX hides its own frames, so that the statements have to name `pmap`.
"""
_NO_ELEMENT = "list index out of range"
"""`[jax.devices()[i] for i in range(4)]`, or a mesh of `jax.device_count() // 4` by 4: the number
is doubled until there are enough.
"""
_COUNT = r"(?:\blen\(\s*(?:jax\.)?(?:local_)?devices\([^()]*\)\s*\)|\b(?:local_)?device_count\(\))"
READS_DEVICES = re.compile(r"\b(?:local_)?devices\(|device_count\(")
_COUNTED = re.compile(rf"\b(\w+)\s*=\s*(?:jax\.)?{_COUNT}\s*(?:#.*)?$", re.MULTILINE)
"""`n = jax.device_count()`, a name that a condition may compare."""
_OWN_CHECKS = (AssertionError, RuntimeError, ValueError, SystemExit)
"""What programs raise that count the devices themselves."""
_CONDITION_LINES = 4
"""Lines above a `raise` that are searched for its condition; farther ones are of others."""
_ABOVE, _NOT_ABOVE = (">", "!="), ("<=", "==")
"""Signs of an assertion, and of the condition of a `raise`, that ask for more than the number."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


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
    found = needs(error, texts)
    # Before the error is known to be about devices, none must be initialized.
    if not found or (not target and any(map(devices.mentioned, texts))):
        return None
    present = devices.simulated()
    if present is None:
        return None
    if target:
        if present == target and any(need.is_about(present) for need in found):
            error.add_note(OwnNote(f"the target has {_many(target)}"))
        return None
    demands = (Demand(need.count(present, _MOST_ROWS), need.is_guess) for need in found)
    return next((demand for demand in demands if present < demand.count <= MOST), None)


def demand(error: BaseException, request: Trace, chunk: str = "") -> None:
    """Raise `MoreDevices` if a statement, a function or its inputs failed for want of devices.

    Args:
        chunk: the key of the statement that failed.
    """
    more = wanted(error, [chunk.text for chunk in request.chunks], request.devices)
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


def _reads_all(text: str) -> bool:
    """Return whether code reads how many devices there are, or all of them."""
    return READS_DEVICES.search(_NUMBERED.sub("", text)) is not None


def guess_caveat(
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
    reading, where = next((chunk for chunk in chunks if _reads_all(chunk.text)), None), ""
    if reading is None:
        file = next((file for file, text in modules.items() if _reads_all(text)), None)
        reading = importer_of(file) if file is not None else None
        if file is None or reading is None:
            return None
        lines = enumerate(modules[file].split("\n"), 1)
        first = next((number for number, line in lines if _reads_all(line)), 1)
        where = f"imports `{PurePath(file).name}`, whose line {first} "
    count = devices.simulated()
    if count is None:
        return None
    distributes = any(_DISTRIBUTES.search(chunk.text) for chunk in chunks)
    chooses = distributes and _CHOOSES.search(reading.text) is not None
    sizes = [mesh.size for mesh in meshes.meshes_in(names.values())]
    if not chooses and count not in (*sizes, *meshes.mesh_sizes(jaxpr)):
        return None
    return Caveat(reading.id, f"{where}{_reason(count)}")


def guess_note(chunks: Sequence[Chunk]) -> str:
    """Return a note for the error of a program for a guessed number of devices, or nothing."""
    count = devices.simulated() if any(_reads_all(chunk.text) for chunk in chunks) else None
    return f"the program {_reason(count)}" if count is not None else ""


def _reason(count: int) -> str:
    return f"sees {_many(count)}: neither it nor the target names their number"


def _many(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


@dataclass(frozen=True, slots=True)
class Need:
    """What an error asks for: `size` devices instead of `present`, or `size` times as many.

    `present` is -1 in the latter case, and 0 for `size` devices instead of any number.
    """

    size: int
    present: int = -1
    is_guess: bool = False
    """Whether it may need more than that, or less."""

    def count(self, present: int, most: int) -> int:
        """Return the number of devices to have instead of `present`, 0 if it is about others.

        Args:
            most: the maximum if the error does not say how many it asks for.
        """
        if self.present < 0:
            count = self.size * present
            return count if count <= most else 0
        return self.size if self.is_about(present) else 0

    def is_about(self, present: int) -> bool:
        """Return whether it may be about so many devices."""
        return self.present in (-1, 0, present)


def needs(error: BaseException, texts: Sequence[str]) -> list[Need]:
    """Return what an error and its causes ask for.

    Args:
        error: what the code raised.
        texts: its statements.
    """
    return [need for each in _causes(error) if (need := _need(each, texts)) is not None]


def _need(error: BaseException, texts: Sequence[str]) -> Need | None:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - user code: the class's __str__
        return None
    for pattern in (_MESH, _RESHAPED):
        if (match := pattern.search(message)) is not None:
            size = math.prod(_sizes(match[2]))
            if size == 0 and pattern is _MESH:
                return Need(_MORE, is_guess=True)  # `jax.device_count() // 2`
            return Need(size, int(match[1]))
    if (match := _MAPPED.search(message)) is not None and any("pmap" in text for text in texts):
        return Need(_sizes(match[1])[int(match[2])])
    if isinstance(error, IndexError) and message == _NO_ELEMENT:
        line = linecache.getline(*_innermost(error))
        return Need(_MORE, is_guess=True) if READS_DEVICES.search(line) is not None else None
    if isinstance(error, _OWN_CHECKS):
        return _checked(error, texts)
    return None


def _checked(error: BaseException, texts: Sequence[str]) -> Need | None:
    """Return the number that a failed condition of the program compares with that of devices.

    The condition is on the line that raised the error, or on one of the lines before it.
    """
    file, raising = _innermost(error)
    if not file:
        return None
    names = [match[1] for text in texts for match in _COUNTED.finditer(text)]
    counted = "|".join([rf"(?:jax\.)?{_COUNT}", *(rf"\b{name}\b" for name in dict.fromkeys(names))])
    compared = re.compile(
        rf"(?:{counted})\s*(?P<after>==|!=|>=|<=|<|>|%)\s*(?P<number>\d+)\b"
        rf"|\b(?P<first>\d+)\s*(?P<before>==|!=|>=|<=|<|>)\s*(?:{counted})"
    )
    for back in range(_CONDITION_LINES):
        line = linecache.getline(file, raising - back)
        # Only the line itself may be an `assert`; above a `raise`, an `if` decides.
        if back and not line.lstrip().startswith("if "):
            continue
        if (match := compared.search(line)) is not None:
            sign = match["after"] or _MIRRORED.get(match["before"], match["before"])
            number = int(match["number"] or match["first"])
            asserted = line.lstrip().startswith("assert")
            return Need(number + (sign in (_ABOVE if asserted else _NOT_ABOVE)), 0)
    return None


def _innermost(error: BaseException) -> tuple[str, int]:
    """Return the file and the line of the innermost frame outside of JAX that raised an error."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code.co_filename, line) for frame, line in frames]
    own = [each for each in places if Path(jax.__file__).parent not in Path(each[0]).parents]
    return own[-1] if own else ("", 0)


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
