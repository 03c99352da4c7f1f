"""Completion in shells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import jaxsight

ROOT = Path(__file__).parents[2]


def completed(shell: str, cwd: Path, words: str, word: str = "") -> list[str]:
    place = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "COMP_WORD": word}
    if shell == "fish":
        place["COMP_CWORD"] = word
    done = jaxsight("explain", cwd=cwd, _JAXSIGHT_COMPLETE=f"{shell}_complete", **place)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_commands_and_options_are_completed(tmp_path: Path) -> None:
    assert completed("bash", tmp_path, "jaxsight re") == [
        "plain,report",
        "plain,repro",
        "plain,record",
    ]
    assert completed("bash", tmp_path, "jaxsight check --unsafe") == ["plain,--unsafe-fixes"]
    assert completed("bash", tmp_path, "jaxsight check --output-format j") == [
        "plain,json",
        "plain,junit",
    ]
    assert "kernels" in completed("zsh", tmp_path, "jaxsight k")
    assert [row.partition("\t")[0] for row in completed("fish", tmp_path, "jaxsight ch", "ch")] == [
        "plain,check"
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_read_what_the_documentation_says(tmp_path: Path, shell: str) -> None:
    source = f"_JAXSIGHT_COMPLETE={shell}_source"
    assert source in (ROOT / "docs" / "terminal.md").read_text(encoding="utf-8")
    name, _, value = source.partition("=")
    shown = jaxsight("explain", cwd=tmp_path, **{name: value}).stdout
    assert f"{name}={shell}_complete" in shown
