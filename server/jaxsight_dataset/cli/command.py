"""Make datasets of programs with their compiled forms, and check them: `jaxsight dataset`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from jaxsight import __version__
from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.execution import INTERRUPTED, command
from jaxsight.cli.output.printing import Printer, print_json, styled
from jaxsight.cli.parameters import AsJson, Group, Python
from jaxsight.cli.user_python import user_interpreter
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.workers import child
from jaxsight.workers.own_python import with_packages
from jaxsight_dataset.cli import assuming, mined_sources, tasks
from jaxsight_dataset.cli.errors import announce, explained, interruptible
from jaxsight_dataset.cli.printing import print_row, print_statistics, print_verified
from jaxsight_dataset.cli.progress import RowProgress
from jaxsight_dataset.making import engines, make, shards
from jaxsight_dataset.making.make import DatasetResult, Store
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import VERSION
from jaxsight_dataset.spec import GENERATOR, Spec, read
from jaxsight_dataset.tables import again, arrow, building, manifest, statistics, verification
from jaxsight_dataset.tables.files import TableFormat
from jaxsight_dataset.tables.manifest import Manifest

_VERSIONS = """\
import importlib.metadata, json, platform, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
names = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy")}
packages = {name: version(name) for name in sys.argv[1:]}
print(json.dumps([{**names, "python": platform.python_version()}, packages]))
"""


_Work: TypeAlias = Callable[[Store, engines.ShardMaker, make.Report], DatasetResult]


class EngineName(StrEnum):
    """What schedules the work."""

    local = "local"
    ray = "ray"


app = Group(
    help="""Make datasets of Python functions with their jaxprs, HLO and kernels.

    Each program is traced, compiled and run in both directions, and checked against an eager run in
    another process, its StableHLO and finite differences. No program is there twice, and the splits
    share no structure.

    [bold]Examples[/bold]

        jaxsight dataset generate pairs --samples 10000 --seed 0
        jaxsight dataset mine jax optax mined
        jaxsight dataset mine ./model mined
        jaxsight dataset verify pairs
        jaxsight dataset show pairs 42
        jaxsight dataset questions kernels pairs -o questions.jsonl
        jaxsight dataset eval kernels predictions.jsonl pairs
    """,
)
app.commands.update(tasks.app.commands)

Out = Annotated[Path, "(OUT): Folder of the dataset."]

Samples = Annotated[int | None, f"(>=1): Number of rows. [default: {Spec().samples}]"]

Seed = Annotated[int | None, f"(>=0): Seed of the generator. [default: {Spec().seed}]"]

Targets = Annotated[
    str | None,
    "(NAME,…): Devices to compile for, such as cpu,cuda:h100. [default: cpu]",
]

Jobs = Annotated[int | None, "(>=1): Shards to make at the same time. [default: number of CPUs]"]

EngineOption = Annotated[EngineName, "What schedules the work."]

FormatOption = Annotated[TableFormat, "(--format): Format of the tables."]


@app.command("generate")
@command
def generate(
    out: Out,
    *,
    samples: Samples = None,
    seed: Seed = None,
    spec_file: Path | None = None,
    categories: str | None = None,
    targets: Targets = None,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    form: FormatOption = TableFormat.parquet,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Generate programs and make a dataset of them.

    The same specification and seed make the same bytes, whatever the engine and the number of jobs.
    Ctrl-C keeps finished shards; the same command continues where an earlier one ended.

    Args:
        spec_file (--spec FILE.toml): Fields of a specification; options override them.
        categories (NAME,…): Categories of programs. [default: all]
    """
    given = {
        "samples": samples,
        "seed": seed,
        "categories": _names(categories),
        "targets": _names(targets),
    }
    with explained():
        spec = _spec(spec_file, given)
        interpreter = user_interpreter(python)
        versions, _ = _versions(interpreter)
        title = {"spec": spec.record(), "generator": GENERATOR}
        run = _Run(out, form, engine, jobs, interpreter, versions, as_json)
        return run.dataset(title, partial(make.generate, spec), spec)


@app.command("mine")
@command
def mine(
    packages: list[str],
    out: Out,
    *,
    assume: int = 0,
    targets: Targets = None,
    jobs: Jobs = None,
    engine: EngineOption = EngineName.local,
    form: FormatOption = TableFormat.parquet,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Make a dataset of functions of installed packages, or of a project, with example inputs.

    These are `Example inputs:` in docstrings, annotations of jaxtyping, entries of pyproject.toml,
    and what doctests call functions with. Code of the packages is run. For `jax`, the calls with
    which JAX tests its primitives are mined, too. Each row has the package, its version, the path
    and the licence.

    Args:
        packages (PACKAGE): Installed packages, by import name; files and folders, by path.
        assume (N>=0): Functions of each installed package to call with assumed inputs, at most.
    """
    with explained():
        paths = [Path(each) for each in packages if mined_sources.is_path(each)]
        installed = [each for each in packages if not mined_sources.is_path(each)]
        project = mined_sources.in_project(paths)
        interpreter = user_interpreter(python, paths[0] if paths else None)
        versions, known = _versions(interpreter, installed)
        known |= {str(path): mined_sources.digest([path]) for path in paths}
        announce(f"the code and doctests of {one_line(', '.join(packages))}")
        read = partial(mined_sources.in_module, place=mined_sources.SourceFolder.of(Path.cwd()))
        names = _names(targets) or ["cpu"]
        contents = {"packages": known, "targets": names, **({"assume": assume} if assume else {})}
        run = _Run(out, form, engine, jobs, interpreter, versions, as_json, assuming.make)
        return run.dataset(contents, partial(make.mine, installed, project, read, assume, names))


@app.command("verify")
@command
def verify(
    out: Out,
    *,
    sample: int = 0,
    digest: str | None = None,
    python: Python = None,
    as_json: AsJson = False,
) -> int:
    """Check a dataset: digests of files, columns, uniqueness, splits and each row's validation.

    Exits with 1 if something is wrong. Without --sample, no code of the dataset runs. With it, the
    source of these rows runs as your user, in processes that may not write files, start processes
    or use the network; this is no sandbox for code that exploits Python.

    Args:
        sample (>=0): Rows to make again, which runs their source.
        digest (SHA256): The digest that was published of the dataset.
    """
    with explained(), interruptible(), RowProgress() as progress:
        described = manifest.read(out)
        rows = sum(file.rows for file in described.files.values())
        progress.report("rows", 0, rows)
        verified = verification.verify(out, described, progress.step, (digest or "").lower())
        if sample:
            interpreter = user_interpreter(python)
            chosen = again.sample(out, described, sample)
            announce(f"the source of {units.count(len(chosen), 'row')}")
            progress.report("rows made again", 0, len(chosen))
            again.make_again(chosen, interpreter, verified, progress.step)
    if as_json:
        print_json({"is_sound": verified.is_sound, **asdict(verified)})
    else:
        print_verified(verified)
    return 0 if verified.is_sound else FOUND


@app.command("stats")
@command
def stats(out: Out, *, as_json: AsJson = False) -> int:
    """Print statistics: rows by category, split and dtype, primitives, kernels, uniqueness."""
    with explained():
        computed = statistics.compute(out, manifest.read(out))
    if as_json:
        print_json(asdict(computed))
    else:
        print_statistics(computed)
    return 0


@app.command("show")
@command
def show(
    out: Out,
    number: int,
    *,
    as_json: AsJson = False,
) -> int:
    """Print a row: source, jaxpr, kernels.

    Args:
        number (NUMBER): Number of the row.
    """
    with explained():
        described = manifest.read(out)
        row = _row(out, described, number)
    if row is None:
        known = units.count(sum(described.splits("rows").values()), "row")
        raise CommandError(f"no row {number} in {one_line(str(out))}, which has {known}")
    if as_json:
        print_json(row)
    else:
        print_row(row)
    return 0


@app.command("card")
@command
def card(out: Out) -> int:
    """Write the card again: README.md for Hugging Face, and croissant.json."""
    with explained():
        building.write_card(out, manifest.read(out))
    Printer().print(one_line(str(out / "README.md")))
    return 0


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _spec(file: Path | None, options: dict[str, Any]) -> Spec:
    """Return the specification of a file and of options.

    Raises:
        InvalidSpec: one of them is invalid.
    """
    fields = read(file) if file is not None else {}
    return Spec.of_record(
        {**fields, **{name: value for name, value in options.items() if value is not None}}
    )


def _versions(python: str, packages: Sequence[str] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions of what rows are made with, and those of packages, empty if unknown."""
    done = child.completed(with_packages(python, "-c", _VERSIONS, *packages))
    if done.returncode:
        raise CommandError(f"{python} has no JAX; choose another interpreter with --python")
    versions, known = json.loads(done.stdout)
    return {**versions, "jaxsight": __version__}, known


@dataclass(frozen=True, slots=True)
class _Run:
    """How shards are made, and of which versions."""

    out: Path
    form: TableFormat
    engine: EngineName
    jobs: int | None
    python: str
    versions: dict[str, str]
    as_json: bool
    make_shard: engines.Make = shards.make

    def dataset(self, contents: Record, work: _Work, spec: Spec | None = None) -> int:
        """Make a dataset, print what was made, and return the exit status.

        Args:
            contents: what shards are made of; others need another folder.
            work: makes the shards.
            spec: that of generated programs.

        Raises:
            CannotMake: the folder has another dataset, or there is nothing to make.
            MissingLibrary: the format requires pyarrow.
        """
        made = self._made(contents, work)
        if made is None:
            return INTERRUPTED
        if not made.rows:
            raise CommandError(_nothing_mined(contents["packages"], made))
        built = building.build(self.out, made, spec or contents, self.versions, self.form)
        _print_made(self.out, built, made, as_json=self.as_json)
        return 0

    def _made(self, contents: Record, work: _Work) -> DatasetResult | None:
        """Make the shards of a dataset; return None if that was interrupted."""
        if self.form is TableFormat.parquet:
            arrow.pyarrow()
        has_others = self.out.is_dir() and any(self.out.iterdir())
        if has_others and not (self.out / make.WORK).is_dir():
            raise CommandError(f"{self.out} is not empty; choose a new folder")
        title = {**contents, "schema_version": VERSION, "versions": self.versions}
        store = Store(self.out, title)
        with interruptible(), RowProgress() as progress:
            making = _engine(self, progress.step)
            try:
                return work(store, making, progress.report)
            except KeyboardInterrupt:
                names = [path.name for path in store.folder.glob("*.jsonl")]
                kept = sum(name.startswith("rows-") for name in names)
                done = f"{units.count(kept, 'shard')} of rows kept"
                note = f"interrupted: {done}; the same command continues"
                Printer(stderr=True).print(note)
                return None
            finally:
                making.end()


def _nothing_mined(packages: Iterable[str], made: DatasetResult) -> str:
    text = f"no example in {', '.join(packages)} calls a function with arrays"
    causes = [f"{cause}: {count:,}" for cause, count in sorted(made.rejected.items())]
    return f"{text} ({', '.join(causes)})" if causes else text


def _engine(run: _Run, on_program: Callable[[], None]) -> engines.ShardMaker:
    jobs = run.jobs or os.cpu_count() or 1
    if run.engine is EngineName.local:
        return engines.Local(run.python, jobs, on_program, run.make_shard)
    try:
        return engines.Ray(run.python, jobs, on_program)
    except ImportError as error:
        raise CommandError('Ray is not installed; run pip install "jaxsight[ray]"') from error


def _row(out: Path, described: Manifest, number: int) -> dict[str, Any] | None:
    for table in ("rows", "disagreements"):
        path = next(
            (
                path
                for path, row in described.read_rows(out, table, ["number"])
                if row["number"] == number
            ),
            None,
        )
        if path is not None:
            rows = (row for at, row in described.read_rows(out, table) if at == path)
            return next(row for row in rows if row["number"] == number)
    return None


def _print_made(out: Path, built: Manifest, made: DatasetResult, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(built), "rows": made.rows, "digest": built.digest})
        return
    splits = " · ".join(f"{name} {rows:,}" for name, rows in built.splits("rows").items())
    printer = Printer()
    count = units.count(made.rows, "row")
    printer.print(styled((one_line(str(out)), "bold"), f": {count} · {splits}"))
    rejected = sum(made.rejected.values())
    printer.print(
        f"{units.count(made.structures, 'structure')} · "
        f"{units.count(made.disagreements, 'disagreement')} · "
        f"{rejected:,} of {made.surveyed:,} programs rejected"
    )
    printer.print(f"digest {built.digest}")
