"""The data of a report, collected from sessions one after the other.

A report compares functions, revisions of their files, and other interpreters.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from jaxsight import __version__
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError
from jaxsight.cli.output.printing import Printer
from jaxsight.cli.sources.arguments import Address, parse_address, parse_against
from jaxsight.cli.traced_view import trace_view
from jaxsight.features import inputs
from jaxsight.features.kernels import pallas
from jaxsight.features.kernels.pallas import called_kernels
from jaxsight.features.kernels.table import record
from jaxsight.features.measuring.actions import measured_function
from jaxsight.features.named_function import compiled_function, name_sizes
from jaxsight.features.panel import ReportedFunction, merged
from jaxsight.features.sweeps import drawn, sweep
from jaxsight.figures.panel import Json
from jaxsight.figures.program_notes import change
from jaxsight.queries.measurements import NotMeasured
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.sweeps.points import BadSizes, SweptSize
from jaxsight.text.inert import one_line


@dataclass(slots=True)
class Report:
    """A report; `data` is `Embedded` of the panel's `messages.ts`."""

    targets: Sequence[str]
    swept: Sequence[SweptSize]
    measured: bool
    set_name: str | None
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
        addresses = enumerate(side.addresses)
        return sum(
            [await self._function(run, side, (number, at), a, errors) for at, a in addresses]
        )

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
        text, path = address.read(), str(address.path)
        traced = await trace_view(run, address, self.set_name, errors)
        if traced is None:
            self.is_partial = True
            self.remarks.append(one_line(f"{address.function}{side.suffix} cannot be traced"))
            return 0
        view = traced
        await run.get(name_sizes(run.session.engine, view))
        name = f"{display_file(address.path)}{side.suffix}"
        findings: dict[str, list[str]] = {}
        for at, target in enumerate(self.targets or (None,)):
            run.show_step(f"compiling {address.function}" + (f" for {target}" if target else ""))
            if target is not None:
                run.session.choose_target(target)
            if self.measured and target_is_here(target):
                await self._measure(run, address, target)
            view, result = await run.get_by_name(
                compiled_function(run.session.engine, path, address.function, target, complete=True)
            )
            found = ReportedFunction(run.session.engine, view, result, name)
            kernels = found.kernels
            if isinstance(result, Refused):
                self.is_partial = True
                where = one_line(f"{address.function}{side.suffix} on {result.target.name}")
                errors.labelled(where, "bold", result.trouble.message)
            called = await run.get_by_name(called_kernels(run.session.engine, view, target))
            entry = await run.get_by_name(found.entry())
            if self.swept:
                entry["swept"] = await self._sweep(run, address, target)
            known: Json = {"pallas_kernels": pallas.record(called), "inputs": inputs.record(view)}
            known["python"] = run.python(address.path)
            entry |= {
                "label": f"{address.function}{side.suffix}",
                "figures": found.figures(),
                "record": kernels and {**record(kernels, address.function), **known},
            }
            self.entries.append(entry)
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
            in_all = len(targets) == max(1, len(self.targets))
            self.findings.append({**json.loads(text), "targets": [] if in_all else targets})

    async def _measure(self, run: CommandRun, address: Address, target: str | None) -> None:
        run.show_step(f"measuring {address.function}")
        try:
            await run.get_by_name(
                measured_function(run.session.engine, str(address.path), address.function, target)
            )
        except (NotMeasured, CommandError) as error:
            self.remarks.append(one_line(f"{address.function} was not measured: {error}"))

    async def _sweep(self, run: CommandRun, address: Address, target: str | None) -> Json | None:
        """Return `Swept` of the panel's `messages.ts`."""
        run.show_step(f"compiling {address.function} with other sizes")
        try:
            path, function = str(address.path), address.function
            sweeping = sweep(run.session.engine, path, function, self.swept, target, largest=False)
            return asdict(drawn(await run.get_by_name(sweeping), "temp"))
        except (BadSizes, LookupError, CommandError) as error:
            self.remarks.append(one_line(f"{address.function} was not swept: {error}"))
            return None


def target_is_here(target: str | None) -> bool:
    """Return whether a target may be a device of this machine: it names no chip."""
    return target is None or ":" not in target or target.startswith(("ssh://", "cpu:"))


def display_file(path: Path) -> str:
    """Return a file's path below the current folder, else its name."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return os.fspath(path.name)


@dataclass(frozen=True, slots=True)
class ReportSide:
    """Functions that are traced by one interpreter, from files or from a revision of them."""

    addresses: Sequence[Address]
    python: str | None = None
    """The interpreter of `--against`; `None`: that of the command."""

    @property
    def suffix(self) -> str:
        """What distinguishes it: ` at HEAD`, ` with .venv-old`; empty for what is reported."""
        if revision := self.addresses[0].revision:
            return f" at {revision}"
        if self.python is not None:
            folder = Path(self.python).absolute().parent.parent
            return f" with {folder.name or self.python}"
        return ""


def sides(functions: Sequence[str], against: Sequence[str]) -> list[ReportSide]:
    """Return the functions that are reported, and each side that they are compared with.

    Raises:
        CommandError: a file does not exist.
    """
    addresses = [parse_address(function) for function in functions]
    found = [ReportSide(addresses)]
    for text in against:
        if Path(text).name.startswith("python") and os.access(text, os.X_OK):
            found.append(ReportSide(addresses, python=text))
            continue
        others = [each for own in addresses if (each := parse_against(text, own)) is not None]
        found.append(ReportSide(others if others[0].revision else others[:1]))
    return found
