"""How each primitive of JAX's is written: `docs/source/sourcerize-coverage.md` has the table, and that of
JAX's harnesses.

    python -m tests.jaxsight_source.coverage --write            # this JAX's column, from programs that
    are written for it python -m tests.jaxsight_source.coverage --harnesses FILE   # what
    `tests.jaxsight_source.harnesses` printed, into the page python -m tests.jaxsight_source.coverage
    --render           # the page anew, from what is recorded

What is recorded is in `coverage.json` beside this module, by version of JAX; the newest stands for
the newest.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jaxsight_source.errors import Unwritable
from jaxsight_source.values import public_names

if __name__ == "__main__":  # before JAX starts: collectives need devices
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    )
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

from jaxsight_source.api import write
from jaxsight_source.compat.staging import opened
from jaxsight_source.equations.registry import public_function
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import Written
from tests.corpora.jaxsight_source.programs import third_party

RECORDED = Path(__file__).with_name("coverage.json")
PAGE = Path(__file__).parents[2] / "docs" / "source" / "sourcerize-coverage.md"
BIND = "bind"
PASSED = "an argument"
"""Of what no text can hold: who calls the written function passes it in."""
PART = "part of "
"""Before what several equations are written as together."""

Spellings = dict[str, collections.Counter[str]]
"""For each primitive how its equations are written, with how often."""


def lowered() -> dict[str, tuple[Any, tuple[str, ...]]]:
    """The primitives that this process knows a lowering of, by name, with the platforms where not
    all have one.
    """
    from jax._src.interpreters import mlir  # the registry has no public name

    by_platform: dict[Any, set[str]] = collections.defaultdict(set)
    for platform, rules in mlir._platform_specific_lowerings.items():
        for primitive in rules:
            by_platform[primitive].add(platform)
    found = {primitive.name: (primitive, ()) for primitive in mlir._lowerings}
    for primitive, platforms in by_platform.items():
        found.setdefault(primitive.name, (primitive, tuple(sorted(platforms))))
    return found


def import_all() -> None:
    """Imports every module of JAX's that can be imported here, so that all lowerings are
    registered.
    """
    import importlib
    import pkgutil

    argv, sys.argv = sys.argv, sys.argv[:1]
    for module in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
        if re.search(r"test|\.tools|__main__|collect_profile", module.name):
            continue
        try:
            importlib.import_module(module.name)
        except Exception as error:  # noqa: BLE001 - for other systems, or for what is not installed
            print(f"not imported: {module.name}: {error!s:.60}", file=sys.stderr)
    sys.argv = argv


def spellings(written: Written) -> Iterator[tuple[str, str]]:
    """Pairs of a primitive and of how an equation of it is written."""
    for equations, shown in _lines(written):
        yield str(equations[-1].primitive.name), shown
        for equation in equations[:-1]:
            yield str(equation.primitive.name), f"{PART}{shown}"


def within(written: Written) -> Iterator[tuple[str, str]]:
    """Pairs of a primitive and of the public function whose jitted call holds an equation of it."""
    for (*_, equation), shown in _lines(written):
        if equation.primitive.name in ("jit", "pjit") and shown.startswith(
            ("jax.", "jnp.", "lax.")
        ):
            for inner in opened(equation.params["jaxpr"]).jaxpr.eqns:
                yield str(inner.primitive.name), f"{PART}{shown}"


def _lines(written: Written) -> Iterator[tuple[Sequence[Any], str]]:
    """Equations that are written as one, and what is called for them."""
    tree = ast.parse(written.text)
    passed = {placeholder.name for placeholder in written.placeholders}
    for _, group in groupby(written.lines, key=lambda line: id(line.equations)):
        found = list(group)
        equations = found[0].equations
        if not equations:
            continue
        try:
            parsed = ast.parse(textwrap.dedent("\n".join(line.text for line in found)))
        except SyntaxError:  # several statements of one equation
            continue
        statement = parsed.body[0]
        if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return)) or not statement.value:
            continue
        shown = _shown(statement.value, tree)
        if shown is None:
            continue
        if shown.removesuffix("(…)") in passed:
            shown = PASSED
        yield equations, shown


def _shown(expr: ast.expr, module: ast.Module) -> str | None:
    """`lax.sin(…)`: what is called. None for what says nothing, a name alone."""
    match expr:
        case ast.Call(func=ast.Attribute(attr="bind", value=value)):
            return f"{ast.unparse(value)}.{BIND}"
        case ast.Call(func=ast.Name(id=name)):
            return _defined(name, module) or f"{name}(…)"
        case ast.Call(func=ast.Attribute() as function):
            return f"{_path(function)}(…)"
        case ast.Call(func=function):
            inner = _shown(function, module)
            return None if inner is None else f"{inner}(…)"
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            return type(op).__name__.lower()
        case ast.Subscript(value=ast.Call() as call):
            return _shown(call, module)
        case ast.Subscript():
            return "…[…]"
        case ast.Attribute():
            return _path(expr)
    return None


def _path(expr: ast.expr) -> str:
    """`lax.sin`, `….astype`: what is called by its dots."""
    match expr:
        case ast.Attribute(value=value, attr=attribute):
            return f"{_path(value)}.{attribute}"
        case ast.Name(id=name) if name in ("jax", "jnp", "lax", "np", "primitives", "ad"):
            return name
        case ast.Subscript(value=value):
            return f"{_path(value)}[…]"
    return "…"


def _defined(name: str, module: ast.Module, seen: frozenset[str] = frozenset()) -> str | None:
    """What makes a function of the module what it is: its decorator, or the primitive that it
    binds.
    """
    if name in seen:
        return None
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(called, ast.Name):
                    return _defined(called.id, module, seen | {name})
                return f"@{_path(called)}"
            for inner in ast.walk(node):
                match inner:
                    case ast.Call(func=ast.Attribute(attr="bind", value=value)):
                        return f"{ast.unparse(value)}.{BIND}"
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call):
                if target == name:
                    return _shown(call, module)
    return None


def programs() -> Iterator[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    """A harness of JAX's of each group and the hard programs, with their arguments."""
    from tests.corpora.jaxsight_source.programs.registry import all_programs
    from tests.jaxsight_source import gate
    from tests.jaxsight_source.harnesses import arguments, load_harnesses, sample

    for harness in sample(load_harnesses(), 40):
        yield harness.fullname, harness.dyn_fun, tuple(arguments(harness)), {}
    for program in list(all_programs()):
        if program.name == "a_chain_of_a_hundred_thousand_equations":
            continue
        with gate.x64(program.x64[0]):
            call = program.make()
            with gate.recursion(call.recursion):
                yield program.name, call.function, call.args, call.kwargs


def observed() -> Spellings:
    """How programs are written; what only jitted calls of public functions hold is part of
    these.
    """
    found: Spellings = collections.defaultdict(collections.Counter)
    held: Spellings = collections.defaultdict(collections.Counter)
    for name, function, args, kwargs in programs():
        try:
            written = write(function, args, kwargs, SourceOptions(name="written", run=False))
        except Exception as error:  # noqa: BLE001 - the tests tell of those
            print(f"not written: {name}: {error!s:.200}", file=sys.stderr)
            continue
        for primitive, shown in spellings(written):
            found[primitive][shown] += 1
        for primitive, shown in within(written):
            held[primitive][shown] += 1
    return {**held, **found}


def by_rule(primitive: Any, home: str) -> str:
    """How a primitive that no program has would be written: by its name, bound, or not at all
    (empty).
    """
    public = (
        None if ".pallas" in home else public_function(primitive.name)
    )  # as the rule looks it up
    if public is not None:
        return f"{public[0]}(…)"
    try:
        return f"{public_names.primitive(primitive).text}.{BIND}"
    except Unwritable:
        return ""


def why_bound(name: str, ways: list[str]) -> str:
    """Why equations are bound, where public functions write others or none."""
    if any(kind(shown) == "public" for shown in ways):
        return "where that gives another equation"
    if any(shown.startswith("jax.experimental.sparse.") for shown in ways):
        return "the public functions take matrices as objects"
    public = public_function(name)
    if public is None:
        return "no public function is this primitive"
    if hasattr(resolved(public[0]), "lower"):
        return f"`{public[0]}` is jitted, which adds a call"
    return f"`{public[0]}` gives more than this equation"


def homes(known: Iterable[Any]) -> dict[str, str]:
    """The module of JAX's that has a primitive, the outermost one."""
    wanted = {id(primitive): primitive.name for primitive in known}
    found: dict[str, str] = {}
    for module in sorted(sys.modules, key=lambda name: (name.count("."), name)):
        if module.partition(".")[0] == "jax":
            for value in list(vars(sys.modules[module]).values()):
                if id(value) in wanted:
                    found.setdefault(wanted[id(value)], module)
    return found


def recorded_now() -> dict[str, Any]:
    """All that is recorded of this version of JAX."""
    found = observed()
    import_all()
    known = {
        name: primitive
        for name, primitive in sorted(lowered().items())
        if not hasattr(third_party, f"{name}_p")
    }
    home = homes(primitive for primitive, _ in known.values())
    unseen = sorted(known.keys() - found.keys())
    written = {
        name: [shown for shown, _ in found[name].most_common()]
        if name in found
        else [by_rule(primitive, home.get(name, ""))]
        for name, (primitive, _) in known.items()
    }
    return {
        "written": written,
        "bound": {
            name: why_bound(name, ways)
            for name, ways in written.items()
            if any(kind(shown) == "bind" for shown in ways)
        },
        "unseen": {name: home.get(name, "") for name in unseen},
        "only": {name: list(platforms) for name, (_, platforms) in known.items() if platforms},
    }


def harnesses_of(text: str) -> tuple[str, str, dict[str, Any]]:
    """Version, setting of x64 and figures of a run, from what it printed."""
    groups = {
        group: [int(good), int(count)]
        for group, good, count in re.findall(r"^(\S+) +(\d+)/ *(\d+)", text, re.MULTILINE)
    }
    summary = re.search(r"^jax (\S+), x64 (\w+): (\{.*\})$", text, re.MULTILINE)
    if summary is None:
        raise ValueError("the run has not ended")
    version, x64, stages = summary.groups()
    return (
        version,
        "on" if x64 == "True" else "off",
        {
            "stages": ast.literal_eval(stages),
            "groups": groups,
        },
    )


def rendered(page: str, recorded: dict[str, Any]) -> str:
    """The page with its tables as recorded; each stands between comments that name it."""
    tables = {
        "harnesses": harness_totals,
        "groups": harness_groups,
        "counts": primitive_counts,
        "primitives": primitive_table,
    }
    for name, table in tables.items():
        start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, found, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"the page has no place for the table {name!r}")
        page = f"{before}{start}\n\n" + "\n".join(table(recorded)) + f"\n\n{end}{after}"
    return page


def _versions(recorded: Iterable[str]) -> list[str]:
    """The newest first."""
    return sorted(recorded, key=lambda version: [int(n) for n in version.split(".")], reverse=True)


def _runs(recorded: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for version in _versions(recorded["harnesses"]):
        for x64, run in sorted(recorded["harnesses"][version].items()):
            yield version, x64, run


NOT_THE_PROGRAM = ("write", "load", "check", "same")
"""Stages that a harness ends at whose text is not the same jaxpr."""


def harness_totals(recorded: dict[str, Any]) -> Iterator[str]:
    yield "| JAX | x64 | harnesses | the same jaxpr | the same bits |"
    yield "|---|---|---|---|---|"
    for version, x64, run in _runs(recorded):
        stages = run["stages"]
        count = sum(stages.values())
        equal = count - sum(stages.get(stage, 0) for stage in NOT_THE_PROGRAM)
        good = stages.get("ok", 0)
        yield (
            f"| {version} | {x64} | {count} | {equal} ({_share(equal, count)}) "
            f"| {good} ({_share(good, count)}) |"
        )


def _share(part: int, whole: int) -> str:
    """A percentage that says 100 of all alone."""
    return "100 %" if part == whole else f"{min(100 * part / whole, 99.99):.2f} %"


def harness_groups(recorded: dict[str, Any]) -> Iterator[str]:
    runs = list(_runs(recorded))
    yield "| harnesses of | " + " | ".join(f"{version}, {x64}" for version, x64, _ in runs) + " |"
    yield "|---" * (len(runs) + 1) + "|"
    for group in sorted({group for _, _, run in runs for group in run["groups"]}):
        cells = (run["groups"].get(group) for _, _, run in runs)
        shown = (f"{cell[0]}/{cell[1]}" if cell else "" for cell in cells)
        yield f"| `{group}` | " + " | ".join(shown) + " |"


def kind(shown: str) -> str:
    """`public`, `bind`, `argument`, or `refused`."""
    if not shown:
        return "refused"
    if shown == PASSED:
        return "argument"
    return "bind" if shown.endswith(f".{BIND}") else "public"


def _best(ways: list[str]) -> str:
    """Whole expressions before parts, public functions before what is bound."""
    order = ["public", "bind", "argument", "refused"]
    return min(ways, key=lambda shown: (shown.startswith(PART), order.index(kind(shown))))


def primitive_counts(recorded: dict[str, Any]) -> Iterator[str]:
    yield "| JAX | primitives with a lowering | in programs here | by public functions | bound | passed in |"
    yield "|---|---|---|---|---|---|"
    for version in _versions(recorded["primitives"]):
        found = recorded["primitives"][version]
        seen = {name: _best(ways) for name, ways in found["written"].items()}
        counts = collections.Counter(
            kind(best) for name, best in seen.items() if name not in found["unseen"]
        )
        yield (
            f"| {version} | {len(seen)} | {len(seen) - len(found['unseen'])} "
            f"| {counts['public']} | {counts['bind']} | {counts['argument']} |"
        )


def primitive_table(recorded: dict[str, Any]) -> Iterator[str]:
    versions = _versions(recorded["primitives"])
    yield "| primitive | written as | JAX |"
    yield "|---|---|---|"
    by_version = recorded["primitives"]
    for name in sorted({n for version in versions for n in by_version[version]["written"]}):
        having = [version for version in versions if name in by_version[version]["written"]]
        newest = by_version[having[0]]
        cell = _cell(
            newest["written"][name], newest["bound"].get(name, ""), newest["unseen"].get(name)
        )
        if name in newest["only"]:
            cell += f" (on {', '.join(newest['only'][name])} alone)"
        yield f"| `{name}` | {cell} | {_range(having, versions)} |"


def _range(having: list[str], versions: list[str]) -> str:
    """Which of the versions: `all`, `from 0.10`, `to 0.10`."""
    short = [".".join(version.split(".")[:2]) for version in having]
    if having == versions:
        return "all"
    if having[0] == versions[0]:
        return f"from {short[-1]}"
    return f"to {short[0]}" if having[-1] == versions[-1] else ", ".join(reversed(short))


def _cell(ways: list[str], why: str, unseen: str | None) -> str:
    """`why` it is bound; `unseen` is the module of a primitive that no program has."""
    whole = [shown for shown in ways if not shown.startswith(PART)]
    public = [shown for shown in whole if kind(shown) == "public"][:2]
    tied = [shown for shown in whole if kind(shown) == "bind"][:1]
    parts = [f"`{shown}`" for shown in public]
    held = [shown.removeprefix(PART) for shown in ways if shown.startswith(PART)][:1]
    if not public and not tied:
        parts += [f"{PART}`{shown}`" for shown in held]
    parts += [f"`{_short(shown)}`: {why}" for shown in tied]
    if PASSED in whole and not public:
        where = "elsewhere passed in" if held else "passed in"
        parts.append(f"{where} by the caller: no public name has it")
    elif PASSED in whole:
        parts.append("passed in by the caller where its parameters have no public spelling")
    if not ways[0]:
        parts = [f"passed in by the caller: no public name has it (`{unseen}`)"]
    return "; ".join(parts) + (" †" if unseen is not None else "")


def _short(shown: str) -> str:
    """A primitive that is taken out of a program is shown as what it is."""
    return shown if len(shown) < 60 else f"make_jaxpr(…).eqns[…].primitive.{BIND}"


def resolved(path: str) -> Any:
    """What a path like `lax.linalg.svd` names."""
    import jax.numpy
    from jax import lax
    from jax.extend.core import primitives
    from jax.interpreters import ad

    first, *rest = path.split(".")
    found: Any = {"jax": jax, "jnp": jax.numpy, "lax": lax, "primitives": primitives, "ad": ad}[
        first
    ]
    for part in rest:
        found = getattr(found, part)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--harnesses", type=Path, action="append", default=[])
    parser.add_argument("--render", action="store_true")
    given = parser.parse_args()
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    if given.write:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recorded["primitives"][jax.__version__] = recorded_now()
    for path in given.harnesses:
        version, x64, run = harnesses_of(path.read_text(encoding="utf-8"))
        recorded["harnesses"].setdefault(version, {})[x64] = run
    RECORDED.write_text(_compact(recorded), encoding="utf-8")
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), recorded), encoding="utf-8")


def _compact(recorded: dict[str, Any]) -> str:
    """JSON with a line for each primitive and group."""
    text = json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", _joined, text) + "\n"


def _joined(found: re.Match[str]) -> str:
    return "[" + re.sub(r",\n\s+", ", ", found[1]) + "]"


if __name__ == "__main__":
    main()
