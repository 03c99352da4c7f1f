"""Licences of packages as SPDX expressions, read from metadata and licence files without JAX.

Old metadata has a name in its own words, or the whole text; a classifier may stand for several
licences. What is not recognized is no licence.
"""

from __future__ import annotations

import contextlib
import re
from importlib.metadata import Distribution
from pathlib import Path

from jaxsight.files import reading

_NAMES = {
    "apache 2": "Apache-2.0",
    "apache 2 0": "Apache-2.0",
    "apache license 2 0": "Apache-2.0",
    "apache license version 2 0": "Apache-2.0",
    "apache software license 2 0": "Apache-2.0",
    "bsd 2 clause": "BSD-2-Clause",
    "bsd 2 clause license": "BSD-2-Clause",
    "bsd 3 clause": "BSD-3-Clause",
    "bsd 3 clause license": "BSD-3-Clause",
    "3 clause bsd license": "BSD-3-Clause",
    "cc0 1 0": "CC0-1.0",
    "isc": "ISC",
    "isc license iscl": "ISC",
    "mit": "MIT",
    "mit license": "MIT",
    "the mit license": "MIT",
    "the mit license mit": "MIT",
    "mpl 2 0": "MPL-2.0",
    "mozilla public license 2 0 mpl 2 0": "MPL-2.0",
    "the unlicense unlicense": "Unlicense",
}
"""Names that metadata and classifiers have for licences, in lower case and without punctuation."""

_TEXTS = (
    ("Apache-2.0", ("apache license version 2 0",), ()),
    ("MIT", ("permission is hereby granted free of charge to any person", "sublicense"), ()),
    (
        "BSD-3-Clause",
        ("redistribution and use in source and binary forms", "neither the name"),
        ("all advertising materials",),
    ),
    (
        "BSD-2-Clause",
        ("redistribution and use in source and binary forms",),
        ("neither the name", "all advertising materials"),
    ),
    ("ISC", ("permission to use copy modify and or distribute this software for any",), ()),
    ("MPL-2.0", ("mozilla public license version 2 0",), ()),
)
"""Licences with words that their texts have, and words that they do not have."""

_LICENCE_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)


def of_text(text: str) -> str:
    """Return the licence that a text names or quotes; empty if it is none, or not just one."""
    plain = " ".join(re.findall(r"[a-z0-9]+", text.lower()))
    if plain in _NAMES:
        return _NAMES[plain]
    quoted = [
        name
        for name, words, others in _TEXTS
        if all(each in plain for each in words) and not any(each in plain for each in others)
    ]
    return quoted[0] if len(quoted) == 1 else ""


def of_distribution(distribution: Distribution) -> str:
    """Return the licence of an installed package; empty if nothing says which it is.

    The expression of its metadata comes first, then the other name there, then its licence files,
    as a classifier such as `BSD License` is that of several licences.
    """
    about = distribution.metadata
    if "License-Expression" in about:
        return str(about["License-Expression"])
    if "License" in about and (named := of_text(str(about["License"]))):
        return named
    for file in distribution.files or ():
        is_own = file.parts[0].endswith((".dist-info", ".egg-info"))
        if is_own and _LICENCE_FILE.fullmatch(file.name):
            with contextlib.suppress(reading.UnreadableError):
                if quoted := of_text(reading.text(Path(str(file.locate())))):
                    return quoted
    classifiers = about.get_all("Classifier") or []
    names = {of_text(each.rpartition(" :: ")[2]) for each in classifiers if "License ::" in each}
    return names.pop() if len(names) == 1 else ""
