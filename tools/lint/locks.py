"""Locks pin every version by hashes, from no particular index, with all that the server needs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath

from tools.lint.checkout import Checkout, Offender, line_at

OF_THE_SERVER = ("demo", "test-py311", "test-py312", "test-py314")
"""Locks of environments that the server is installed into, and JAX."""
_PIN = re.compile(r"^([a-z0-9._-]+)==\S+", re.MULTILINE)


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield requirements without a version or a hash, addresses, and missing dependencies."""
    project = tomllib.loads(checkout.text("pyproject.toml"))["project"]
    wanted = {"jax", *(re.split(r"[<>=]", each)[0] for each in project["dependencies"])}
    names = set()
    for path in checkout.files("requirements/*.txt"):
        text = checkout.text(path)
        names.add(PurePosixPath(path).stem)
        for address in re.finditer("://", text):
            yield Offender(path, line_at(text, address.start()), "a lock names an index")
        line = 1
        for requirement in re.split(r"\n(?=\S)", text):
            if not requirement.startswith("#"):
                if not _PIN.match(requirement):
                    yield Offender(path, line, "a requirement without a version")
                if "--hash=sha256:" not in requirement:
                    yield Offender(path, line, "a requirement without a hash")
            line += requirement.count("\n") + 1
        if PurePosixPath(path).stem in OF_THE_SERVER:
            for missing in sorted(wanted - set(_PIN.findall(text))):
                yield Offender(path, 1, f"`{missing}` is a dependency of the project, but not here")
    for name in sorted({*OF_THE_SERVER} - names):
        yield Offender(f"requirements/{name}.txt", 1, "a lock of the server is missing")
