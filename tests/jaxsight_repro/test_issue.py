"""The text of bug reports."""

from __future__ import annotations

from jaxsight_repro.emit.issue import issue_text
from jaxsight_repro.failures import RunFailure

SYSTEM = """\
jax:    0.10.2
platform: uname_result(system='Linux', node='my-laptop', machine='x86_64')"""


def test_a_report_has_the_headings_of_the_form() -> None:
    failure = RunFailure("exception", "AssertionError", "jit and eager differ: 58.6")
    assert issue_text("import jax\n", failure, SYSTEM) == (
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

### System info (python version, jaxlib version, accelerator, etc.)

```
jax:    0.10.2
platform: uname_result(system='Linux', node='...', machine='x86_64')
```
"""
    )


def test_a_crash_and_a_hang_have_no_message() -> None:
    crash = issue_text("", RunFailure("crash", "SIGSEGV"), "")
    assert "This program is killed by SIGSEGV:" in crash
    hang = issue_text("", RunFailure("hang", message="within 20 s"), "")
    assert "This program does not finish:" in hang
    assert "\n```\ndid not finish within 20 s\n```\n" in hang


def test_text_cannot_leave_its_fence() -> None:
    source = '"""\n````\n@someone <b>\n```\n"""'
    report = issue_text(source, RunFailure("crash", "SIGSEGV"), "")
    assert f"\n`````python\n{source}\n`````\n" in report


def test_a_message_cannot_make_markup() -> None:
    message = "</details> ``` @someone | # x"
    failure = RunFailure("exception", "ValueError", message)
    lines = issue_text("", failure, "").splitlines()
    assert "This program raises `ValueError`:" in lines
    opening = lines.index("````")
    assert lines[opening + 1 : opening + 3] == [f"ValueError: {message}", "````"]
