"""The data of a report, collected from sessions one after the other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight import __version__
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.reporting.sides import ReportSide
from jaxsight.cli.sources.arguments import Address
from jaxsight.cli.traced_view import trace_view
from jaxsight.features.findings import inputs
from jaxsight.features.kernels import pallas
from jaxsight.features.kernels.record import record
from jaxsight.features.panel.record import swept_record
from jaxsight.features.reporting.entry import ReportedFunction, merged
from jaxsight.features.sweeps.drawn_sweep import DrawnSweep
from jaxsight.figures.panel import Json
from jaxsight.figures.program_notes import change
from jaxsight.queries.measurements import NotMeasured
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.sweeps import table
from jaxsight.sweeps.picture import picture
from jaxsight.sweeps.points import BadSizes, SweptSize
from jaxsight.text.inert import one_line
from jaxsight.wire.messages.replies import Traced


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What is collected of each function."""

    targets: Sequence[str] = ()
    swept: Sequence[SweptSize] = ()
    measured: bool = False
    set_name: str | None = None


@dataclass(slots=True)
class Report:
    """A report; `data` is `Embedded` of the panel's `messages.ts`."""

    options: ReportOptions
    entries: list[Json] = field(default_factory=list)
    findings: list[Json] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What could not be had, and why."""
    is_partial: bool = False
    """Whether a function could not be traced, or not be compiled for a target."""
    _sources: list[Json] = field(default_factory=list)
    _compiled: list[LocatedFigures | None] = field(default_factory=list)
    _sides: list[tuple[int, int, int]] = field(default_factory=list)
    """Of each entry: its side, its function in it, its target."""

    async def collect(self, run: CommandRun, side: ReportSide, number: int, errors: Printer) -> int:
        """Collect one side; return how many functions could be traced."""
        traced = 0
        for at, address in enumerate(side.addresses):
            traced += await self._function(run, side, (number, at), address, errors)
        return traced

    def data(self, title: str) -> Json:
        """Return all of it."""
        for (side, at, target), entry, after in zip(
            self._sides, self.entries, self._compiled, strict=True
        ):
            # The first side that it is compared with: there is its own program, or the only one.
            wanted = ((1, at, target), (1, 0, target)) if side == 0 else ()
            base = next((self._sides.index(each) for each in wanted if each in self._sides), None)
            entry["against"] = base
            before = self._compiled[base] if base is not None else None
            if before is not None and after is not None:
                entry["shown"]["drawn"]["change"] = change(before.compiled, after.compiled)
        return {
            "entries": self.entries,
            "report": {
                "title": title,
                "version": __version__,
                "sources": merged(self._sources),
                "findings": self.findings,
                "remarks": self.remarks,
            },
        }

    async def _function(
        self,
        run: CommandRun,
        side: ReportSide,
        place: tuple[int, int],
        address: Address,
        errors: Printer,
    ) -> int:
        text, path = side.text(address), str(address.path)
        view = await trace_view(run, address, text, self.options.set_name, errors)
        if not isinstance(view.answer.reply, Traced):
            self.is_partial = True
            self.remarks.append(one_line(f"{address.function}{side.suffix} cannot be traced"))
            return 0
        await run.get(run.session.name_sizes(view))
        name = f"{shown_file(address.path)}{side.suffix}"
        findings: dict[str, list[str]] = {}
        for at, target in enumerate(self.options.targets or (None,)):
            run.show_step(f"compiling {address.function}" + (f" for {target}" if target else ""))
            if target is not None:
                run.session.choose_target(target)
            if self.options.measured and target_is_here(target):
                await self._measure(run, address, target)
            view, result = await run.get_by_name(
                run.session.kernels(path, address.function, target, complete=True)
            )
            found = ReportedFunction(run.session.engine, view, result, name)
            kernels = found.kernels
            if isinstance(result, Refused):
                self.is_partial = True
                where = one_line(f"{address.function}{side.suffix} on {result.target.name}")
                errors.labelled(where, "bold", result.trouble.message)
            called = await run.get_by_name(run.session.pallas_kernels(view, target))
            entry = await run.get_by_name(found.entry())
            if self.options.swept:
                entry["swept"] = await self._sweep(run, address, target)
            self.entries.append(
                {
                    **entry,
                    "label": f"{address.function}{side.suffix}",
                    "figures": found.figures(),
                    "record": {
                        **record(kernels, address.function),
                        "pallas_kernels": pallas.record(called),
                        "inputs": inputs.record(view),
                        "python": run.python(address.path),
                    }
                    if kernels is not None
                    else None,
                }
            )
            self._compiled.append(kernels)
            self._sides.append((*place, at))
            self._sources.append(found.source(text))
            self.remarks += (each for each in found.remarks if each not in self.remarks)
            for finding in await run.get(found.findings()):
                findings.setdefault(json.dumps(finding), []).append(result.target.name)
        self._add(findings)
        return 1

    def _add(self, findings: Mapping[str, Sequence[str]]) -> None:
        """Add findings, with the targets of those that not all targets have."""
        for text, targets in findings.items():
            in_all = len(targets) == max(1, len(self.options.targets))
            self.findings.append({**json.loads(text), "targets": [] if in_all else targets})

    async def _measure(self, run: CommandRun, address: Address, target: str | None) -> None:
        run.show_step(f"measuring {address.function}")
        try:
            await run.get_by_name(run.session.measure(str(address.path), address.function, target))
        except (NotMeasured, CommandError) as error:
            self.remarks.append(one_line(f"{address.function} was not measured: {error}"))

    async def _sweep(self, run: CommandRun, address: Address, target: str | None) -> Json | None:
        """Return `Swept` of the panel's `messages.ts`."""
        run.show_step(f"compiling {address.function} with other sizes")
        swept = self.options.swept
        try:
            found = await run.get_by_name(
                run.session.sweep(str(address.path), address.function, swept, target, largest=False)
            )
            curves = picture([found], table.FIGURES["temp"])
        except (BadSizes, LookupError, CommandError) as error:
            self.remarks.append(one_line(f"{address.function} was not swept: {error}"))
            return None
        names = tuple(size.name for size in swept)
        columns = (*names, *(each.column for each in table.columns(found)))
        shown = DrawnSweep(
            "", names, curves, columns, tuple(table.rows(found)), tuple(table.remarks(found))
        )
        return swept_record(shown)


def target_is_here(target: str | None) -> bool:
    """Return whether a target may be a device of this machine: it names no chip."""
    return target is None or ":" not in target or target.startswith(("ssh://", "cpu:"))


def shown_file(path: Path) -> str:
    """Return a file's path below the current folder, else its name."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return os.fspath(path.name)
