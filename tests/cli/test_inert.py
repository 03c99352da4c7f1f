"""Whatever a project is called and says, the terminal shows it and obeys none of it.

In pipes, on terminals, and in the formats that runners read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hostile import EVERYTHING, HARMLESS, commands, hidden, on_terminal
from tests.terminal import jaxsight, shown

NAME = "\x1b]0;pwned\x07[/x]\n::error::\u202e\x9b2J模型.py"
HIDDEN = "\x1b]0;pwned\x07 \x9b2J \u202e \u2066 ##[error]pwned λ漢👩\u200d💻"
SHOWN = r"\x1b]0;pwned\x07 \x9b2J \u202e \u2066"
FILLER = "\u115f"

MODEL = f'''\
import jax
import jax.numpy as jnp

EVERYTHING = {EVERYTHING!a}


class Text(str):
    def __str__(self):
        return EVERYTHING

    __repr__ = __format__ = __str__


class Thing:
    def __repr__(self):
        return EVERYTHING


def raises(x):
    """
    Example inputs:
        x: f32[3]
    """
    print(EVERYTHING)
    raise ValueError(Text(EVERYTHING))  # {HIDDEN}


def works{FILLER}(x, thing={{EVERYTHING: 1}}):
    """
    ::error::pwned
    ##[error]pwned

    Example inputs ([/x] <b> *s* ![i]):
        x: f32[3]
        thing: {{"{HIDDEN}": 2.0}}
    """
    y = x * 2  # {HIDDEN}
    with jax.named_scope("{HIDDEN}"):
        return y + thing["{HIDDEN}"]


def branches(x):
    """
    Example inputs:
        x: f32[]
    """
    if x > 0:  # {HIDDEN}
        return x
    return -x


def cannot(x):
    """
    Example inputs:
        x: {HIDDEN}
    """
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    key = '"\\u001b]0;pwned\\u0007[/x]\\n::error::\\u202e"'
    (folder / "pyproject.toml").write_text(
        f"[tool.jaxsight]\npython = {json.dumps(sys.executable)}\n"
        f'target = "cpu"\n{key} = 1\nselect = [{key}]\n'
    )
    (folder / NAME).parent.mkdir()  # the slash of `[/x]` makes a folder
    (folder / NAME).write_text(MODEL, encoding="utf-8")
    return folder


VARIABLES = {"COLUMNS": "120", "TERM": "xterm-256color"}


def piped(project: Path, *given: str) -> tuple[str, str]:
    """What the command writes to pipes: its output and its errors.

    User code is traced each time, as it prints as well.
    """
    done = jaxsight(*given, cwd=project, fresh=True, **VARIABLES)
    return done.stdout, done.stderr


def typed(project: Path, *given: str) -> str:
    """What the command writes to a terminal."""
    return shown(*given, cwd=project, fresh=True, **VARIABLES)


COMMANDS = {
    "check": ["check", "."],
    "check of a file": ["check", NAME],
    "missing": ["check", f"missing{NAME}"],
    "show of what fails": ["show", f"{NAME}:raises"],
    "show": ["show", f"{NAME}:works{FILLER}"],
    "jaxpr": ["show", f"{NAME}:works{FILLER}", "--what", "jaxpr"],
    "shapes": ["show", f"{NAME}:works{FILLER}", "--what", "shapes"],
    "no such function": ["show", f"{NAME}:{HIDDEN}"],
    "no such view": ["show", f"{NAME}:works{FILLER}", "--what", HIDDEN],
    "no such set": ["show", f"{NAME}:works{FILLER}", "--set", HIDDEN],
    "no such file": ["show", f"{NAME}{NAME}"],
    "bad inputs": ["show", f"{NAME}:cannot"],
    "kernels": ["kernels", f"{NAME}:works{FILLER}"],
    "lock": ["lock", NAME],
    "sweep": ["sweep", f"{NAME}:works{FILLER}", "B=1"],
    "no such size": ["sweep", f"{NAME}:works{FILLER}", f"B=1{HIDDEN}"],
    "no such revision": ["kernels", f"{NAME}:works{FILLER}", "--against", HIDDEN],
    "source that cannot be": ["sourcerize", f"{NAME}:branches"],
    "no such interpreter": ["check", NAME, "--python", HIDDEN],
    "no such code": ["explain", HIDDEN],
    "no such command": [HIDDEN],
    "too many": ["show", NAME, NAME, HIDDEN],
    "baseline": ["check", NAME, "--baseline", NAME],
}


@pytest.mark.slow
@pytest.mark.parametrize("given", COMMANDS.values(), ids=COMMANDS)
def test_what_people_read_is_inert_in_a_pipe(project: Path, given: Sequence[str]) -> None:
    for output in piped(project, *given):
        assert "Traceback" not in output
        assert hidden(output) == []
        assert commands(output) == []


# One for each way of printing: findings, a view, an error of the arguments' reader, an error of
# ours, a failure of user code.
ON_TERMINALS = (
    "check of a file",
    "shapes",
    "kernels",
    "show of what fails",
    "no such file",
    "no such command",
    "too many",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ON_TERMINALS)
def test_what_people_read_is_inert_on_a_terminal(project: Path, command: str) -> None:
    output = on_terminal(typed(project, *COMMANDS[command]))
    assert "Traceback" not in output
    assert "MarkupError" not in output
    assert hidden(output) == []


def test_hidden_characters_are_shown_as_python_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "\x1b]0;pwned\x07\u202e\x9b2J模型.py"
    file.write_text(f"x = (  # {HIDDEN}\n", encoding="utf-8")
    output, _ = piped(tmp_path, "check", ".")
    assert r"--> \x1b]0;pwned\x07\u202e\x9b2J模型.py:1:5" in output
    assert f"1 | x = (  # {SHOWN} " in output
    assert "λ漢👩\u200d💻\n" in output, "what is no more than foreign stays"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "sarif", "github"])
def test_formats_for_programs_are_inert_and_exact(project: Path, form: str) -> None:
    others = [f"--report={other}:{other}" for other in ("gitlab", "junit")]
    output, errors = piped(project, "check", ".", "--output-format", form, *others)
    assert hidden(output) == []
    assert hidden(errors) == []
    for other in ("gitlab", "junit"):
        written = (project / other).read_text(encoding="utf-8")
        assert hidden(written) == []
        assert commands(written) == []
    if form == "github":
        assert output
        for line in output.splitlines():
            assert line.startswith(("::error title=", "::warning title=", "::notice title="))
        return
    assert commands(output) == []
    read = json.loads(output)
    if form == "json":
        files = {str(project / name) for name in (NAME, "pyproject.toml")}
        assert {one["filename"] for one in read} == files
    else:
        uris = {
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for result in read["runs"][0]["results"]
        }
        assert uris == {(project / name).as_uri() for name in (NAME, "pyproject.toml")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        ["show", f"{NAME}:works{FILLER}", "--json"],
        ["kernels", f"{NAME}:works{FILLER}", "--json"],
        ["sourcerize", f"{NAME}:works{FILLER}", "--json"],
    ],
    ids=["show", "kernels", "sourcerize"],
)
def test_json_of_a_function_is_inert_and_exact(project: Path, given: Sequence[str]) -> None:
    output, errors = piped(project, *given)
    assert hidden(output + errors) == []
    assert commands(output + errors) == []
    assert json.loads(output)["function"] == f"works{FILLER}"


@pytest.mark.slow
def test_source_is_python_in_a_pipe_and_inert_on_a_terminal(project: Path) -> None:
    given = ["sourcerize", f"{NAME}:works{FILLER}", "--sources", "--scopes"]
    output, errors = piped(project, *given)
    compile(output, "source", "exec")
    assert FILLER in output, "it is the function's name"
    written = output.replace(FILLER, "")
    assert hidden(written) == [], "literals are written with escapes, comments likewise"
    assert hidden(errors) == []
    assert hidden(on_terminal(typed(project, *given))) == []


def test_a_name_that_is_no_text_is_shown_by_its_bytes(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x9b.py")).write_text("def f(:\n")
    output, errors = piped(tmp_path, "check", ".", "--target", "cpu")
    assert errors == ""
    assert r"--> \udcff\udc9b.py:1:7" in output
    output, errors = piped(tmp_path, "check", ".", "--output-format", "json")
    assert json.loads(output)[0]["filename"].endswith("\udcff\udc9b.py")


@pytest.mark.parametrize("name", HARMLESS.values(), ids=HARMLESS)
def test_foreign_text_stays_as_it_is(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name.replace('/', '-')}.py"
    file.write_text(f"x = (  # {name}\n", encoding="utf-8")
    output, _ = piped(tmp_path, "check", ".")
    assert f"--> {file.name}:1:5\n" in output
    assert f"1 | x = (  # {name}\n" in output
