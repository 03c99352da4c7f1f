"""Under which name a file is a module: what the keys of `[tool.jaxsight.examples]` begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.queries.documents import module_name


@pytest.mark.parametrize(
    ("packages", "file", "name"),
    [
        (["pkg", "pkg/nn"], "pkg/nn/layers.py", "pkg.nn.layers"),
        (["pkg"], "pkg/__init__.py", "pkg"),
        (["pkg"], "pkg/notebooks/first.py", "first"),
        ([], "model.py", "model"),
        (["site-packages/pkg"], "site-packages/pkg/_src/ops.py", "pkg._src.ops"),
        ([], "site-packages/alone.py", "alone"),
    ],
)
def test_a_module_is_named_as_it_is_imported(
    packages: list[str], file: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    for package in packages:
        tmp_path.joinpath(package, "__init__.py").write_text("")
    path.write_text("")
    assert module_name(str(path)) == name
