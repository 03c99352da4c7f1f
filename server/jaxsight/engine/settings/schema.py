"""The schema: every setting once, with its type, default and description.

Reading (`pyproject.toml`, the editor), the extension's settings and the page of the documentation all come from
these classes. A setting's key is its field's name in camelCase, below its group's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any, Literal

from jaxsight.compiler.targets import Target
from jaxsight.engine.settings.kinds import (
    CODE_LIST,
    FLAG,
    MEMORY,
    SECONDS,
    SIZE,
    TARGET,
    TEXT,
    Kind,
    list_of,
    one_of,
    table_of,
)

Scope = Literal["resource", "window", "machine-overridable"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `key` dotted and in camelCase, `default` as TOML and JSON would hold it."""

    key: str
    kind: Kind[Any]
    default: object
    description: str
    scope: Scope
    attributes: tuple[str, ...]
    """Where its value lies in `Settings`."""
    editor_only: bool


def _setting(
    kind: Kind[Any],
    default: object,
    description: str,
    *,
    scope: Scope = "resource",
    editor_only: bool = False,
) -> Any:
    """A dataclass field whose default is `default`, read as any other value would be."""

    def refuse(path: object, message: str) -> None:
        raise AssertionError(f"the default {default!r}: {message}")

    value = kind.read(default, refuse)
    metadata = {
        "kind": kind,
        "default": default,
        "description": description,
        "scope": scope,
        "editor_only": editor_only,
    }
    return field(default_factory=lambda: value, metadata=metadata)


@dataclass(frozen=True, slots=True)
class InlayHints:
    """What is shown inside the lines of the code."""

    shapes: bool = _setting(
        FLAG,
        True,
        "Show the shape and dtype of what is assigned, behind the name that it is assigned to.",
    )
    kernels: bool = _setting(
        FLAG,
        True,
        "Show behind a function's head how many kernels it is on the target, how often they are launched and what temporary memory they take. "
        "Functions with example inputs are compiled for that, in the background.",
    )
    barriers: bool = _setting(
        FLAG, True, "Show at the end of a line that ends a kernel why it does."
    )


@dataclass(frozen=True, slots=True)
class SourcerizeSettings:
    """How functions are written as source."""

    derivatives: str = _setting(
        one_of("exact", "first", "primal"),
        "exact",
        "Rules of `custom_jvp` and `custom_vjp` functions to write in sourcerized code: `exact`, of three orders; `first`, of one; "
        "`primal`, none: the code is shorter, computes the same values, and does not keep derivatives.",
    )


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that each stage of a trace may take; the tracer is stopped at the end, and replaced if it does not heed."""

    execute: float = _setting(
        SECONDS,
        60,
        "Seconds that the statements which a function needs may take to run, imports included.",
    )
    statement: float = _setting(
        SECONDS,
        5,
        "Seconds that a statement may take to run that a function does not need by name. It is stopped then, and the answer says so.",
    )
    inputs: float = _setting(
        SECONDS, 20, "Seconds that the expressions of the example inputs may take to run."
    )
    trace: float = _setting(SECONDS, 60, "Seconds that tracing one function may take.")
    compile: float = _setting(
        SECONDS, 120, "Seconds that compiling one function for one target may take."
    )


@dataclass(frozen=True, slots=True)
class Cached:
    """What is kept on disk."""

    size: int = _setting(
        MEMORY,
        "512 MiB",
        "What compiled programs may take on disk, in the user's cache folder; those not used for longest go first.",
        scope="window",
    )


@dataclass(frozen=True, slots=True)
class CompilerSettings:
    """Compilers."""

    remote_python: str = _setting(
        TEXT,
        "python3",
        "The Python that compiles on another machine (targets `ssh://HOST/…`), as a path or a command there; it has JAX, and the plugin "
        "of its device. `~` is the home folder there.",
        scope="machine-overridable",
    )


@dataclass(frozen=True, slots=True)
class Trace:
    """The talk between editor and server."""

    server: str = _setting(
        one_of("off", "messages", "verbose"),
        "off",
        "How much of the talk between the editor and the server VS Code writes to its output panel.",
        scope="window",
        editor_only=True,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one project root, as they are in force."""

    python: str = _setting(
        TEXT,
        "",
        "The Python interpreter that has your JAX and that traces your functions: a path (`~` and paths relative to the "
        "project are fine) or a command on `PATH`. When empty, the editor's interpreter is taken, else the project's `.venv`, "
        "`VIRTUAL_ENV`, `CONDA_PREFIX`, or the first Python on `PATH`.",
        scope="machine-overridable",
    )
    platform: str = _setting(
        TEXT,
        "cpu",
        "What `JAX_PLATFORMS` is set to for the tracer. Tracing needs no device, and `cpu` leaves yours alone. "
        "When empty, `JAX_PLATFORMS` stays as it is in the environment.",
    )
    target: str = _setting(
        TARGET,
        "",
        "The device that functions are compiled for, here or not: `cpu`, `cuda:h100`, `tpu:v5e`, `ssh://HOST/cuda`… (`jaxsight targets` lists "
        "them). When empty, an H100 where its compiler is installed, else `cpu`.",
    )
    targets: tuple[str, ...] = _setting(
        list_of(TARGET, "a list of targets"),
        [],
        "Further targets, shown beside the first one on hover.",
    )
    examples: Mapping[str, str] = _setting(
        table_of(TEXT, "a table of example inputs by function"),
        {},
        "Example inputs of functions whose docstrings have none, by `package.module:function`; each value is written like the "
        "lines of a docstring's section.",
    )
    sizes: Mapping[str, int] = _setting(
        table_of(SIZE, "a table of whole numbers by name"),
        {},
        "Sizes by name, for example inputs (`f32[B, D]`) and jaxtyping annotations. A section's own `where` wins.",
    )
    inlay_hints: InlayHints = field(default_factory=InlayHints)
    code_lens: bool = _setting(
        FLAG, True, "Show the example set in use above each function that has example inputs."
    )
    select: tuple[str, ...] = _setting(
        CODE_LIST,
        [],
        "The codes to report, or their beginnings (`JX4`); `ALL` is every code. Those that are on by default when it is empty.",
    )
    ignore: tuple[str, ...] = _setting(
        CODE_LIST,
        [],
        "The codes not to report, or their beginnings. The longer of two beginnings decides.",
    )
    per_file_ignores: Mapping[str, tuple[str, ...]] = _setting(
        table_of(CODE_LIST, "a table of lists of codes by file pattern"),
        {},
        'Codes not to report in some files, by pattern (`"tests/*"`); a pattern is compared with the path below '
        "the project's root and with the file's name.",
    )
    per_target_ignores: Mapping[str, tuple[str, ...]] = _setting(
        table_of(CODE_LIST, "a table of lists of codes by pattern of targets"),
        {},
        'Codes that kernels of some targets are not to be reported by, by pattern (`"tpu:*"`, `"cpu"`, `"h100"`); of those that are found in '
        "kernels.",
    )
    sourcerize: SourcerizeSettings = field(default_factory=SourcerizeSettings)
    timeouts: Timeouts = field(default_factory=Timeouts)
    cache: Cached = field(default_factory=Cached)
    compiler: CompilerSettings = field(default_factory=CompilerSettings)
    memory_limit: int = _setting(
        MEMORY,
        "4 GiB",
        'The memory that a tracer, or a compiler, may take; one that takes more is replaced. An amount (`"4 GiB"`) or a number of bytes.',
    )
    trace: Trace = field(default_factory=Trace)
    problems: tuple[str, ...] = field(default=(), metadata={"internal": True})
    """What was wrong with the editor's values, for a message; a project's problems stand on its own lines."""

    def ignored_in(self, path: PurePosixPath) -> tuple[str, ...]:
        """The codes that are ignored in the file at `path` (below the project's root), besides `ignore`."""
        return tuple(
            code
            for pattern, codes in self.per_file_ignores.items()
            if fnmatch(str(path), pattern) or fnmatch(path.name, pattern)
            for code in codes
        )

    def ignored_on(self, target: Target) -> tuple[str, ...]:
        """The codes that are ignored in the kernels of a target, besides `ignore`."""
        return tuple(
            code
            for pattern, codes in self.per_target_ignores.items()
            if any(fnmatch(name, pattern) for name in (target.name, target.short, target.platform))
            for code in codes
        )


def camel(name: str) -> str:
    """`per-file-ignores` and `per_file_ignores` as `perFileIgnores`."""
    first, *rest = name.replace("-", "_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _settings_of(group: type, keys: tuple[str, ...], attributes: tuple[str, ...]) -> list[Setting]:
    found = []
    for one in fields(group):
        if "kind" in one.metadata:
            found.append(
                Setting(
                    key=".".join((*keys, camel(one.name))),
                    kind=one.metadata["kind"],
                    default=one.metadata["default"],
                    description=one.metadata["description"],
                    scope=one.metadata["scope"],
                    attributes=(*attributes, one.name),
                    editor_only=one.metadata["editor_only"],
                )
            )
        elif "internal" not in one.metadata and one.default_factory is not MISSING:
            below = type(one.default_factory())
            found += _settings_of(below, (*keys, camel(one.name)), (*attributes, one.name))
    return found


SCHEMA: dict[str, Setting] = {setting.key: setting for setting in _settings_of(Settings, (), ())}
"""All settings by dotted key, in the order in which they are documented."""
