"""The report of a profile: sections with a table each, for the terminal and a document."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from jaxsight.figures.record import fields
from jaxsight.profiles.places import CodePlace, LibraryPlace
from jaxsight.profiles.profile import Profile, ProfiledDevice, ProfiledKernel, Share
from jaxsight.profiles.sources import ProfiledSources
from jaxsight.text import units
from jaxsight.text.layout import aligned, cut

T = TypeVar("T")

DEAREST = 10
"""Rows of a table, a choice: what is worth a look; JSON has all."""
_TASKS = 20
"""Rows of what hosts did, a choice: some for each of a few hosts."""
_CODE = 60
"""Characters of a line of code, a choice: a table has to fit on a screen."""
_VERSIONS = (("jax_version", "JAX"), ("jaxlib_version", "jaxlib"))
_SLOWER = 1.02
"""How much slower a device has to be for a note, a choice: less is noise."""
_LEAST = 0.0005
"""The least share of the time that is a note: less is shown as `0.0 %`."""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A table of a report."""

    title: str
    columns: tuple[str, ...]
    sides: str
    """For each column `l` or `r`: left- or right-aligned."""
    rows: tuple[tuple[str, ...], ...]
    more: int = 0
    """Rows that were left out."""


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What is shown of a profile."""

    title: str
    recorded: str
    """What it was recorded with."""
    sections: tuple[ReportSection, ...]
    notes: tuple[str, ...]


def report(profile: Profile, sources: ProfiledSources) -> ProfileReport:
    """Return the report of a profile."""
    tasks = [
        (host.name, task.value, units.count(calls, "time"), units.time(seconds))
        for host in profile.hosts
        for task, calls, seconds in host.work
    ]
    sections = [
        _lines(profile, sources),
        _functions(profile, sources),
        _shares("module", profile.scopes, profile),
        _shares("program", profile.programs, profile),
        _kernels(profile, sources),
        _steps(profile),
        _devices(profile),
        _collectives(profile),
        _section("hosts", ("host", "", "", "time"), "llrr", tasks, tuple, _TASKS),
    ]
    named = dict(profile.versions)
    recorded = max((host.seconds for host in profile.hosts), default=0.0)
    facts = [
        f"host {units.some([host.name for host in profile.hosts], 4)}",
        f"run {profile.run}" if profile.run else "",
        f"{units.time(recorded)} recorded" if recorded else "",
        *(f"{name} {named[key]}" for key, name in _VERSIONS if key in named),
    ]
    return ProfileReport(
        headline(profile),
        ", ".join(filter(None, facts)),
        tuple(section for section in sections if section.rows),
        tuple(_notes(profile, sources)),
    )


def headline(profile: Profile) -> str:
    """Return the figures of a whole profile in one line."""
    if not (devices := profile.devices):
        return f"{units.MEASURED} no kernels were executed"
    parts = []
    slowest = max(devices, key=lambda device: device.step_seconds)
    if slowest.steps:
        steps = units.count(len(slowest.steps), "step")
        parts.append(f"{steps} of {units.time(slowest.step_seconds)}")
    busy = sum(device.busy_seconds for device in devices)
    span = sum(device.seconds for device in devices)
    parts.append(f"{_device_names(profile)} busy {units.percent(busy / span if span else 0)}")
    parts.append(f"{units.time(profile.kernel_seconds)} in kernels")
    return f"{units.MEASURED} {' · '.join(parts)}"


def _device_names(profile: Profile) -> str:
    """Return `GPU:0`, `8 GPUs` or `16 GPUs of 2 hosts`."""
    devices = profile.devices
    if len(devices) == 1:
        return devices[0].name
    kinds = sorted({device.name.partition(":")[0] for device in devices})
    hosts = len({device.host for device in devices})
    counted = units.count(len(devices), kinds[0] if len(kinds) == 1 else "device")
    return f"{counted} of {units.count(hosts, 'host')}" if hosts > 1 else counted


def kernel_place(kernel: ProfiledKernel, sources: ProfiledSources) -> str:
    """Return the place of a kernel: `model.py:12`, `for model.py:12`, `library flax`."""
    match kernel.place:
        case CodePlace() as place:
            return f"{'for ' if kernel.is_for else ''}{sources.name(place)}"
        case LibraryPlace(library):
            return f"library {library}"
        case None:
            return "transfer" if kernel.is_transfer else "no line"


def _notes(profile: Profile, sources: ProfiledSources) -> Iterator[str]:
    """Yield how much of the time has which kind of place, and what the report cannot know."""
    if not (whole := profile.kernel_seconds):
        return
    at_lines = sum(share.seconds for share in profile.lines.values())
    others = [(f"in {library}", share) for library, share in profile.libraries.items()][:3]
    others += [("in transfers", profile.transfers), ("without a line", profile.unmatched)]
    yield ", ".join(
        [
            f"{units.percent(at_lines / whole)} of the time in kernels at lines of your files",
            *(
                f"{units.percent(share.seconds / whole)} {where}"
                for where, share in others
                if share.seconds >= _LEAST * whole
            ),
        ]
    )
    slowest = spread(profile)
    if slowest is not None and slowest[1] >= _SLOWER:
        name, times = _device(slowest[0], profile), slowest[1]
        yield f"steps of {name} take {times:.2f} times those of the median device"
    if any(len(kernel.lines) > 1 for kernel in profile.kernels):
        yield "the time of a fused kernel is shown at the line of its result"
    for file in sorted(sources.changed):
        yield f"{file} has changed since the profile was recorded"
    yield from profile.notes


def _section(
    title: str,
    columns: Sequence[str],
    sides: str,
    items: Collection[T],
    row: Callable[[T], tuple[str, ...]],
    most: int = DEAREST,
) -> ReportSection:
    """Return a table with a row for each of the first items."""
    rows = tuple(map(row, islice(items, most)))
    return ReportSection(title, tuple(columns), sides, rows, max(0, len(items) - most))


_FIGURES = ("time", "share", "calls")
"""The titles of `_figures`."""


def _lines(profile: Profile, sources: ProfiledSources) -> ReportSection:
    def row(line: tuple[CodePlace, Share]) -> tuple[str, ...]:
        place, share = line
        text = cut(sources.text(place), _CODE)
        return *_figures(share, profile), sources.name(place), place.function, text

    columns = (*_FIGURES, "line", "function", "")
    return _section("lines", columns, "rrrlll", profile.lines.items(), row)


def _functions(profile: Profile, sources: ProfiledSources) -> ReportSection:
    """Return the time of functions; none if each has one line."""
    functions = profile.functions
    first = {(p.file, p.function or "?"): p for p in reversed(profile.lines)}
    if len(functions) == len(profile.lines):
        functions = {}

    def row(function: tuple[tuple[str, str], Share]) -> tuple[str, ...]:
        (file, name), share = function
        place = sources.name(first[file, name]).rpartition(":")[0]
        return *_figures(share, profile), name, place

    columns = (*_FIGURES, "function", "file")
    return _section("functions", columns, "rrrll", functions.items(), row)


def _shares(title: str, shares: Mapping[str, Share], profile: Profile) -> ReportSection:
    def row(named: tuple[str, Share]) -> tuple[str, ...]:
        return *_figures(named[1], profile), named[0]

    return _section(f"{title}s", (*_FIGURES, title), "rrrl", shares.items(), row)


def _kernels(profile: Profile, sources: ProfiledSources) -> ReportSection:
    width = 6 if any(kernel.title for kernel in profile.kernels[:DEAREST]) else 5

    def row(kernel: ProfiledKernel) -> tuple[str, ...]:
        cells = kernel.name, kernel_place(kernel, sources), cut(kernel.title, _CODE)
        return (*_figures(Share().plus(kernel), profile), *cells)[:width]

    columns = (*_FIGURES, "kernel", "line", "on the device")[:width]
    return _section("kernels", columns, "rrrlll"[:width], profile.kernels, row)


def _steps(profile: Profile) -> ReportSection:
    """Return the steps of the slowest devices."""
    devices = sorted(
        (device for device in profile.devices if device.steps),
        key=lambda device: -device.step_seconds,
    )

    def row(device: ProfiledDevice) -> tuple[str, ...]:
        times = [step.seconds for step in device.steps]
        busy = sum(step.busy_seconds for step in device.steps)
        slowest = max(device.steps, key=lambda step: step.seconds)
        return (
            _device(device, profile),
            device.steps_of,
            str(len(times)),
            units.time(statistics.median(times)),
            units.time(min(times)),
            f"{units.time(slowest.seconds)} (step {slowest.number})",
            units.percent(1 - busy / sum(times)) if sum(times) else "",
        )

    columns = ("device", "step", "steps", "median", "fastest", "slowest", "idle")
    return _section("steps", columns, "llrrrrr", devices, row)


def _devices(profile: Profile) -> ReportSection:
    """Return busy and idle time of the devices, those that are idle the most first."""
    devices = [device for device in profile.devices if device.seconds]
    ranked = sorted(devices, key=lambda device: device.busy_seconds / device.seconds)

    def row(device: ProfiledDevice) -> tuple[str, ...]:
        return (
            _device(device, profile),
            units.time(device.seconds),
            units.percent(device.busy_seconds / device.seconds),
            units.time(device.idle_between),
            units.time(device.idle_inside),
        )

    columns = ("device", "time", "busy", "idle between programs", "idle inside")
    return _section("devices", columns, "lrrrr", ranked, row)


def _collectives(profile: Profile) -> ReportSection:
    """Return the time of collectives, and how much of it nothing else was done."""
    devices = [device for device in profile.devices if device.collective_seconds]
    devices.sort(key=lambda device: -device.exposed_seconds)

    def row(device: ProfiledDevice) -> tuple[str, ...]:
        return (
            _device(device, profile),
            units.time(device.collective_seconds),
            units.percent(device.collective_seconds / device.seconds),
            units.percent(1 - device.exposed_seconds / device.collective_seconds),
        )

    columns = ("device", "collectives", "share", "overlapped")
    return _section("collectives", columns, "lrrr", devices, row)


def spread(profile: Profile) -> tuple[ProfiledDevice, float] | None:
    """Return the device with the longest steps, and its step as a multiple of the median one."""
    devices = [device for device in profile.devices if device.steps]
    if len(devices) < 2:
        return None
    slowest = max(devices, key=lambda device: device.step_seconds)
    middle = statistics.median(device.step_seconds for device in devices)
    return (slowest, slowest.step_seconds / middle) if middle else None


def _device(device: ProfiledDevice, profile: Profile) -> str:
    return f"{device.host} {device.name}" if len(profile.hosts) > 1 else device.name


def _figures(share: Share, profile: Profile) -> tuple[str, str, str]:
    part = _part(share.seconds, profile)
    return units.time(share.seconds), units.percent(part), f"{share.calls:,}"


def _part(seconds: float, profile: Profile) -> float:
    return seconds / profile.kernel_seconds if profile.kernel_seconds else 0.0


def as_text(made: ProfileReport) -> str:
    """Return a report as a text."""
    lines = [made.title, made.recorded]
    for section in made.sections:
        lines += ["", section.title]
        table = (section.columns, *section.rows)
        lines += [f"  {row}" for row in aligned(table, section.sides)]
        if section.more:
            lines.append(f"  and {section.more} more")
    lines += ["", *made.notes]
    return "\n".join(lines) + "\n"


# All figures of a profile as JSON; times are in seconds.


def record(profile: Profile, sources: ProfiledSources) -> dict[str, object]:
    """Return a profile as JSON.

    `seconds` of kernels, lines and functions are sums over all devices. `share` is of
    `kernel_seconds`. `path` is where a file is on this machine, if it is.
    """
    slowest = spread(profile)
    return {
        "files": list(profile.paths),
        "run": profile.run,
        "taken": profile.taken or None,
        "versions": dict(profile.versions),
        "kernel_seconds": profile.kernel_seconds,
        "line_seconds": sum(share.seconds for share in profile.lines.values()),
        "library_seconds": sum(share.seconds for share in profile.libraries.values()),
        "transfer_seconds": profile.transfers.seconds,
        "unmatched_seconds": profile.unmatched.seconds,
        "lines": [
            {
                **_place(place, sources),
                "function": place.function,
                "text": sources.text(place),
                **_share(share, profile),
            }
            for place, share in profile.lines.items()
        ],
        "functions": [
            {"file": file, "function": name, **_share(share, profile)}
            for (file, name), share in profile.functions.items()
        ],
        "modules": _named(profile.scopes, profile),
        "programs": _named(profile.programs, profile),
        "libraries": _named(profile.libraries, profile),
        "kernels": [_kernel(kernel, profile, sources) for kernel in profile.kernels],
        "devices": [_device_record(device) for device in profile.devices],
        "slowest_device": (
            {"host": slowest[0].host, "device": slowest[0].name, "of_median": slowest[1]}
            if slowest
            else None
        ),
        "hosts": [
            {
                "host": host.name,
                "recorded_seconds": host.seconds or None,
                "work": [
                    {"kind": work.name.lower(), "calls": calls, "seconds": seconds}
                    for work, calls, seconds in host.work
                ],
            }
            for host in profile.hosts
        ],
        "changed_files": sorted(sources.changed),
        "notes": list(profile.notes),
    }


def _place(place: CodePlace, sources: ProfiledSources) -> dict[str, object]:
    path = sources.path(place.file)
    return {"file": place.file, "line": place.line, "path": str(path) if path else None}


def _share(share: Share, profile: Profile) -> dict[str, object]:
    part = _part(share.seconds, profile)
    return {"seconds": share.seconds, "share": part, **fields(share, "calls kernels")}


def _named(shares: Mapping[str, Share], profile: Profile) -> list[dict[str, object]]:
    return [{"name": name, **_share(share, profile)} for name, share in shares.items()]


def _kernel(
    kernel: ProfiledKernel, profile: Profile, sources: ProfiledSources
) -> dict[str, object]:
    place = kernel.place
    where = _place(place, sources) if isinstance(place, CodePlace) else {}
    return {
        "name": kernel.name,
        "title": kernel.title or None,
        "program": kernel.program or None,
        "opcode": kernel.opcode or None,
        **fields(kernel, "calls seconds"),
        "share": _part(kernel.seconds, profile),
        "file": None,
        "line": None,
        "path": None,
        **where,
        "library": place.library if isinstance(place, LibraryPlace) else None,
        "lines": [fields(each, "file line") for each in kernel.lines],
        "for_line": kernel.is_for,
        "scope": kernel.scope,
        "collective": kernel.is_collective,
        "transfer": kernel.is_transfer,
    }


def _device_record(device: ProfiledDevice) -> dict[str, object]:
    return {
        "host": device.host,
        "device": device.name,
        **fields(device, "seconds busy_seconds kernel_seconds"),
        "idle_seconds": device.idle_between + device.idle_inside,
        "idle_between_programs_seconds": device.idle_between,
        "idle_inside_programs_seconds": device.idle_inside,
        "collective_seconds": device.collective_seconds,
        "exposed_collective_seconds": device.exposed_seconds,
        "steps_of": device.steps_of or None,
        "steps": [fields(step, "number seconds busy_seconds") for step in device.steps],
    }
