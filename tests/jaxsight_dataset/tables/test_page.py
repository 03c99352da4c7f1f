"""The page on datasets: its examples run on a generated dataset, and its figures are the code's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jaxsight_dataset.spec import Spec
from tests.jaxsight_dataset.tables.conftest import SPEC

PAGE = Path(__file__).parents[3] / "docs" / "dataset" / "dataset.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_examples_run(
    generated: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(generated / "pairs", tmp_path / "pairs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(example, names)
    assert len(EXAMPLES) == 4
    printed = capsys.readouterr().out
    assert re.search(r"programs │ +kernels", printed)
    assert "expression" in printed
    assert "{'number': " in printed
    assert '"""' in printed
    assert all(int(length) > 20 for length in printed.splitlines()[-1].split())


def test_the_specification_is_that_of_the_tests() -> None:
    assert f'```toml title="small.toml"\n{SPEC}```' in TEXT


def test_fields_of_specifications_have_their_defaults() -> None:
    defaults = Spec().record()
    rows = re.findall(
        r"^\| `(\w+)` \| (\S+) \|", TEXT[TEXT.index("| field | default") :], re.MULTILINE
    )
    shown = {name: value for name, value in rows if name in defaults}
    assert shown.keys() == defaults.keys()
    for name, value in shown.items():
        if value.isdigit():
            assert defaults[name] == int(value)
