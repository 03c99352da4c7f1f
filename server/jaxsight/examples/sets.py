"""Example sets in the form that the tracer takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import get_args

from jaxsight.examples.notation.contracts import Expect
from jaxsight.examples.notation.values import Node, Size
from jaxsight.examples.problems import Problem
from jaxsight.source.text import Range
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.inputs import Argument, DryCall

OutsideOrigin = OneOf["recorded", "program", "proposed"]
WrittenOrigin = OneOf["docstring", "class", "project", "annotations", "none"]
Origin = WrittenOrigin | OutsideOrigin


@dataclass(frozen=True, slots=True)
class OutsideSet:
    """An example set that no text declares: an observed call of the function, or a proposal.

    `text` has the lines of an *Example inputs* section.
    """

    origin: OutsideOrigin
    label: str
    """The name of the set, for people: `recorded`."""
    text: str
    may_fail: bool = False
    """Whether the function may not be meant to be traced: it was called so outside of any trace."""
    keeps_numbers: bool = False
    """Whether nothing traces the call, so that Python numbers in its arguments stay numbers."""
    assumed: tuple[str, ...] = ()
    """The parameters whose inputs are guesses; those of a proposal all are."""
    dry_call: DryCall | None = None
    """The call in a dry run that has the arguments which `text` does not have."""
    is_better: bool = False
    """Whether calls of other origins cannot be traced."""
    is_newer: bool = False
    """Whether recorded calls have other types, of an earlier state of the program."""
    compiled: str = ""
    """What the call is to the programs that the file's own program compiles: `root`, `inside` or
    `eager`, and `only eager` if it compiles none; empty if another program calls the function.
    """
    sizes: tuple[tuple[str, str, int], ...] = ()
    """The names of sizes that only missing data would tell, the code that they are from, and their
    numbers."""


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Inputs to trace a function with: all required arguments are there.

    `expressions` are the names that the `=` expressions read from the module. `places` are the
    ranges of the examples by argument, for errors when they are evaluated; those of a project
    example are relative to its text. `line` is that of the heading (of the `def`), relative to the
    chunk.
    """

    name: str
    arguments: tuple[Argument, ...]
    sizes: tuple[tuple[str, int], ...]
    expects: tuple[Expect, ...]
    line: int
    expressions: tuple[str, ...] = ()
    places: tuple[tuple[str, Range], ...] = ()
    mesh: Mesh | None = None
    """The mesh, if the section or the settings declare one."""
    mesh_is_default: bool = False
    """The mesh is the settings': one that the module sets takes precedence."""
    mesh_source: str = ""
    """An expression that evaluates to the mesh."""
    axis_places: tuple[tuple[str, Range], ...] = ()
    """Ranges for errors about the mesh: of axes (`x@data`), and of the mesh's line (`mesh`)."""
    may_fail: bool = False
    """Whether a trace that fails says nothing about the function."""
    assumed: tuple[str, ...] = ()
    """The parameters whose inputs jaxsight assumed: nothing calls the function with these."""
    outside: OutsideSet | None = None
    """The call or proposal that it is from, unless a text declares it."""
    nodes: tuple[tuple[str, Node], ...] = ()
    """The examples that are not expressions, by argument: their sizes as written."""
    definitions: tuple[tuple[str, Size], ...] = ()
    """The sizes of `where` lines as written; others of `sizes` are those of the settings."""
    dry_call: DryCall | None = None
    """The call in a dry run that has all arguments except those of `arguments`."""

    @property
    def needs_mesh(self) -> bool:
        """Whether arrays are divided over axes of a mesh that only the module has."""
        declared = self.mesh is not None or self.mesh_source
        return not declared and bool(self.axis_places)


@dataclass(frozen=True, slots=True)
class Examples:
    """The example sets of a function, and the problems of those that cannot be used."""

    sets: tuple[ExampleSet, ...] = ()
    problems: tuple[Problem, ...] = ()
    source: Origin = "none"

    @property
    def are_written(self) -> bool:
        """Whether the user wrote them as such, or as documentation of the function."""
        return self.source in get_args(WrittenOrigin)
