"""The time of lines in the profile that is open."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import line_end
from jaxsight.features.model import Hint
from jaxsight.text import units
from jaxsight.text.markdown import prose

_LEAST = 0.005
"""The least share of the time that is shown at a line, a choice: less is not worth a look."""


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the share of each line that was not edited since the run."""
    profiles, module = shown.engine.profiles, shown.document.module
    found = profiles.of_file(shown.document.path)
    if found is None or profiles.opened is None:
        return
    profile = profiles.opened.profile
    whole = profile.kernel_seconds
    for line, share in found.moved(module.lines):
        if not whole or share.seconds < _LEAST * whole or not 0 <= line < len(module.lines):
            continue
        time = units.time(share.seconds)
        part = units.percent(share.seconds / whole)
        calls, kernels = units.count(share.calls, "call"), units.count(share.kernels, "kernel")
        facts = (
            f"{part} of the time in kernels: {time} in {calls} of {kernels}",
            f"profile of the run {profile.run}" if profile.run else "profile of a run",
        )
        label = f"{units.MEASURED} {part}"
        yield Hint(line_end(module, line), label, "\n\n".join(map(prose, facts)))


KIND = HintKind(("profile",), hints)
