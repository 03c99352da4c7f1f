"""The whole page of a run."""

from __future__ import annotations

import base64
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from jaxsight.files import reading
from jaxsight.profiles.places import CodePlace
from jaxsight.runs.collected import RunProcess, RunProgram, RunSummary
from jaxsight.runs.merging import CompiledFunction, MergedProgram, Recompilation, TimedCompile
from jaxsight.runs.page.markup import Markup, PageTexts, element, html_table, joined
from jaxsight.runs.page.program import definitions, place, placed, program_part, signature, why
from jaxsight.text.units import count, size, time

# The parts of the page: figures of the run, processes, recompilations, functions, operations.

_RECOMPILATIONS = 10
"""Recompilations of a function that are listed, a choice; its programs have all."""
_PROCESSES = 8
"""Processes that are named, a choice."""
_OPERATIONS = 60
"""Operations that are listed, a choice."""


def figures(
    run: RunSummary, processes: Sequence[RunProcess], functions: Sequence[CompiledFunction]
) -> Markup:
    """Return the figures of the whole run; `functions` are those of the user and of libraries."""
    programs = [program for process in processes for program in process.programs]
    again = sum(len(function.recompilations) for function in functions)
    hits = sum(program.is_cached for program in programs)
    failed = sum(bool(program.error) for program in programs)
    largest = max(programs, key=_live, default=None)
    stages = ("trace", "lower", "compile")
    total = [sum(getattr(program, stage) or 0.0 for program in programs) for stage in stages]
    tiles = [
        ("program compiled" if len(programs) == 1 else "programs compiled", str(len(programs))),
        ("recompilation" if again == 1 else "recompilations", str(again)),
        ("tracing", time(total[0]) if programs else ""),
        ("lowering", time(total[1]) if programs else ""),
        ("compiling", time(total[2]) if programs else ""),
        ("the whole run", time(run.seconds)),
        ("from the persistent cache", str(hits) if hits else ""),
        ("failed to compile", str(failed) if failed else ""),
        ("most memory of a program", size(_live(largest)) if largest is not None else ""),
        ("processes", str(len(processes)) if len(processes) > 1 else ""),
    ]
    return element(
        "ul",
        *(
            element("li", element("b", value), " ", element("span", name))
            for name, value in tiles
            if value
        ),
        class_="figures",
    )


def _live(program: RunProgram) -> int:
    """Return the bytes that a program needs: those of its arguments, results and temporaries."""
    memory = program.memory
    parts = memory.temporaries, memory.arguments, memory.outputs
    return sum(parts) - max(memory.aliased, 0) if min(parts) >= 0 else -1


def process_table(processes: Sequence[RunProcess]) -> Markup | None:
    """Return the processes of the run, if there are several or one did not end by itself."""
    if len(processes) == 1 and processes[0].ended is not None:
        return None
    is_distributed = any(process.index for process in processes)
    rows = []
    for number, process in enumerate(processes):
        programs = process.programs
        compiled = sum(program.seconds for program in programs)
        ended = "by itself" if process.ended is not None else "killed, crashed, or by os._exit"
        rows.append(
            (
                str(number),
                str(process.pid),
                " ".join(f"{k}={v}" for k, v in _ranks(process, is_distributed)),
                element("code", _command(process.command)),
                f"{process.jax}, {process.python}",
                str(len(programs)),
                time(compiled) if programs else "",
                ended,
            )
        )
    titles = ("", "pid", "rank", "command", "JAX, Python", "programs", "time", "ended")
    shown = html_table(titles, rows, (0, 1, 5, 6))
    return element("section", element("h2", "Processes"), shown, id="processes")


def _ranks(process: RunProcess, is_distributed: bool) -> Iterator[tuple[str, str]]:
    yield from process.ranks.items()
    if is_distributed and process.index is not None:
        yield "jax.process_index()", str(process.index)


def _command(command: Sequence[str]) -> str:
    text = shlex.join(command)
    return text if len(text) <= 120 else f"{text[:119]}…"


def recompilations(functions: Sequence[CompiledFunction]) -> Markup | None:
    """Return why functions were compiled again, those first that took longest for it."""
    parts = []
    cost = {
        id(each): sum(one.program.seconds for _, one in each.recompilations) for each in functions
    }
    in_several = (
        len({one.process for each in functions for p in each.programs for one in p.compilations})
        > 1
    )
    for function in sorted(functions, key=lambda each: -cost[id(each)]):
        if not (found := function.recompilations):
            continue
        alike: dict[tuple[str, CodePlace | None, Recompilation | None], list[TimedCompile]] = {}
        firsts: dict[str, MergedProgram] = {}
        for program, each in found:
            called = each.program.called[0] if each.program.called else None
            alike.setdefault((program.key, called, each.reason), []).append(each)
            firsts[program.key] = program
        shown = list(alike.items())[:_RECOMPILATIONS]
        items = [
            element(
                "li",
                element("a", signature(firsts[key].first), href=f"#{key}"),
                " ",
                element("span", _when(called, times, in_several), class_="facts"),
                why(reason) if reason is not None else None,
            )
            for (key, called, reason), times in shown
        ]
        if more := len(found) - sum(len(times) for _, times in shown):
            items.append(element("li", f"and {count(more, 'more recompilation')}"))
        times = f"compiled {count(len(found), 'more time')} ({time(cost[id(function)])})"
        parts.append(
            element(
                "article",
                element(
                    "h3", element("code", function.name), " ", placed(function.defined), f" {times}"
                ),
                element("ol", *items),
                class_="filtered",
            )
        )
    if not parts:
        return None
    return element("section", element("h2", "Recompilations"), *parts, id="recompilations")


def _when(called: CodePlace | None, compilations: Sequence[TimedCompile], in_several: bool) -> str:
    """Return where a program was compiled again, how often, and in which processes."""
    parts = [f"called at {place(called)}"] if called is not None else []
    processes = sorted({each.process for each in compilations})
    if len(compilations) > len(processes):
        parts.append(count(len(compilations), "time"))
    if in_several:
        named = ", ".join(map(str, processes[:_PROCESSES]))
        more = len(processes) - _PROCESSES
        noun = "process" if len(processes) == 1 else "processes"
        parts.append(f"in {noun} {named}{f' and {more} more' if more > 0 else ''}")
    return ", ".join(parts)


def function_list(
    functions: Sequence[CompiledFunction], texts: PageTexts, processes: int, budget: int
) -> Markup:
    """Return all functions with their programs, until they fill the page.

    Args:
        budget: bytes; programs beyond it are counted.
    """
    parts: list[Markup] = []
    used = dropped = 0
    for function in functions:
        programs = []
        for program in function.programs:
            part = program_part(function, program, texts, processes)
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
            f" · at least {count(function.calls, 'call')}" if function.calls else None,
        )
        parts.append(element("article", heading, *programs, class_="filtered"))
    note = f"{count(dropped, 'program')} that took less time are left out, as the page is full."
    return element(
        "section",
        element("h2", "Functions"),
        *parts,
        element("p", note) if dropped else None,
        element("p", "No function was compiled.") if not functions else None,
        id="functions",
    )


def operations(functions: Sequence[CompiledFunction]) -> Markup | None:
    """Return JAX's own operations, which a program calls outside of `jit`, by line."""
    times: Counter[tuple[str, str]] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    for function in functions:
        for program in function.programs:
            for each in program.compilations:
                called = each.program.called
                key = function.name, place(called[0]) if called else ""
                counts[key] += 1
                times[key] += each.program.seconds  # type: ignore[assignment]
    if not counts:
        return None
    rows = [
        (element("code", name), element("code", line), str(counts[name, line]), time(seconds))
        for (name, line), seconds in times.most_common(_OPERATIONS)
    ]
    titles = ("operation", "called at", "programs", "time")
    more = len(counts) - len(rows)
    summary = (
        f"{count(counts.total(), 'program')} of JAX's own functions, {time(sum(times.values()))}"
    )
    return element(
        "section",
        element("h2", "Operations outside of jit"),
        element(
            "p",
            "Each of these is compiled by itself, for each shape. "
            "Inside of a jitted function they are part of its program.",
        ),
        element(
            "details",
            element("summary", summary),
            html_table(titles, rows, (2, 3), row="filtered"),
            element("p", f"and {count(more, 'more line')}") if more > 0 else None,
        ),
        id="operations",
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
    listed = function_list(own, texts, len(processes), _FOR_PROGRAMS)
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
        figures(run, processes, own),
        *(element("p", f"internal error: {error}", class_="error") for error in errors),
        _search(),
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


def _search() -> Markup:
    return element(
        "p",
        element("label", "Search ", for_="search"),
        element("input", id="search", type="search", autocomplete="off"),
        " ",
        element("span", id="found", role="status"),
        class_="search",
        hidden=True,
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
