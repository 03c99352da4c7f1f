"""Read an XSpace in parts: a profile as `jax.profiler` writes it, of any size.

The form is `tsl/profiler/protobuf/xplane.proto` of openxla/xla. In a plane, the lines with their
events come before the names of the events: a file is read twice, first all but the events, which
are passed over, then the events of the lines that are wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from jaxsight.files import reading
from jaxsight.profiles import protobuf

_AT_ONCE = 1 << 22
"""Bytes of a line that are read at a time, a choice: events are some tens of bytes long."""
_WINDOW = 1 << 18
"""Bytes of all but events that are read at a time, a choice: heads of lines, names, programs."""
_OF_LINES = 1 << 25
"""Bytes that are kept of all lines of a plane, which are read side by side, a choice."""
_LEAST = 1 << 16
"""Bytes that are kept of a line at least, a choice."""
_MESSAGE = 1 << 20
"""Bytes of a message that is read as a whole, a choice: an event, the name of one, an instruction
without its constants. Longer ones are read in parts or passed over."""
_NAME = 400
"""Bytes of a name that are kept: those of C++ kernels are long, HLO instructions longer still."""
_MOST_NAMES = 500_000
"""Names of events or statistics in a plane, so that a file that has nothing but names is an error
before it fills the memory."""
_MOST_STATS = 1000
"""Statistics of a plane itself, a choice: there are about ten."""
_HEAD = 2 * protobuf.LONGEST
"""Bytes of a field's number and length."""

PROGRAMS = "/host:metadata"
"""The plane whose names of events are programs, with their HLO (`kMetadataPlaneName` in
`xla/tsl/profiler/utils/xplane_schema.cc`)."""

# XSpace
_PLANES, _HOSTS = 1, 4
# XPlane
_NAME_OF_PLANE, _LINES, _EVENT_NAMES, _STAT_NAMES, _STATS = 2, 3, 4, 5, 6
# XLine
_NAME_OF_LINE, _START, _EVENTS = 2, 3, 4
# XEvent, after which only `num_occurrences` may follow
_EVENT, _OFFSET, _DURATION, _STATS_OF_EVENT = 0x08, 0x10, 0x18, 0x22
# XEventMetadata
_TITLE, _SHORT_TITLE, _STATS_OF_NAME = 2, 4, 5
# XStat
_STAT, _UNSIGNED, _SIGNED, _TEXT, _BLOB, _REFERENCE = 1, 3, 4, 5, 6, 7


class NotAProfile(Exception):
    """A file is not a profile, or it is cut off; the message says where."""


class FilePart(NamedTuple):
    """The bytes of a message in a file."""

    start: int
    end: int


class XEvent(NamedTuple):
    """An event of a line; times are in picoseconds, and start with the Unix epoch."""

    name: int
    """The key of its name in the plane."""
    start: int
    duration: int
    stats: bytes
    """Its statistics, each a field of a message."""


@dataclass(frozen=True, slots=True)
class EventName:
    """What several events of a plane have in common."""

    title: str
    short: str
    stats: bytes = b""
    """Statistics, on TPUs those of the HLO instruction."""


@dataclass(frozen=True, slots=True)
class XLine:
    """A thread, a stream or a queue of a plane."""

    name: str
    start: int
    """In picoseconds since the epoch; events are relative to it."""
    part: FilePart
    at_once: int
    """Bytes of it that are read at a time."""


@dataclass(slots=True)
class XPlane:
    """A host, or one of its devices."""

    name: str = ""
    lines: list[XLine] = field(default_factory=list)
    events: dict[int, EventName] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)
    """Names of statistics, and texts that statistics refer to."""
    own: list[bytes] = field(default_factory=list)
    """Statistics of the plane itself."""
    programs: dict[str, FilePart] = field(default_factory=dict)
    """Where programs are, by name and number, such as `jit_step(18)`."""

    def wanted(self, names: Collection[str]) -> dict[int, str]:
        """Return the statistics of the plane with one of these names, by key."""
        return {key: name for key, name in self.stats.items() if name in names}


class XSpace:
    """A profile that is open, with its planes; `events` reads those of a line."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        """Read all but the events.

        Raises:
            NotAProfile: it has another form.
            UnreadableError: as `reading.opened`.
        """
        self.bytes = Bytes(file)
        """The file, to read programs from."""
        self.path = path
        self.hosts: list[str] = []
        self.planes: list[XPlane] = []
        whole = FilePart(0, self.bytes.size)
        try:
            for number, value in self.bytes.fields(whole):
                if number == _PLANES and isinstance(value, FilePart):
                    self.planes.append(self._plane(value))
                elif number == _HOSTS and isinstance(value, FilePart):
                    self.hosts.append(protobuf.text(self.bytes.read(value, _NAME), _NAME))
                elif number > _HOSTS:
                    raise ValueError(f"field {number} is none of a profile's")
        except (ValueError, IndexError) as error:
            raise NotAProfile(f"{path.name} is not a profile of XLA: {error}") from error
        if not self.planes:
            raise NotAProfile(f"{path.name} is not a profile of XLA: it is empty")

    def events(self, line: XLine, ignored: set[int]) -> Iterator[XEvent]:
        """Yield the events of a line, but for those with certain names.

        Args:
            line: a line of a plane.
            ignored: names, to which the caller may add while it iterates.

        Raises:
            NotAProfile: the file has changed, or has another form.
        """
        try:
            yield from self._events(line, ignored)
        except (ValueError, IndexError) as error:
            about = f"{self.path.name}, events of {line.name or 'a line'}"
            raise NotAProfile(f"{about}: {error}") from error

    def _events(self, line: XLine, ignored: set[int]) -> Iterator[XEvent]:
        """Yield events: the loop that takes the time, so that numbers are read in place."""
        key = (_EVENTS << 3) | protobuf.BYTES
        start = line.start
        for data, end in self.bytes.chunks(line.part, line.at_once):
            at = 0
            while at < end:
                tag = data[at]
                length = data[at + 1] if at + 1 < end else 0x80
                if tag != key or length >= 0x80:  # a field of the line, or a long event
                    number, at, stop = _field(data, at)
                    if number != _EVENTS:
                        at = stop
                        continue
                else:
                    at += 2
                    stop = at + length
                name = offset = duration = 0
                stats = stop
                while at < stop:
                    if (tag := data[at]) == _STATS_OF_EVENT:
                        stats = at
                        break
                    value = data[at + 1]
                    at += 2
                    if value >= 0x80:
                        value &= 0x7F
                        shift = 7
                        while True:
                            byte = data[at]
                            at += 1
                            value |= (byte & 0x7F) << shift
                            if byte < 0x80:
                                break
                            shift += 7
                    if tag == _EVENT:
                        if value in ignored:
                            break
                        name = value
                    elif tag == _OFFSET:
                        offset = value
                    elif tag == _DURATION:
                        duration = value
                else:
                    tag = 0
                if tag != _EVENT:
                    yield XEvent(name, start + offset, duration, data[stats:stop])
                at = stop

    def _plane(self, part: FilePart) -> XPlane:
        plane = XPlane()
        lines: list[FilePart] = []
        for number, value in self.bytes.fields(part):
            if not isinstance(value, FilePart):
                continue
            if number == _NAME_OF_PLANE:
                plane.name = protobuf.text(self.bytes.read(value, _NAME), _NAME)
            elif number == _LINES:
                lines.append(value)
            elif number == _EVENT_NAMES and plane.name == PROGRAMS:
                if (title := self.bytes.inside(value, 2, _TITLE)) is not None:
                    name = protobuf.text(self.bytes.read(title, _NAME), _NAME)
                    plane.programs[name] = value
            elif number == _EVENT_NAMES:
                self._event_name(value, plane)
            elif number == _STAT_NAMES:
                entry = dict(protobuf.fields(self.bytes.read(value, _MESSAGE)))
                body = entry.get(2, b"")
                if isinstance(body, bytes):
                    title_of = dict(protobuf.fields(body)).get(_TITLE)
                    plane.stats[protobuf.integer(entry.get(1))] = protobuf.text(title_of, _NAME)
            elif number == _STATS and len(plane.own) < _MOST_STATS:
                plane.own.append(self.bytes.read(value, _NAME))
            if max(len(plane.events), len(plane.stats)) > _MOST_NAMES:
                raise ValueError(f"more than {_MOST_NAMES:,} names in one plane")
        at_once = max(_LEAST, min(_AT_ONCE, _OF_LINES // max(1, len(lines))))
        plane.lines += [self._line(line, at_once) for line in lines]
        return plane

    def _line(self, part: FilePart, at_once: int) -> XLine:
        """Return a line; its events, which come after its name and its start, are passed over."""
        name, start = "", 0
        for number, value in self.bytes.fields(part):
            if number == _NAME_OF_LINE and isinstance(value, FilePart):
                name = protobuf.text(self.bytes.read(value, _NAME), _NAME)
            elif number == _START and isinstance(value, int):
                start = protobuf.signed(value)
            elif number == _EVENTS:
                break
        return XLine(name, start * 1000, part, at_once)

    def _event_name(self, part: FilePart, plane: XPlane) -> None:
        """Add an entry of the map of names."""
        entry = dict(protobuf.fields(self.bytes.read(part, _MESSAGE)))
        body = entry.get(2, b"")
        if not isinstance(body, bytes):
            return
        title = short = ""
        stats = bytearray()
        for number, value in protobuf.fields(body):
            if number == _TITLE:
                title = protobuf.text(value, _NAME)
            elif number == _SHORT_TITLE:
                short = protobuf.text(value, _NAME)
            elif number == _STATS_OF_NAME and isinstance(value, bytes) and len(value) < _NAME:
                stats += bytes([_STATS_OF_EVENT]) + protobuf.number(len(value)) + value
        plane.events[protobuf.integer(entry.get(1))] = EventName(title, short, bytes(stats))


class Bytes:
    """A file as if it was in memory; a few megabytes of it are."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.size = file.seek(0, 2)
        self.done = 0
        """Bytes that `chunks` has yielded."""
        self._data = b""
        self._base = 0

    def read(self, part: FilePart, most: int) -> bytes:
        """Return the first bytes of a part.

        Raises:
            ValueError: the file ends before.
        """
        start, end = part.start, min(part.end, part.start + most)
        if not (self._base <= start and end <= self._base + len(self._data)):
            self._file.seek(start)
            self._data = self._file.read(max(_WINDOW, end - start))
            self._base = start
        data = self._data[start - self._base : end - self._base]
        if len(data) < end - start:
            raise ValueError("it is cut off")
        return data

    def fields(self, part: FilePart) -> Iterator[tuple[int, int | FilePart]]:
        """Yield the fields of a message: numbers, and where other values are.

        Raises:
            ValueError, IndexError: these bytes are not a message.
        """
        at, end = part
        while at < end:
            head = self.read(FilePart(at, min(end, at + _HEAD)), _HEAD)
            key, used = protobuf.varint(head, 0)
            if key & 7 == protobuf.VARINT:
                value, used = protobuf.varint(head, used)
                at += used
                yield key >> 3, value
                continue
            length, used = protobuf.length_at(head, used, key & 7)
            start = at + used
            at = start + length
            if at > end:
                raise ValueError("it is cut off" if end == self.size else "a field is too long")
            yield key >> 3, FilePart(start, at)

    def inside(self, part: FilePart, *numbers: int) -> FilePart | None:
        """Return where a field of a field… of a message is; `None` if there is none.

        Raises:
            ValueError, IndexError: these bytes are not a message.
        """
        for number, value in self.fields(part):
            if number == numbers[0] and isinstance(value, FilePart):
                found = self.inside(value, *numbers[1:]) if numbers[1:] else value
                if found is not None:
                    return found
        return None

    def chunks(self, part: FilePart, most: int) -> Iterator[tuple[bytes, int]]:
        """Yield the fields of a message in pieces of the file: bytes, and their end there.

        Each piece has at most `most` bytes and whole fields; one that is longer is passed over.

        Raises:
            ValueError: the file ends before.
        """
        at, end = part
        while at < end:
            length = min(most, end - at)
            self._file.seek(at)
            data = self._file.read(length)
            if len(data) < length:
                raise ValueError("it is cut off")
            whole = length if at + length == end else _whole(data)
            if whole:
                self.done += whole
                yield data, whole
                at += whole
                continue
            key, used = protobuf.varint(data, 0)
            size, used = protobuf.length_at(data, used, key & 7)
            at += used + size


def _whole(data: bytes) -> int:
    """Return where the last field ends that a piece has all of."""
    at = 0
    limit = len(data) - _HEAD
    while at < limit:
        # Most fields are short events.
        length = data[at + 1]
        if data[at] == (_EVENTS << 3) | protobuf.BYTES and length < 0x80:
            stop = at + 2 + length
        else:
            _, _, stop = _field(data, at)
        if stop > len(data):
            return at
        at = stop
    return at


def _field(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number of a field, and where its value begins and ends."""
    key, at = protobuf.varint(data, at)
    if key & 7 == protobuf.VARINT:
        _, end = protobuf.varint(data, at)
        return key >> 3, at, end
    length, at = protobuf.length_at(data, at, key & 7)
    return key >> 3, at, at + length


def stats(data: bytes, wanted: Mapping[int, str], texts: Mapping[int, str]) -> dict[str, str | int]:
    """Return statistics of an event.

    Args:
        data: as in `XEvent`.
        wanted: names by key.
        texts: what values may refer to.

    Raises:
        ValueError, IndexError: these bytes are not statistics.
    """
    found: dict[str, str | int] = {}
    at, end = 0, len(data)
    while at < end:
        length = data[at + 1]
        if data[at] != _STATS_OF_EVENT or length >= 0x80:
            number, start, at = _field(data, at)
            if number != _STATS_OF_EVENT >> 3:
                continue
        else:
            start = at + 2
            at = start + length
        key, begin = (data[start + 1], start + 2) if data[start] == _STAT << 3 else (0, start)
        if key >= 0x80:
            key, begin = protobuf.varint(data, start + 1)
        if (name := wanted.get(key)) is None or begin >= at:
            continue
        kind = data[begin] >> 3
        if kind == _REFERENCE:
            found[name] = texts.get(protobuf.varint(data, begin + 1)[0], "")
        elif kind in (_TEXT, _BLOB):
            size, begin = protobuf.varint(data, begin + 1)
            found[name] = protobuf.text(data[begin : begin + size], _NAME)
        elif kind in (_UNSIGNED, _SIGNED):
            found[name] = protobuf.signed(protobuf.varint(data, begin + 1)[0])
    return found


@contextmanager
def opened(path: Path) -> Iterator[XSpace]:
    """Open a profile.

    Raises:
        NotAProfile: it has another form, or is cut off.
        UnreadableError: as `reading.opened`.
    """
    with reading.opened(path) as file:
        yield XSpace(file, path)
