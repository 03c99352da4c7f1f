"""Which licence a package has, by its metadata in old and new forms, and its licence files."""

from __future__ import annotations

from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from jaxsight_dataset.mining import licences

MIT = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"
    " to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies."
)
BSD = (
    "Redistribution and use in source and binary forms, with or without modification, are permitted"
    " provided that the following conditions are met."
)
CLASSIFIED = "Classifier: License :: OSI Approved ::"


@pytest.mark.parametrize(
    ("metadata", "file", "licence"),
    [
        ("License-Expression: Apache-2.0 OR MIT", "", "Apache-2.0 OR MIT"),
        ("License: Apache 2.0", "", "Apache-2.0"),
        ("License: MIT License\n        \n        " + MIT, "", "MIT"),
        (f"License: see the file\n{CLASSIFIED} MIT License", "", "MIT"),
        (
            f"{CLASSIFIED} Apache Software License",
            "Apache License\n    Version 2.0, 2004",
            "Apache-2.0",
        ),
        (f"{CLASSIFIED} BSD License", f"{BSD}\nNeither the name of", "BSD-3-Clause"),
        (f"{CLASSIFIED} BSD License", BSD, "BSD-2-Clause"),
        (f"{CLASSIFIED} BSD License", "", ""),
        (f"{CLASSIFIED} MIT License\n{CLASSIFIED} ISC License (ISCL)", "", ""),
        ("License: proprietary", f"{BSD}\n{MIT}", ""),
        ("Summary: without one", "", ""),
    ],
)
def test_a_licence_is_an_expression_of_spdx_or_unknown(
    metadata: str, file: str, licence: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tides-1.4.dist-info"
    (folder / "licenses").mkdir(parents=True)
    (folder / "METADATA").write_text(f"Name: tides\nVersion: 1.4\n{metadata}\n\nLong text.\n")
    (folder / "licenses" / "LICENSE.txt").write_text(file)
    (folder / "RECORD").write_text("tides-1.4.dist-info/licenses/LICENSE.txt,,\n")
    assert licences.of_distribution(PathDistribution(folder)) == licence
