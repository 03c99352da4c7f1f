"""What `jaxsight dataset` prints: a row, statistics, and what was verified."""

from __future__ import annotations

from itertools import islice

from jaxsight.cli.output.printing import Printer, Table, cells, code, styled
from jaxsight.dataset.program import Record
from jaxsight.dataset.tables.statistics import (
    PassSummary,
    Statistics,
    TimingSummary,
    summarized,
    summarized_passes,
)
from jaxsight.dataset.tables.verification import Verified
from jaxsight.dataset.tasks.evaluation import EvaluationRecord
from jaxsight.text import units

_MOST = 12
"""Values of a column that are listed, a choice: half a screen. The rest are counted."""

_WORDS = {
    "files": "damaged file",
    "schema": "wrong column",
    "programs": "duplicate program",
    "splits": "split leak",
    "validation": "failed check",
    "again": "irreproducible row",
}


def print_row(row: Record) -> None:
    """Print a row: its source, its jaxpr and its kernels on each target."""
    printer = Printer()
    facts = [
        *(row["category"], row["difficulty"], units.count(row["equation_count"], "equation")),
        *(" and ".join(row["directions"]), row["split"], *row["tags"]),
    ]
    printer.print(
        styled((f"#{row['number']} {row['function']}", "bold"), f" · {' · '.join(facts)}")
    )
    printer.print()
    _print_code(printer, row["source_code"], "python")
    printer.print()
    _print_code(printer, row["jaxpr"], "")
    for target in row["targets"]:
        printer.print()
        _print_target(printer, target)


def print_pair(pair: Record) -> None:
    """Print a rewrite pair: what the rule reports, the change, and the figures of both programs."""
    printer = Printer()
    facts = [pair["rule"], pair["title"], pair["category"], pair["split"]]
    printer.print(
        styled((f"#{pair['number']} {pair['function']}", "bold"), f" · {' · '.join(facts)}")
    )
    printer.print(pair["message"])
    printer.print()
    _print_code(printer, pair["diff"], "diff")
    printer.print()
    table = _table(pair["target"], "before", "after")
    before, after = pair["figures_before"], pair["figures_after"]
    for title, name in (
        ("equations", "equation_count"),
        ("kernels", "kernel_count"),
        ("launches", "launch_count"),
        ("flops", "flops"),
    ):
        if before[name] is not None and after[name] is not None:
            table.add_row(*cells(title, f"{before[name]:,.0f}", f"{after[name]:,.0f}"))
    if before["temp_bytes"] is not None and after["temp_bytes"] is not None:
        sizes = (units.size(before["temp_bytes"]), units.size(after["temp_bytes"]))
        table.add_row(*cells("temp", *sizes))
    printer.print(table)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title)
    return table


def _print_code(printer: Printer, text: str, language: str) -> None:
    if printer.is_terminal and language:
        printer.print(code(text.rstrip("\n"), language))
    else:
        printer.print(text.rstrip("\n"))


def _print_target(printer: Printer, target: Record) -> None:
    if target.get("refused"):
        printer.print(styled((target["target"], "bold"), f": not compiled: {target['refused']}"))
        return
    facts = [
        units.count(target["kernel_count"], "kernel"),
        units.count(target["launch_count"], "launch", "launches"),
    ]
    if target["temp_bytes"] is not None:
        facts.append(f"temp {units.size(target['temp_bytes'])}")
    if target["estimate_seconds"] is not None:
        facts.append(f"≈ {units.time(target['estimate_seconds'])}")
    printer.print(styled((target["target"], "bold"), f": {' · '.join(facts)}"))
    table = _table("kernel", "what", "launches", "reads", "writes", "ends because")
    for kernel in target["kernels"]:
        read, written = units.size(kernel["bytes_in"]), units.size(kernel["bytes_out"])
        launches = f"{kernel['launches']}"
        reason = (kernel["ends_because"], "dim")
        row = (kernel["name"], kernel["what"], launches, read, written, reason)
        table.add_row(*cells(*row))
    if target["kernels"]:
        printer.print(table)


def print_measurements(timings: list[Record]) -> None:
    """Print what directions of a row took; nothing if it was not measured."""
    if not timings:
        return
    printer = Printer()
    titles = ("measured on", "cores", "JAX", "direction", "runs", "median", "98 % interval")
    table = _table(*titles, "overhead")
    for each in timings:
        interval = f"{units.time(each['low_seconds'])} – {units.time(each['high_seconds'])}"
        overhead = each["overhead_seconds"]
        table.add_row(
            *cells(
                each["processor"] or "unknown",
                f"{each['cores']}",
                each["versions"]["jax"],
                each["direction"],
                f"{each['runs']:,}",
                units.time(each["median_seconds"]),
                interval,
                "–" if overhead is None else units.time(overhead),
            )
        )
    printer.print()
    printer.print(table)
    _note_busy(timings)


def _note_busy(timings: list[Record]) -> None:
    busy = sum(record["is_quiet"] is False for record in timings)
    if busy:
        during = f"{busy:,} of {units.count(len(timings), 'measurement')}"
        Printer().print(f"note: other processes were busy during {during}: times may be too long")


def print_statistics(statistics: Statistics) -> None:
    """Print the statistics of a dataset as tables."""
    printer = Printer()
    share = statistics.share
    if statistics.rows:
        printer.print(
            f"{units.count(statistics.rows, 'row')} · "
            f"{share(statistics.programs)} different programs · "
            f"{share(statistics.structures)} different structures · "
            f"{share(statistics.near_duplicates)} near duplicates"
        )
    if statistics.rewrites:
        printer.print(units.count(statistics.rewrites, "rewrite"))
    for name, counts in statistics.counts.items():
        _print_counts(printer, name, counts)
    for target, kernels in statistics.kernels.items():
        _print_counts(printer, f"kernels on {target}", kernels)
    for name, outcomes in statistics.checks.items():
        _print_counts(printer, f"check {name}", outcomes)
    _print_counts(printer, f"rejected of {statistics.surveyed}", statistics.rejected)
    if statistics.timings:
        printer.print()
        _print_summaries(printer, statistics.timings)
    if statistics.passes:
        printer.print()
        _print_passes(printer, statistics.passes)
    if statistics.disagreements:
        printer.print(f"\n{units.count(statistics.disagreements, 'disagreement')}")


def print_timings(measured: list[Record], causes: dict[str, int]) -> None:
    """Print what directions took, and why others were not measured."""
    printer = Printer()
    if measured:
        _print_summaries(printer, summarized(measured))
    _print_counts(printer, "not measured", causes)
    _note_busy(measured)


def print_passes(counted: list[Record], causes: dict[str, int]) -> None:
    """Print which passes changed directions, and why others were not compiled."""
    printer = Printer()
    if counted:
        _print_passes(printer, summarized_passes(counted))
    _print_counts(printer, "not compiled", causes)


def _print_passes(printer: Printer, summaries: list[PassSummary]) -> None:
    table = _table("pass", "jaxlib")
    for title in ("changed directions", "operations", "fusions"):
        table.add_column(title, justify="right")
    for each in summaries[:_MOST]:
        changes = f"{each.operations:+,}", f"{each.fusions:+,}"
        table.add_row(*cells(each.name, each.jaxlib, f"{each.directions:,}", *changes))
    printer.print(table)
    if len(summaries) > _MOST:
        printer.print(styled((f"and {len(summaries) - _MOST} more", "dim")))


def _print_summaries(printer: Printer, summaries: list[TimingSummary]) -> None:
    titles = ("measured on", "cores", "JAX", "direction", "rows", "quiet", "median", "overhead")
    table = _table(*titles)
    for each in summaries:
        facts = (each.cores, each.jax, each.direction, each.rows, each.quiet)
        name = each.processor or "unknown"
        seconds = (each.median_seconds, each.overhead_seconds)
        times = ("–" if each is None else units.time(each) for each in seconds)
        table.add_row(*cells(name, *map(str, facts), *times))
    printer.print(table)


def _print_counts(printer: Printer, title: str, counts: dict[str, int]) -> None:
    if not counts:
        return
    printer.print()
    table = _table(title)
    table.add_column("", justify="right")
    for value, count in islice(counts.items(), _MOST):
        table.add_row(*cells(value, f"{count:,}"))
    printer.print(table)
    if len(counts) > _MOST:
        printer.print(styled((f"and {len(counts) - _MOST} more", "dim")))


def print_evaluation(evaluation: EvaluationRecord) -> None:
    """Print the scores of predictions, and what lowered them."""
    printer = Printer()
    asked = units.count(evaluation.questions, "question")
    facts = [evaluation.target, f"{asked} of {evaluation.split}"]
    printer.print(styled((evaluation.task, "bold"), f" · {' · '.join(facts)}"))
    table = _table("score")
    table.add_column("", justify="right")
    table.add_column("standard error", justify="right", style="dim")
    for name, score in evaluation.scores.items():
        margin = f"± {100 * evaluation.standard_errors[name]:.1f}"
        table.add_row(*cells(name, f"{100 * score:.1f} %", margin))
    for name, error in evaluation.errors.items():
        table.add_row(*cells(name, f"{error:,.3g}", ""))
    printer.print(table)
    for text, count in (
        ("without a prediction", evaluation.missing),
        ("with an invalid prediction", evaluation.invalid),
        ("that copy a program of train", evaluation.copies or 0),
        *((f"leaks of train: {name}", count) for name, count in evaluation.leaks.items()),
    ):
        if count:
            printer.print(styled((f"{count:,} ", "yellow"), text.replace("_", " ")))
    _print_counts(printer, "why", evaluation.reasons)


def print_verified(verified: Verified) -> None:
    """Print what is wrong with a dataset, or that nothing is."""
    printer = Printer()
    for kind, problems in verified.problems.items():
        for problem in problems:
            printer.print(styled((f"{kind}: ", "bold red"), problem))
        if verified.counts[kind] > len(problems):
            printer.print(f"{kind}: {verified.counts[kind] - len(problems)} more")
    checked = units.count(verified.rows, "row")
    again = f", {verified.again} made again" if verified.again else ""
    if verified.is_sound:
        printer.print(styled(("sound", "bold green"), f": {checked} checked{again}"))
        printer.print(f"digest {verified.digest}")
        return
    wrong = [units.count(count, _WORDS[kind]) for kind, count in verified.counts.items() if count]
    printer.print(f"{checked} checked{again}: {', '.join(wrong)}")
