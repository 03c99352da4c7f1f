"""What `jaxsight dataset` prints: a row, statistics, and what was verified."""

from __future__ import annotations

from itertools import islice

from jaxsight.cli.output.printing import Printer, Table, cells, code, styled
from jaxsight.text import units
from jaxsight_dataset.program import Record
from jaxsight_dataset.tables.statistics import Statistics
from jaxsight_dataset.tables.verification import Verified
from jaxsight_dataset.tasks.evaluation import EvaluationRecord

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
    for name, counts in statistics.counts.items():
        _print_counts(printer, name, counts)
    for target, kernels in statistics.kernels.items():
        _print_counts(printer, f"kernels on {target}", kernels)
    for name, outcomes in statistics.checks.items():
        _print_counts(printer, f"check {name}", outcomes)
    _print_counts(printer, f"rejected of {statistics.surveyed}", statistics.rejected)
    if statistics.disagreements:
        printer.print(f"\n{units.count(statistics.disagreements, 'disagreement')}")


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
