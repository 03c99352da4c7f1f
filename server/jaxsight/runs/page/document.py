"""The whole page of a run."""

from __future__ import annotations

import base64
import json
import shlex
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from jaxsight.files import reading
from jaxsight.runs.collected import RunProcess, RunSummary
from jaxsight.runs.merging import CompiledFunction, Recompilation, TimedCompile
from jaxsight.runs.page.markup import Markup, PageTexts, element, html_table, joined
from jaxsight.runs.page.program import definitions, place, placed, program_part, signature, why
from jaxsight.text.inert import clause
from jaxsight.text.units import count, some, time

# The parts of the page: figures of the run, processes, recompilations, functions, operations.

_RECOMPILATIONS = 10
"""Recompilations of a function that are listed, a choice; its programs have all."""
_PROCESSES = 8
"""Processes that are named, a choice."""
_COMMAND = 120
"""Characters of a command, a choice: about a line."""
_OPERATIONS = 60
"""Operations that are listed, a choice."""


def figures(processes: Sequence[RunProcess], again: int, seconds: float) -> Markup:
    """Return the figures of the whole run, in which functions were compiled `again` so often."""
    programs = [program for process in processes for program in process.programs]
    hits = sum(program.is_cached for program in programs)
    failed = sum(bool(program.error) for program in programs)
    tiles = {
        "program compiled" if len(programs) == 1 else "programs compiled": str(len(programs)),
        "recompilation" if again == 1 else "recompilations": str(again),
        "tracing": time(sum(program.trace or 0.0 for program in programs)),
        "lowering": time(sum(program.lower or 0.0 for program in programs)),
        "compiling": time(sum(program.compile for program in programs)),
        "the whole run": time(seconds),
        "from the persistent cache": str(hits or ""),
        "failed to compile": str(failed or ""),
        "processes": str(len(processes)) if len(processes) > 1 else "",
    }
    items = (
        element("li", element("b", value), " ", element("span", name))
        for name, value in tiles.items()
        if value
    )
    return element("ul", *items, class_="figures")


def process_table(processes: Sequence[RunProcess]) -> Markup | None:
    """Return the processes of the run, if there are several or one did not end by itself."""
    if len(processes) == 1 and processes[0].ended is not None:
        return None
    is_distributed = any(process.index for process in processes)
    rows = []
    for number, process in enumerate(processes):
        ranks = dict(process.ranks)
        if is_distributed and process.index is not None:
            ranks["jax.process_index()"] = str(process.index)
        rows.append(
            (
                str(number),
                str(process.pid),
                " ".join(f"{name}={rank}" for name, rank in ranks.items()),
                element("code", clause(shlex.join(process.command), _COMMAND)),
                f"{process.jax}, {process.python}",
                str(len(process.programs)),
                time(sum(program.seconds for program in process.programs)),
                "by itself" if process.ended is not None else "killed, crashed, or by os._exit",
            )
        )
    titles = ("", "pid", "rank", "command", "JAX, Python", "programs", "time", "ended")
    return section("Processes", html_table(titles, rows, (0, 1, 5, 6)))


def section(title: str, *parts: Markup | None) -> Markup:
    """Return a part of the page with its heading."""
    return element("section", element("h2", title), *parts, id=title.partition(" ")[0].lower())


def recompilations(functions: Sequence[CompiledFunction]) -> Markup | None:
    """Return why functions were compiled again, those first that took longest for it."""
    found = [(each, each.recompilations) for each in functions if each.recompilations]
    cost = {id(each): sum(one.program.seconds for _, one in again) for each, again in found}
    parts = []
    for function, again in sorted(found, key=lambda pair: -cost[id(pair[0])]):
        alike: dict[tuple[str, Recompilation | None], list[TimedCompile]] = {}
        for program, each in again:
            alike.setdefault((program.key, each.reason), []).append(each)
        items = [
            element(
                "li",
                element("a", signature(times[0].program), href=f"#{key}"),
                " ",
                element("span", _when(times), class_="facts"),
                why(reason) if reason is not None else None,
            )
            for (key, reason), times in list(alike.items())[:_RECOMPILATIONS]
        ]
        if len(alike) > _RECOMPILATIONS:
            more = count(len(alike) - _RECOMPILATIONS, "more recompilation")
            items.append(element("li", f"and {more}"))
        heading = element(
            "h3",
            element("code", function.name),
            " ",
            placed(function.defined),
            f" compiled {count(len(again), 'more time')} ({time(cost[id(function)])})",
        )
        parts.append(element("article", heading, element("ol", *items), class_="filtered"))
    return section("Recompilations", *parts) if parts else None


def _when(times: Sequence[TimedCompile]) -> str:
    """Return where a program was compiled again, and in which processes."""
    called = times[0].program.called
    parts = [f"called at {place(called[0])}"] if called else []
    processes = sorted({str(each.process) for each in times})
    if len(times) > len(processes):
        parts.append(count(len(times), "time"))
    if len(processes) > 1:
        parts.append(f"in processes {some(processes, _PROCESSES)}")
    return ", ".join(parts)


def function_list(functions: Sequence[CompiledFunction], texts: PageTexts, budget: int) -> Markup:
    """Return all functions with their programs, until they fill the page.

    Args:
        budget: bytes; programs beyond it are counted.
    """
    parts: list[Markup] = []
    used = dropped = 0
    for function in functions:
        programs = []
        for program in function.programs:
            part = program_part(function, program, texts)
            if used + len(part) > budget:
                dropped += 1
                continue
            used += len(part)
            programs.append(part)
        if not programs:
            continue
        passed = " (derivative or batch outside of jit)" if function.is_transformed else ""
        heading = element(
            "h3",
            element("code", function.name),
            " ",
            placed(function.defined),
            f" {time(function.seconds)}{passed}",
        )
        parts.append(element("article", heading, *programs, class_="filtered"))
    if dropped:
        left_out = f"{count(dropped, 'program')} that took less time are left out"
        parts.append(element("p", f"{left_out}, as the page is full."))
    return section("Functions", *parts or [element("p", "No function was compiled.")])


def operations(functions: Sequence[CompiledFunction]) -> Markup | None:
    """Return JAX's own operations, which a program calls outside of `jit`, by line."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for function in functions:
        for each in (each for program in function.programs for each in program.compilations):
            called = each.program.called
            line = place(called[0]) if called else ""
            found[function.name, line].append(each.program.seconds)
    if not found:
        return None
    longest = sorted(found.items(), key=lambda item: -sum(item[1]))
    rows = [
        (element("code", name), element("code", line), str(len(times)), time(sum(times)))
        for (name, line), times in longest[:_OPERATIONS]
    ]
    note = (
        "Each of these is compiled by itself, for each shape. "
        "Inside of a jitted function they are part of its program."
    )
    more = len(found) - len(rows)
    return section(
        "Operations outside of jit",
        element("p", note),
        html_table(("operation", "called at", "programs", "time"), rows, (2, 3), row="filtered"),
        element("p", f"and {count(more, 'more line')}") if more > 0 else None,
    )


def about(run: RunSummary, processes: Sequence[RunProcess]) -> Markup:
    """Return the command and with what it ran."""
    first = processes[0] if processes else None
    device = next((program.device for process in processes for program in process.programs), "")
    return joined(
        element("h1", element("code", shlex.join(run.command))),
        definitions(
            [
                ("exit status", str(run.status)),
                ("JAX", first.jax if first is not None else ""),
                ("Python", first.python if first is not None else ""),
                ("device", device),
                ("jaxsight", run.version),
            ]
        ),
    )


LARGEST = 2_000_000
"""Bytes of a page at most: it can be attached to an issue, and mailed."""
_FOR_TEXTS = 1_100_000
_FOR_PROGRAMS = 700_000
"""Bytes for the texts and for the programs, a choice; 200,000 are left for all the rest."""
_HERE = Path(__file__).parent


def document(
    run: RunSummary, processes: Sequence[RunProcess], functions: Sequence[CompiledFunction]
) -> str:
    """Return a run as a page of HTML, of at most `LARGEST` bytes.

    The programs that took longest come first; what is left out, is said.

    Args:
        run: the run.
        processes: those that imported JAX.
        functions: what they compiled (`merged`).
    """
    own = [each for each in functions if not _is_operation(each)]
    texts = PageTexts(_FOR_TEXTS)
    listed = function_list(own, texts, _FOR_PROGRAMS)
    style = reading.text(_HERE / "style.css")
    script = reading.text(_HERE / "script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    began = datetime.fromtimestamp(run.began).strftime("%Y-%m-%d %H:%M")
    errors = dict.fromkeys(error for process in processes for error in process.errors)
    main = element(
        "main",
        figures(processes, sum(len(each.recompilations) for each in own), run.seconds),
        *(element("p", f"internal error: {error}", class_="error") for error in errors),
        element(
            "p",
            element("label", "Search ", for_="search"),
            element("input", id="search", type="search", autocomplete="off"),
            " ",
            element("span", id="found", role="status"),
            class_="search",
            hidden=True,
        ),
        process_table(processes),
        recompilations(own),
        listed,
        operations([each for each in functions if _is_operation(each)]),
    )
    packed = Markup(json.dumps(texts.packed).replace("<", "\\u003c"))
    dropped = "Texts of programs that took less time are left out." if texts.dropped else None
    return "<!doctype html>\n" + element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name="referrer", content="no-referrer"),
            element("title", f"Compiled by {' '.join(run.command)}"[:200]),
            element("style", Markup(style)),
        ),
        element(
            "body",
            element("header", about(run, processes), element("p", began)),
            main,
            element("footer", element("p", dropped)) if dropped else None,
            element("script", packed, type="application/json", id="texts"),
            element("script", Markup(script)),
        ),
        lang="en",
    )


def _is_operation(function: CompiledFunction) -> bool:
    """Return whether a function is JAX's own."""
    return function.programs[0].first.library in ("jax", "jaxlib")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
