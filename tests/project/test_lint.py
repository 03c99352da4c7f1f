"""Each check of `tools.lint` finds what offends, and this tree has nothing that does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.rules import RULES
from jaxsight.rules.jx470_outdated_api.table import rows
from jaxsight.settings.documentation import page
from tools.lint import renamed_names, rule_folders, rule_pages, words
from tools.lint.__main__ import checks, main
from tools.lint.budget import lines_of_code
from tools.lint.checkout import PACKAGE, Checkout, Offender, outside

ROOT = Path(__file__).parents[2]
RULE = RULES["JX207"]
FOLDER = "rules/jx207_short_loop"
PROJECT = """[project]
dependencies = ["rich>=14"]
[[tool.importlinter.contracts]]
layers = ["jaxsight.a | jaxsight.b", "jaxsight.rules"]
"""
MANIFEST = """{"icon": "icon.png", "contributes": {"grammars": [], "snippets": [], "languages": [],
"walkthroughs": [{"steps": []}]}}"""
GRADIENT = """
    ```console
    $ jaxsight sourcerize examples/sliding_window.py:grad_fn --style pretty
    a
    ```

=== "jax_sourceror"
    ```python
    a
    ```
"""
LIMITS = "[start]\nall = 3\nb = 1\n"

IN_THE_PACKAGE = [
    # What modules import
    ("walls", "tracer/a.py", "import os\nimport rich", 2, "imports `rich` in the user's"),
    ("walls", "tracer/a.py", "from . import b", 1, "imports `..b` in the user's"),
    ("walls", "text/names.py", "import jaxsight.lsp", 1, "imports `jaxsight.lsp` in"),
    ("walls", "tracer/a.py", "from jax._src import core", 1, "imports private API outside"),
    ("walls", "tracer/a.py", "", 0, "named in `tools/lint/walls.py`, but missing"),
    ("networks", "a.py", "import os\nfrom urllib import request", 2, "imports `urllib.request`"),
    ("networks", "a.py", "def f():\n    import httpx", 2, "imports `httpx`"),
    ("pickling", "a.py", "import pickle", 1, "imports `pickle`"),
    ("pickling", "a.py", "from marshal import loads", 1, "imports `marshal`"),
    ("pickling", "jaxsight_repro/emit/from_case.py", "", 1, "pickles nothing"),
    ("circles", "a.py", "import jaxsight.b", 1, "modules import each other: jaxsight.a, jaxsight.b"),
    # What they call
    ("parsing", "lsp/a.py", "import ast\nast.parse('')", 2, "parses without"),
    ("parsing", "lsp/a.py", "with quiet():\n    f()\nast.literal_eval('1')", 3, "parses without"),
    ("file_access", "a.py", "\nopen('a')", 2, "open: read with"),
    ("file_access", "a.py", "os.open('a', 0)", 1, "os.open: read with"),
    ("file_access", "a.py", "Path('a').open()", 1, "open of a path: read with"),
    ("file_access", "a.py", "path.open('rb')", 1, "open of a path: read with"),
    ("file_access", "a.py", "path.read_text()", 1, "read_text: read with"),
    ("file_access", "files/private.py", "p.read_text()", 1, "read_text in a module that only"),
    ("file_access", "files/reading.py", "", 1, "opens no file"),
    ("processes", "a.py", "\nsubprocess.run([])", 2, "subprocess.run: start"),
    ("processes", "a.py", "loop.subprocess_exec()", 1, "subprocess_exec: start"),
    ("processes", "cli/git.py", "subprocess.run([])", 1, "starts processes, but not with `program`"),
    ("processes", "cli/git.py", "", 1, "starts nothing"),
    ("processes", "a.py", "x = [python,\n     '-m']", 2, "runs code by name (`python -m`)"),
    ("printing", "cli/a.py", "\nprint('a')", 2, "calls `print`"),
    ("printing", "lsp/a.py", "click.echo('a')", 1, "calls `echo`"),
    ("printing", "lsp/a.py", "from rich.text import Text", 1, "imports `rich.text.Text`"),
    ("printing", "lsp/a.py", "x.InlayHint()", 1, "makes a `InlayHint`"),
    # Sizes and names
    ("structure", "a.py", "\n" * 501, 501, "501 lines in a module"),
    ("structure", "a.py", "", 1, "an empty file"),
    ("structure", "a/__init__.py", '"""A."""', 1, "the package does not say what it must"),
    ("rule_folders", "a.py", "\nx = 'JX207'", 2, "names JX207"),
    ("rule_folders", "a.py", "import jaxsight.rules.jx207_short_loop", 1, "names JX207"),
    ("rule_folders", f"{FOLDER}/b.py", "import jaxsight.b.c", 1, "imports `jaxsight.b.c`, a layer"),
    ("names", "a.py", "def a_thing(): ...", 1, "`a_thing` has thing"),
    ("names", "a.py", "x: Any\n" * 601, 0, "601 lines name `Any`"),
    ("names", "a.py", "kind: str\ndef f(what: str): ...", 0, "2 kinds are plain strings"),
    ("names", "a.py", "def _f(): ...\n_f()", 0, "1000 ‰ of all functions"),
    ("names", "a.py", "".join(2 * f"class A{n}: ...\n" for n in range(31)), 0, "31 public names"),
    # Texts
    ("words", "cli/a.py", "\nf('it is', f'{x} goes round')", 2, "`goes round`: write"),
    ("words", "rules/jx1_a/rule.py", "x = 'made anew'", 1, "`made anew`: write"),
    ("words", "rules/jx1_a/rule.py", "x = 'left out'", 1, "`left out`: write"),
    ("words", "rules/jx1_a/page.md", "```\nanew\n```\n\nanew", 5, "`anew`: write"),
    ("terminal", "a.py", "\nx = f'run `jaxsight trust {y}`'", 2, "names a command"),
    ("messages", "rules/jx1_a/cases.md", f"\n# ^^ JX207 {'a' * 101}", 2, "message of 101"),
    ("messages", "rules/jx1_a/cases.md", "^^ JX207 (hint) a loop.", 1, "message ends with"),
    ("rule_pages", f"{FOLDER}/page.md", "# short-loop", 1, "the title is not `# short-loop (JX207)`"),
    ("rule_pages", f"{FOLDER}/page.md", "## Why", 1, "the sections are not"),
    ("rule_pages", f"{FOLDER}/page.md", "```python\n```\n", 1, "1 examples in Python"),
    ("rule_cases", f"{FOLDER}/cases.md", "# Cases", 1, "the title is not `# Cases of short-loop"),
    ("rule_cases", f"{FOLDER}/cases.md", "## Fixed\n## Found\n", 1, "the parts are not"),
    ("rule_cases", f"{FOLDER}/cases.md", "## Found\n", 1, "no case in `Not found`"),
    ("rule_cases", f"{FOLDER}/cases.md", "## Found\n```python\n```\n", 3, "a case of `Found` without"),
    ("rule_cases", f"{FOLDER}/cases.md", "## Not found\n```python\n# ^ a\n```", 3, "a near miss with"),
]  # fmt: skip
"""A check, a module or page of the package, its text, the line (0: of the package) and a message."""

ELSEWHERE = [
    ("budget", {".ci/budget": "start"}, ".ci/budget:1: 4 lines of code in `all` exceed the 3 of"),
    ("budget", {".ci/budget": "start"}, ".ci/budget:1: 3 lines of code in `b` exceed the 1 of"),
    ("budget", {".ci/budget": "end"}, ".ci/budget:1: unknown section `end`"),
    (
        "structure",
        {f"{PACKAGE}/b/{n}.py": "" for n in range(15)},
        f"{PACKAGE}/b:1: 15 modules in a folder",
    ),
    (
        "structure",
        {f"{PACKAGE}/{n}.py": "def f():\n" + 60 * "    x\n" for n in range(6)},
        f"{PACKAGE}/5.py:1: `f` has 61 lines; more than 5 functions",
    ),
    ("messages", {"tests/fixtures/a/b.py": f"# ^ JX207 {'a' * 71}"}, "have 71 characters in"),
    ("messages", {"tests/fixtures/a/b.py": f"# ^ JX207 {'a' * 96}"}, "more than one message of 20"),
    ("rule_folders", {f"{PACKAGE}/rules/jx999_a/rule.py": ""}, "jx999_a:1: a folder without a rule"),
    ("rule_folders", {f"{PACKAGE}/rules/jx999_a/rule.py": ""}, "jx999_a:1: a rule without `page.md`"),
    ("rule_pages", {}, f"{PACKAGE}/{FOLDER}/page.md:1: JX207 has no page"),
    ("rule_cases", {}, f"{PACKAGE}/{FOLDER}/cases.md:1: JX207 has no cases"),
    ("rule_cases", {}, "tests/cli/test_lock.py:1: has no case of JX502"),
    (
        "architecture",
        {"ARCHITECTURE.md": "\n## Where things are\n| a | `b/`, `gone.py` |\n"},
        "ARCHITECTURE.md:3: `gone.py` is not there",
    ),
    (
        "architecture",
        {"ARCHITECTURE.md": f"## Where things are\n| {'a' * 100} | `b/` |\n"},
        "ARCHITECTURE.md:2: row of 111 characters",
    ),
    ("architecture", {"ARCHITECTURE.md": ""}, "ARCHITECTURE.md:1: only 0 rows with 0 paths"),
    ("locks", {"requirements/a.txt": "#\n\na>=1\n"}, "a.txt:3: a requirement without a version"),
    ("locks", {"requirements/a.txt": "a==1\n"}, "a.txt:1: a requirement without a hash"),
    ("locks", {"requirements/a.txt": "#\n# https://b"}, "a.txt:2: a lock names an index"),
    ("locks", {"requirements/demo.txt": "jax==1"}, "demo.txt:1: `rich` is a dependency"),
    ("locks", {}, "requirements/demo.txt:1: a lock of the server is missing"),
    ("manifest", {"vscode-extension/package.json": MANIFEST}, "json:1: `icon.png` is not there"),
    ("security_page", {"SECURITY.md": ""}, "SECURITY.md:1: the limit of `pyproject.toml` is not"),
    ("security_page", {"SECURITY.md": "`a/` in the cache folder"}, "SECURITY.md:1: no code asks for"),
    (
        "security_page",
        {"SECURITY.md": "", f"{PACKAGE}/a.py": 'cache_folder("b")'},
        f"{PACKAGE}/a.py:1: `b/` in the cache folder is not in",
    ),
    (
        "terminal",
        {"vscode-extension/package.json": "\n`jaxsight check`"},
        "vscode-extension/package.json:2: a setting names a command",
    ),
    ("settings_page", {"docs/settings.md": page() + "a"}, "docs/settings.md:"),
    (
        "interpreter_examples",
        {"examples/interpreters/a.py": "import b\n" + 41 * "c = 1\n\n", "docs/source/interpreters.md": ""},
        "examples/interpreters/a.py:2: 41 lines in an example",
    ),
    (
        "interpreter_examples",
        {"examples/interpreters/a.py": "b = 1", "docs/source/interpreters.md": ""},
        "examples/interpreters/a.py:1: not named in docs/source/interpreters.md",
    ),
    ("sourcerize_page", {"docs/source/sourcerize.md": GRADIENT}, "our gradient is no shorter"),
    ("sourcerize_page", {"docs/source/sourcerize.md": GRADIENT}, "the page does not say `Ours has 1 lines"),
    ("sourcerize_page", {"docs/source/sourcerize.md": ""}, "md:1: the gradient of `sliding_window.py`"),
]  # fmt: skip
"""A check, files, and a part of what is printed."""

ALWAYS = {
    f"{PACKAGE}/b.py": "import jaxsight.a\n",
    "server/b/c.py": '"""A."""\n\n# B\nx = """\n\n"""\n',
    ".ci/budget.toml": LIMITS,
    "pyproject.toml": PROJECT,
    "ARCHITECTURE.md": "\n## Words\n\nA public name has no `thing`.\n\n* **frame**: of a call\n",
}
"""Files that are there in each of these cases."""


def checkout(root: Path, files: dict[str, str]) -> Checkout:
    """Write files of a checkout."""
    for name, text in {**ALWAYS, **files}.items():
        path = root / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Checkout(root / "here")


def printed(check: str, found: Checkout) -> list[str]:
    """Return the lines that a check prints."""
    return [str(offender) for offender in checks()[check](found)]


@pytest.mark.parametrize(("check", "name", "text", "line", "message"), IN_THE_PACKAGE)
def test_what_offends_in_the_package_is_found(
    check: str, name: str, text: str, line: int, message: str, tmp_path: Path
) -> None:
    path = outside(name)
    lines = printed(check, checkout(tmp_path, {path: text}))
    expected = f"{path}:{line}: {message}" if line else f":1: {message}"
    assert any(expected in each for each in lines), lines


@pytest.mark.parametrize(("check", "files", "message"), ELSEWHERE)
def test_what_offends_elsewhere_is_found(
    check: str, files: dict[str, str], message: str, tmp_path: Path
) -> None:
    lines = printed(check, checkout(tmp_path, files))
    assert any(message in each for each in lines), lines


def messages(offenders: list[Offender]) -> list[str]:
    return [offender.message for offender in offenders]


def test_what_offends_in_tables_is_found() -> None:
    unnamed = replace(RULE, summary="loops that go " + 70 * "a", severity="bad")
    assert messages(list(rule_folders.of_rules([unnamed, RULE]))) == [
        "unknown severity `bad`",
        "summary ends without a full stop",
        "2 rules are called `JX207`",
        "2 rules are called `short-loop`",
    ]
    assert messages(list(words.of_tables([unnamed], {"a": "made anew"}))) == [
        "summary of 84 characters, more than 80",
        "summary begins with a small letter",
        "setting `a`: `made anew`: write `re-created, again`",
    ]
    assert "the table of rules has no row for JX207" in messages(
        list(rule_pages.of_rules(Checkout(ROOT), [RULE], ""))
    )
    row = replace(next(iter(rows().values()))[0], old=f"jax.{'a' * 100}", new="", help="")
    too_long, no_advice = messages(list(renamed_names.of_rows([row])))
    assert f"message of {len(row.message)} characters, more than" in too_long
    assert no_advice.endswith("neither a new name nor help")


def test_all_checks_have_a_case() -> None:
    cases = {check for check, *_ in IN_THE_PACKAGE} | {check for check, *_ in ELSEWHERE}
    assert checks().keys() - cases == {"renamed_names"}


def test_lines_of_code_are_those_with_tokens(tmp_path: Path) -> None:
    code = '"""A\n\nB."""\n\n# C\nx = (  # D\n    1,\n\n)\n"E"\n'
    strings = 'y = """\n# F\n\n"""\nz = 1 + \\\n    2\n'
    found = checkout(tmp_path, {"server/c/d.py": code, "server/c/e.py": strings})
    assert lines_of_code(found)["c"] == 3 + 6


def test_limits_beside_the_checkout_take_precedence(tmp_path: Path) -> None:
    found = checkout(tmp_path, {".ci/budget": "start"})
    assert len(printed("budget", found)) == 2
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "budget.toml").write_text("[start]\nall = 4\n")
    assert printed("budget", found) == []


@pytest.mark.slow
def test_this_tree_has_nothing_that_offends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == f"{len(checks())} checks, no offenders\n"


def test_what_offends_is_printed_and_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = checkout(tmp_path, {f"{PACKAGE}/lsp/a.py": "print(1)\n\nprint(2)\n"})
    assert main(["printing", "structure"], found.root) == 1
    message = "calls `print`; print with `cli/output/printing.py` [printing]"
    assert capsys.readouterr().out.splitlines() == [
        f"{PACKAGE}/lsp/a.py:1: {message}",
        f"{PACKAGE}/lsp/a.py:3: {message}",
        "2 checks, 2 offenders",
    ]


def test_an_unknown_check_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["walls", "doors"])
    assert "unknown check: doors" in capsys.readouterr().err
