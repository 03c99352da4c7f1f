"""Read which functions `jaxsight dataset mine` calls: those with example inputs in their source.

Example inputs are read as for an editor; their text is all that is read here. Workers import the
modules, and make arrays of them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.sources.arguments import python_files
from jaxsight.cli.trusted_paths import trust_paths
from jaxsight.examples import choice
from jaxsight.examples.sets import ExampleSet
from jaxsight.files import reading
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.queries.documents import module_name
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.settings.reading import merge, read_project
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module
from jaxsight.source.text import normalized
from jaxsight.wire.frames import HEADER, encode
from jaxsight.wire.messages.requests import NEW, Trace
from jaxsight_dataset.mining.doctest_names import with_doctests
from jaxsight_dataset.program import Record

_MOST_SETS = 3
"""Example sets of one function that become programs, a choice: most differ in sizes only."""


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """A folder with the settings that its `pyproject.toml` has for example inputs."""

    root: Path
    settings: ExampleSettings

    @classmethod
    def of(cls, path: Path) -> SourceFolder:
        """Return the place that a path on the command line belongs to."""
        root = _project_root(path.absolute(), Path(trust_paths([path]).roots[0]))
        settings = merge(read_project(root), {})
        return cls(root, ExampleSettings(settings.sizes, settings.examples, settings.mesh))


def _project_root(path: Path, trusted: Path) -> Path:
    """Return the nearest folder with settings around a path, but none above a trusted folder."""
    for folder in (path, *path.parents):
        if folder == trusted or reading.is_file(folder / SETTINGS_FILE):
            return folder
    return trusted


def is_path(argument: str) -> bool:
    """Return whether an argument is a file or folder, and not the name of an installed package."""
    has_separator = not {"/", "\\"}.isdisjoint(argument)
    return has_separator or argument in (".", "..") or argument.endswith(".py")


def in_module(module: str, file: str, place: SourceFolder) -> list[Record]:
    """Return the sources of a module's functions with example inputs; none if it is unreadable."""
    try:
        text = reading.source(file)
    except reading.UnreadableError:
        return []
    return [{"trace": trace} for trace in _traces(text, module, file, place)]


def in_project(paths: Sequence[Path]) -> list[Record]:
    """Return the sources of the functions of a project that have example inputs or doctests.

    Raises:
        CommandError: a path does not exist, or a file cannot be read.
    """
    sources: list[Record] = []
    for path in paths:
        place = SourceFolder.of(path)
        for file in python_files([path]):
            module = module_name(str(file))
            project = _project(place.root, file, module)
            text = _text(file)
            sources += [
                {"module": module, "doctest": name, "project": project}
                for name in with_doctests(text)
            ]
            sources += [
                {"trace": trace, "project": project}
                for trace in _traces(text, module, str(file), place)
            ]
    return sources


def digest(paths: Iterable[Path]) -> str:
    """Return a digest of the files of a project, which says whether one has changed.

    Raises:
        CommandError: a path does not exist, or a file cannot be read.
    """
    whole = hashlib.sha256()
    for path in paths:
        for file in [*python_files([path]), SourceFolder.of(path).root / SETTINGS_FILE]:
            if reading.is_file(file):
                whole.update(_text(file).encode("utf-8", "surrogatepass"))
    return whole.hexdigest()[:16]


def _text(file: Path) -> str:
    try:
        return reading.source(file)
    except reading.UnreadableError as error:
        raise CommandError(str(error)) from error


def _traces(text: str, module: str, file: str, place: SourceFolder) -> list[Record]:
    """Return the calls of a file's functions with their example inputs, as records."""
    traces = []
    for _, function in Module.parse(normalized(text)).functions:
        if function.refused:
            continue
        own = choice.of(
            function,
            sizes=place.settings.sizes,
            project=place.settings.examples.get(f"{module}:{function.qualname}"),
            mesh=place.settings.mesh,
        )
        traces += [record(module, file, place, function, each) for each in own.sets[:_MOST_SETS]]
    return traces


def record(
    module: str, file: str, place: SourceFolder, function: Function, chosen: ExampleSet
) -> Record:
    """Return a call of a function of a file with an example set, as a worker takes it."""
    request = Trace(
        id=NEW,
        file=file,
        module=module,
        root=str(place.root),
        chunks=(),
        function=function.qualname,
        arguments=chosen.arguments,
        sizes=chosen.sizes,
        mesh=chosen.mesh,
        mesh_is_default=chosen.mesh_is_default,
        mesh_source=chosen.mesh_source,
    )
    plain: Record = json.loads(encode(request)[HEADER.size :])
    return plain


def _project(root: Path, file: Path, module: str) -> dict[str, str]:
    """Return where a file is from, and the folder from which its module is imported."""
    depth = module.count(".") + (file.stem == "__init__")
    try:
        project = tomllib.loads(reading.text(root / SETTINGS_FILE, reading.SETTINGS))["project"]
    except (reading.UnreadableError, ValueError, RecursionError, KeyError):
        project = {}
    about = project if isinstance(project, dict) else {}
    licence = about.get("license")  # a text, or a table with one
    text = licence.get("text") if isinstance(licence, dict) else licence
    return {
        "package": str(about.get("name") or root.name),
        "version": str(about.get("version") or ""),
        "licence": str(text or "").partition("\n")[0],
        "root": str(root),
        "imports": str(file.parents[depth]),
    }
