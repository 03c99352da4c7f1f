"""The exceptions of a program: classes that stand for its own, and calls of these."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight_repro.capturing.raised import Raised
from jaxsight_source.text.exprs import quoted


def class_name(raised: Raised) -> str:
    """Return the name of an exception's class without what it is nested in."""
    return raised.name.rpartition(".")[2]


def class_lines(raised: Raised) -> Sequence[str]:
    """Return the lines of a class that stands for an exception's own; none for a built-in one.

    Its name, module and text are the same, so its failure is.
    """
    if raised.is_builtin:
        return ()
    name = class_name(raised)
    lines = ["", "", f"class {name}({raised.base}):"]
    lines.append('    """Stand in for the exception class of this name in the program."""')
    if raised.name != name:
        lines += ["", f"    __qualname__ = {raised.name!r}"]
    if raised.module not in ("__main__", "builtins"):
        lines += ["", f"    __module__ = {raised.module!r}"]
    if raised.is_text:
        lines += ["", "    def __str__(self):", "        return self.args[0]"]
    return lines


def expression(raised: Raised) -> str:
    """Return the call that makes an exception."""
    args = [quoted(arg) if isinstance(arg, str) else repr(arg) for arg in raised.args]
    return f"{class_name(raised)}({', '.join(args)})"
