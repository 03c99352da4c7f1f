"""Functions that stand for a program's callbacks: they do what these did when it failed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from jaxsight.text.inert import one_line
from jaxsight.text.names import bound_in, read_in
from jaxsight_repro.capturing.recorder import Outcomes, Results
from jaxsight_repro.emit.call_tree.structures import class_lines, class_name, expression
from jaxsight_repro.emit.data import Data

_PREFIX = "host_"

_SHORT = 80
"""Characters of a result that is written into the function, a choice: the line must not wrap."""

NOTE = (
    "Functions named `host_…` stand for the program's callbacks, "
    "and return or raise what these did."
)


def names_in(source: str) -> list[str]:
    """Return the names of functions of the host that a module reads and does not define."""
    tree = ast.parse(source)
    read = {name for name in read_in(tree) if name.startswith(_PREFIX)}
    return sorted(read.difference(bound_in(tree)))


def definitions(
    names: Sequence[str], outcomes: Mapping[str, Outcomes], data: Data, *, hangs: bool
) -> list[str]:
    """Return the lines that define functions of the host.

    Args:
        names: the functions.
        outcomes: what each did; one that is missing was not called.
        data: takes the arrays that need definitions, or are stored in the file beside.
        hangs: whether the program did not finish.
    """
    classes: dict[str, Sequence[str]] = {}
    lines: list[str] = []
    for name in names:
        known = outcomes.get(name, Outcomes())
        for raised in known.raised.values():
            classes.setdefault(class_name(raised), class_lines(raised))
        lines += _definition(name, known, data, hangs=hangs)
    return [line for listed in classes.values() for line in listed] + lines


def _definition(name: str, known: Outcomes, data: Data, *, hangs: bool) -> list[str]:
    results = {
        call: _expression(values, f"{name}_{call}", data) for call, values in known.returned.items()
    }
    table, chosen = _table(name, results, known)
    lines = ["", *table] if table else []
    if known.started > 1 and (known.fails or len(results) > 1):
        lines += [*([] if table else [""]), f"{name}_calls = itertools.count()"]
    about = one_line(_about(name, known))
    lines += ["", "", f"def {name}(*args, **kwargs):", f'    """{about}"""']
    if not known.started:
        return [*lines, '    raise NotImplementedError("the program did not call it")']
    if known.started == 1 or not (known.fails or len(results) > 1):
        return [*lines, *(_ending(known, 0, hangs=hangs) or [f"    return {chosen}"])]
    lines.append(f"    call = next({name}_calls) % {known.started}")
    for call in sorted({*known.raised, *known.unfinished}):
        inner = [f"    {line}" for line in _ending(known, call, hangs=hangs)]
        lines += [f"    if call == {call}:", *inner]
    return [*lines, f"    return {chosen}"]


def _table(name: str, results: Mapping[int, str], known: Outcomes) -> tuple[list[str], str]:
    """Return the lines of the results of all calls, and the expression of one call's."""
    if len(results) <= 1:
        (expression,) = results.values() or ("None",)
        if len(expression) <= _SHORT and "jnp." not in expression and "np.load" not in expression:
            return [], expression
        return [f"{name.upper()} = {expression}"], name.upper()
    lines = [f"    {call}: {expression}," for call, expression in results.items()]
    table = [f"{name.upper()} = {{", *lines, "}"]
    if len(results) == known.started - len(known.raised) - len(known.unfinished):
        return table, f"{name.upper()}[call]"
    return table, f"{name.upper()}[max(first for first in {name.upper()} if first <= call)]"


def _about(name: str, known: Outcomes) -> str:
    of = f"the callback `{name.removeprefix(_PREFIX)}`"
    if not known.started:
        return f"Stand for {of}, which the program did not call."
    if known.unfinished and not known.raised:
        return f"Stand for {of}, which did not return in the program."
    if known.raised:
        return f"Raise what {of} raised in the program."
    return f"Return what {of} returned in the program."


def _ending(known: Outcomes, call: int, *, hangs: bool) -> list[str]:
    """Return the lines of a call that did not return; none if it did."""
    if call in known.raised:
        return [f"    raise {expression(known.raised[call])}"]
    if call not in known.unfinished:
        return []
    if hangs:
        return ["    while True:", "        time.sleep(3600)"]
    return ['    raise NotImplementedError("the program was killed during this call")']


def _expression(values: Results, name: str, data: Data) -> str:
    parts = []
    for index, value in enumerate(values):
        if value.kind == "object":
            parts.append("object()")
        elif value.kind == "numpy" and value.data.dtype.kind in "US":
            parts.append(f"np.array({value.data.tolist()!r})")
        else:
            text = data.expression(value, f"{name}_{index}")
            parts.append(text.replace("stored[", 'np.load(Path(__file__).with_suffix(".npz"))['))
    if len(parts) == 1:
        return parts[0]
    return f"({', '.join(parts)})" if parts else "None"
