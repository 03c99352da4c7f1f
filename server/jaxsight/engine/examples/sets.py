"""What the tracer takes, and what the other parts of the engine see: example sets, ready to be traced with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from jaxsight.engine.examples.expect import Expect
from jaxsight.engine.examples.problems import Problem
from jaxsight.engine.text import Range
from jaxsight.tracer import protocol

Origin = OneOf["docstring", "class", "doctest", "annotations", "project", "none"]


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Inputs that a function can be traced with: every argument that it needs is there.

    `expressions` are the names that the `=` expressions and the call read from the module. `places` says where each
    argument's example stands (by the argument's name; a doctest's call by the empty name), for errors that come up
    when it is evaluated; those of a project example are relative to its text. `line` is that of the heading (of
    the call, of the `def`), relative to the chunk.
    """

    name: str
    arguments: tuple[protocol.Argument, ...]
    sizes: tuple[tuple[str, int], ...]
    call: str | None
    expects: tuple[Expect, ...]
    line: int
    expressions: tuple[str, ...] = ()
    places: tuple[tuple[str, Range], ...] = ()


@dataclass(frozen=True, slots=True)
class Examples:
    """The sets that a function can be traced with, and what is wrong with those that it cannot be traced with."""

    sets: tuple[ExampleSet, ...] = ()
    problems: tuple[Problem, ...] = ()
    source: Origin = "none"
