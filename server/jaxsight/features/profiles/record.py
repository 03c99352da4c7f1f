"""All figures of a profile as JSON; times are in seconds."""

from __future__ import annotations

from collections.abc import Mapping

from jaxsight.features.profiles.report import spread
from jaxsight.figures.record import fields
from jaxsight.profiles.places import CodePlace, LibraryPlace
from jaxsight.profiles.profile import Profile, ProfiledDevice, ProfiledKernel, Share
from jaxsight.profiles.sources import ProfiledSources


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
        "devices": [_device(device) for device in profile.devices],
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
    return {
        "seconds": share.seconds,
        "share": share.seconds / profile.kernel_seconds if profile.kernel_seconds else 0.0,
        "calls": share.calls,
        "kernels": share.kernels,
    }


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
        "calls": kernel.calls,
        "seconds": kernel.seconds,
        "share": kernel.seconds / profile.kernel_seconds if profile.kernel_seconds else 0.0,
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


def _device(device: ProfiledDevice) -> dict[str, object]:
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
