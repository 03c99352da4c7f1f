"""Completion in shells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import jaxsight


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


def test_powershell_gets_values_with_their_help(tmp_path: Path) -> None:
    [row] = completed("powershell", tmp_path, "jaxsight targets inst", "inst")
    value, help = row.split(":::")
    assert (value, help[:18]) == ("install", "Install a compiler")
    assert completed("powershell", tmp_path, "jaxsight explain --j", "--j") == [
        "--json:::Print JSON."
    ]


@pytest.mark.parametrize(
    ("shell", "script", "line"),
    [
        ("bash", ".bash_completions/jaxsight.sh", "source ~/.bash_completions/jaxsight.sh"),
        ("zsh", ".zfunc/_jaxsight", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
        ("fish", ".config/fish/completions/jaxsight.fish", ""),
    ],
)
def test_completion_is_installed_once(tmp_path: Path, shell: str, script: str, line: str) -> None:
    (tmp_path / f".{shell}rc").write_text("# mine")
    environ = {"HOME": str(tmp_path), "SHELL": f"/usr/bin/{shell}"}
    for _ in range(2):
        done = jaxsight("--install-completion", cwd=tmp_path, **environ)
        assert done.returncode == 0, done.stderr
        assert str(tmp_path / script) in done.stdout
    shown = jaxsight("--show-completion", cwd=tmp_path, **environ).stdout
    assert (tmp_path / script).read_text().strip() == shown.strip()
    assert f"_JAXSIGHT_COMPLETE={shell}_complete" in shown
    own = (tmp_path / f".{shell}rc").read_text()
    assert own == (f"# mine\n{line}\n" if line else "# mine")


def test_a_shell_without_completion_is_an_error(tmp_path: Path) -> None:
    done = jaxsight("--show-completion", cwd=tmp_path, SHELL="/bin/ksh")
    assert done.returncode == 2
    assert "no completion for the shell ksh" in done.stderr
