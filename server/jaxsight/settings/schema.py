"""The schema: every setting once, with its type, default and description.

The readers (`pyproject.toml`, the editor), the extension's settings and the documentation are
derived from these classes; the text below a field is the description of its setting.
A setting's key is its field's name in camelCase, below its group's.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fnmatch import fnmatch
from functools import cache, partial
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Literal

from jaxsight.files import reading
from jaxsight.settings.kinds import (
    CODE_LIST,
    FLAG,
    MEMORY,
    MESH,
    SECONDS,
    SIZE,
    TARGET,
    TEXT,
    ValueKind,
    list_of,
    one_of,
    table_of,
)
from jaxsight.targets.target import Target
from jaxsight.text import parsing
from jaxsight.text.layout import camel
from jaxsight.wire.meshes import Mesh
from jaxsight_source.options import DERIVATIVES, Derivatives

Scope = Literal["resource", "window", "machine-overridable"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: `key` is dotted and in camelCase, `default` a value of TOML and JSON."""

    kind: ValueKind[Any]
    default: object
    scope: Scope
    editor_only: bool
    group: type
    """The class that has it."""
    key: str
    attributes: tuple[str, ...]
    """The path of its value in `Settings`."""

    @property
    def description(self) -> str:
        """The text below its field."""
        return _descriptions()[self.group.__name__, self.attributes[-1]]


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    """Return the texts below fields, which Python does not keep, by class and name."""
    tree = parsing.parse(reading.text(__file__))
    return {
        (group.name, field.target.id): " ".join(text.split())
        for group in tree.body
        if isinstance(group, ast.ClassDef)
        for field, below in pairwise(group.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(text := below.value.value, str)
    }


def _setting(
    kind: ValueKind[Any],
    default: object,
    *,
    scope: Scope = "resource",
    editor_only: bool = False,
) -> Any:
    """Return a dataclass field whose default is read from `default` like any other value."""

    def refuse(path: object, message: str, help: str) -> None:
        raise AssertionError(f"the default {default!r}: {message}")

    value = kind.read(default, refuse)
    setting = partial(Setting, kind, default, scope, editor_only)
    return field(default_factory=lambda: value, metadata={"setting": setting})


@dataclass(frozen=True, slots=True)
class InlayHints:
    """Inlay hints."""

    shapes: bool = _setting(FLAG, True)
    """Show the shape and dtype of each assigned value after its name."""
    shape_position: str = _setting(one_of("name", "line-end"), "name")
    """Where shapes are shown: after each name, as types are written, or at the end of the line,
    beside type hints of another server. VS Code and the plugin for Neovim use the end of the line
    while basedpyright or another such server is active, unless this is set."""
    width: int = _setting(SIZE, 40)
    """Maximum number of characters of a hint. What does not fit is in the tooltip, and the hint
    ends with `…`; figures are not cut."""
    size_names: bool = _setting(FLAG, True)
    """Show sizes by name in hints and hovers (`f32[B,3*D]`), where example inputs, annotations or
    the unpacking of a `.shape` name them. Functions are traced with other sizes in the background
    to find out."""
    kernels: bool = _setting(FLAG, True)
    """Show kernel count, launches and temporary memory after the function signature. Functions with
    example inputs are compiled in the background."""
    barriers: bool = _setting(FLAG, True)
    """Show fusion boundaries at the end of the line."""
    measured: bool = _setting(FLAG, True)
    """Show each line's share of the device's time at its end (`⏱ 38 %`), in functions that you had
    measured."""
    collectives: bool = _setting(FLAG, True)
    """Show collectives of programs for several devices at the end of the line: their kind, the
    bytes on one device, and the mesh axes. Also show arrays that are moved between host and device:
    the direction and the bytes. Functions with example inputs are compiled in the background."""
    profile: bool = _setting(FLAG, True)
    """Show the share of each line in the time of the profile that is open, at the end of the
    line."""


@dataclass(frozen=True, slots=True)
class SourcerizeSettings:
    """Options of sourcerized code."""

    derivatives: Derivatives = _setting(one_of(*DERIVATIVES), "exact")  # noqa: RUF009 (of a `Literal` by name)
    """Derivative rules of `custom_jvp` and `custom_vjp` functions in sourcerized code. `exact`:
    rules up to the third order. `first`: rules of the first order. `primal`: no rules; the code is
    shorter and computes the same values, but not the same derivatives."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds of the stages of a trace.

    The tracer is interrupted after the limit, and replaced if it does not respond. Defaults are
    choices, far above what large libraries and models take, so that only hangs reach them.
    """

    execute: float = _setting(SECONDS, 60)
    """Time limit in seconds for running the statements that a function needs, including imports."""
    statement: float = _setting(SECONDS, 5)
    """Time limit in seconds for running a statement that a function does not refer to by name. The
    statement is then interrupted, and results note that it did not finish."""
    inputs: float = _setting(SECONDS, 20)
    """Time limit in seconds for evaluating the expressions of example inputs."""
    trace: float = _setting(SECONDS, 60)
    """Time limit in seconds for tracing a function."""
    compile: float = _setting(SECONDS, 120)
    """Time limit in seconds for compiling a function for one target."""
    measure: float = _setting(SECONDS, 60)
    """Time limit in seconds for all runs of a function that is measured. The function is run only
    when you ask for it."""


@dataclass(frozen=True, slots=True)
class Cached:
    """The cache on disk."""

    size: int = _setting(MEMORY, "512 MiB", scope="window")
    """Maximum size of the cache of compiled programs, and of that of checks in a terminal, in the
    user's cache folder. The least recently used entries are deleted first. With 0, nothing is
    stored."""


@dataclass(frozen=True, slots=True)
class CompilerSettings:
    """Compilers on other machines."""

    remote_python: str = _setting(TEXT, "python3", scope="machine-overridable")
    """Python interpreter on the remote machine that compiles for `ssh://HOST/…` targets: a path
    (`~` is the remote home folder) or a command on the remote `PATH`. It needs JAX and the plugin
    of the device."""


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """Logging of the communication between editor and server."""

    server: str = _setting(
        one_of("off", "messages", "verbose"), "off", scope="window", editor_only=True
    )
    """Traces the communication between VS Code and the language server."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force for one project root."""

    python: str = _setting(TEXT, "", scope="machine-overridable")
    """Python interpreter with JAX installed, which traces your functions: a path (absolute,
    relative to the project, or with `~`) or a command on `PATH`. When empty, the first of: the
    editor's interpreter, the project's `.venv`, `VIRTUAL_ENV`, `CONDA_PREFIX`, Python on `PATH`."""
    platform: str = _setting(TEXT, "cpu")
    """Value of `JAX_PLATFORMS` for the tracer. Tracing needs no device, and `cpu` keeps yours free.
    When empty, the environment's `JAX_PLATFORMS` is used."""
    target: str = _setting(TARGET, "")
    """Device to compile functions for; it need not be present. *Choose Target* lists them, such as
    `cpu`, `cuda:h100`, `tpu:v5e` or `ssh://HOST/cuda`; with a number of devices, `cpu:8`,
    `cuda:h100x8` or `tpu:v5e:4x4`. When empty, this machine's GPU or TPU if JAX has its plugin,
    else `cuda:h100` if its compiler is installed, else `cpu`."""
    targets: tuple[str, ...] = _setting(list_of(TARGET, "a list of targets"), [])
    """Additional targets to show on hover."""
    examples: Mapping[str, str] = _setting(
        table_of(TEXT, "a table of example inputs by function"), {}
    )
    """Example inputs of functions without an `Example inputs:` section, by
    `package.module:function`. Values have the syntax of the section's lines."""
    examples_assumed: bool = _setting(FLAG, True)
    """Show functions without example inputs with proposed ones that can be traced. Hints mark them
    with `?`, and sizes have names. When off, a lens offers them."""
    examples_from_programs: bool = _setting(FLAG, True)
    """Trace functions without example inputs with the arguments of their calls in programs: the
    file's own statements, functions with example inputs, and the project's scripts, tests,
    notebooks and documentation. They run without array values, without effects outside of the
    process, and each loop only for a few iterations."""
    kernels: Literal["compiled", "all"] = _setting(one_of("compiled", "all"), "compiled")
    """Functions to compile in the background. `compiled`: those that the file's own program
    compiles, and those that it does not call. `all`: also those that are a part of others, or run
    op by op."""
    sizes: Mapping[str, int] = _setting(table_of(SIZE, "a table of whole numbers by name"), {})
    """Named sizes for example inputs (`f32[B, D]`) and jaxtyping annotations. `where` lines take
    precedence."""
    mesh: Mesh | None = _setting(MESH, "")  # noqa: RUF009 - a field
    """Mesh of example inputs that name its axes (`f32[8@data, 4]`): axes with their sizes, such as
    `data=2, model=4`, and their types (`data=2 explicit`). The section's own `mesh:` line takes
    precedence."""
    inlay_hints: InlayHints = field(default_factory=InlayHints)
    code_lens: bool = _setting(FLAG, True)
    """Show the active example set above each function with example inputs."""
    propose_inputs: bool = _setting(FLAG, True)
    """Try proposed example inputs in the background for functions that use JAX and have none.
    `examplesAssumed` decides how those that can be traced are shown. Nothing is written."""
    select: tuple[str, ...] = _setting(CODE_LIST, [])
    """Rules or rule prefixes (`JX4`) to enable; `ALL` enables all. When empty, the default
    rules."""
    ignore: tuple[str, ...] = _setting(CODE_LIST, [])
    """Rules or rule prefixes to disable. If a rule matches both `select` and `ignore`, the longer
    prefix wins."""
    per_file_ignores: Mapping[str, tuple[str, ...]] = _setting(
        table_of(CODE_LIST, "a table of lists of rules by file pattern"), {}
    )
    """Rules to ignore by file: glob pattern (`"tests/*"`) → rules. Patterns match the path relative
    to the project root, or the file name."""
    per_target_ignores: Mapping[str, tuple[str, ...]] = _setting(
        table_of(CODE_LIST, "a table of lists of rules by target pattern"), {}
    )
    """Rules to ignore by target: glob pattern (`"tpu:*"`, `"cpu"`, `"h100"`) → rules. A name
    without a number of devices matches any number. Applies to rules that analyze kernels."""
    sourcerize: SourcerizeSettings = field(default_factory=SourcerizeSettings)
    timeouts: Timeouts = field(default_factory=Timeouts)
    cache: Cached = field(default_factory=Cached)
    compiler: CompilerSettings = field(default_factory=CompilerSettings)
    memory_limit: int = _setting(MEMORY, "4 GiB")
    """Memory limit of each tracer and compiler process (`"4 GiB"`, or a number of bytes). A process
    that exceeds it is restarted."""
    trace: TraceSettings = field(default_factory=TraceSettings)
    problems: tuple[str, ...] = field(default=(), metadata={"internal": True})
    """Problems of the editor's values; those of the project are findings on its own lines."""

    def ignored_in(self, path: PurePosixPath) -> tuple[str, ...]:
        """Return the codes ignored in the file at `path` (below the project's root)."""
        return tuple(
            code
            for pattern, codes in self.per_file_ignores.items()
            if fnmatch(str(path), pattern) or fnmatch(path.name, pattern)
            for code in codes
        )

    def ignored_on(self, target: Target) -> tuple[str, ...]:
        """Return the codes ignored for the kernels of a target."""
        return tuple(
            code
            for pattern, codes in self.per_target_ignores.items()
            if any(fnmatch(name, pattern) for name in target.aliases)
            for code in codes
        )


def _settings_of(group: type, keys: tuple[str, ...], attributes: tuple[str, ...]) -> list[Setting]:
    settings = []
    for attribute in fields(group):
        path = (*keys, camel(attribute.name)), (*attributes, attribute.name)
        if "setting" in attribute.metadata:
            settings.append(attribute.metadata["setting"](group, ".".join(path[0]), path[1]))
        elif "internal" not in attribute.metadata and attribute.default_factory is not MISSING:
            settings += _settings_of(type(attribute.default_factory()), *path)
    return settings


SCHEMA: dict[str, Setting] = {setting.key: setting for setting in _settings_of(Settings, (), ())}
"""All settings by dotted key, in the order in which they are documented."""
