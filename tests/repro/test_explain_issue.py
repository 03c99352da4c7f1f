"""The text of bug reports."""

from __future__ import annotations

from jaxsight.repro.emit.issue import code, fenced, issue_text, public
from jaxsight.repro.explanation import FLAGS, JIT, TARGETS, Explanation, Table, TrialRow, Verdict
from jaxsight.repro.failures import RunFailure

SYSTEM = """\
jax:    0.10.2
platform: uname_result(system='Linux', node='my-laptop', machine='x86_64')"""


def test_a_report_has_the_headings_of_the_form() -> None:
    failure = RunFailure("exception", "AssertionError", "jit and eager differ: 58.6")
    explanation = Explanation(
        failure,
        (
            Table(
                FLAGS,
                (
                    TrialRow(
                        "--a=0",
                        Verdict.FAILS,
                        command="XLA_FLAGS=--a=0 /env/bin/python /home/me/r.py",
                    ),
                    TrialRow(
                        "--b=",
                        Verdict.PASSES,
                        command="XLA_FLAGS='--b= --c=1' /env/bin/python /home/me/r.py",
                    ),
                    TrialRow("--d=0", Verdict.OTHER, "OSError: a | b"),
                    TrialRow("--e=0", Verdict.UNTRIED, "unknown flag --e=0"),
                ),
                "it passes with `--b=`",
                ("a note",),
            ),
            Table(TARGETS, notes=("not tried: no machine is configured",)),
        ),
        ("the failure does not always occur",),
    )
    assert issue_text("import jax\n", failure, SYSTEM, explanation) == (
        """\
### Description

This program computes something wrong (`AssertionError: jit and eager differ: 58.6`):

```python
import jax
```

It fails with:

```
AssertionError: jit and eager differ: 58.6
```

Note: the failure does not always occur.

**XLA flags**: it passes with `--b=`.

| | | |
| - | - | - |
| passes | `--b=` | `XLA_FLAGS='--b= --c=1' python r.py` |
| other failure | `--d=0` | `OSError: a \\| b` |

Fails in the same way: `--a=0`

Not tried: `--e=0` (`unknown flag --e=0`)

Note: a note

**Targets**: not tried: no machine is configured

### System info (python version, jaxlib version, accelerator, etc.)

```
jax:    0.10.2
platform: uname_result(system='Linux', node='...', machine='x86_64')
```
"""
    )


def test_a_crash_and_a_hang_have_no_message() -> None:
    crash = issue_text("", RunFailure("crash", "SIGSEGV"), "", None)
    assert "This program is killed by SIGSEGV:" in crash
    hang = issue_text("", RunFailure("hang", message="within 20 s"), "", None)
    assert "This program does not finish:" in hang
    assert "\n```\ndid not finish within 20 s\n```\n" in hang


def test_text_cannot_leave_its_fence() -> None:
    source = '"""\n````\n@someone <b>\n```\n"""'
    assert fenced(source, "python") == f"`````python\n{source}\n`````"


def test_text_cannot_leave_its_code_span() -> None:
    assert code("a ``b`` | c\nd") == "```a ``b`` \\| c d```"
    assert code("`x`") == "`` `x` ``"


def test_a_message_cannot_make_markup() -> None:
    message = "</details> ``` @someone | # x"
    failure = RunFailure("exception", "ValueError", message)
    table = Table(JIT, (TrialRow("as it is", Verdict.OTHER, f"ValueError: {message}"),))
    lines = issue_text("", failure, "", Explanation(failure, (table,))).splitlines()
    (cell,) = (line for line in lines if line.startswith("| other"))
    assert (
        cell
        == r"| other failure | `as it is` | ````ValueError: </details> ``` @someone \| # x```` |"
    )
    opening = lines.index("````")
    assert lines[opening + 1 : opening + 3] == [f"ValueError: {message}", "````"]


def test_commands_without_folders() -> None:
    command = "JAX_X='a b' /home/me/.venv/bin/python3.12 '/home/me/my repro.py'"
    assert public(command) == "JAX_X='a b' python 'my repro.py'"
