"""Example inputs, as a tracer evaluates them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from jaxsight.wire.meshes import Mesh, Spec


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An abstract array, with the dtype's numpy or ml_dtypes name, e.g. `float32`, `bfloat16`."""

    dtype: str
    shape: tuple[int, ...]
    weak: bool = False
    spec: Spec = ()
    """The axes of the request's mesh that each dimension is divided over; empty: replicated."""
    on_host: bool = False
    """Whether it is in the pinned memory of the host."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """An array of typed PRNG keys.

    `impl` is JAX's short tag (`fry`, `rbg`, `unsafe_rbg`) or name.
    """

    impl: str
    shape: tuple[int, ...]
    spec: Spec = ()


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A Python expression, evaluated in the module's namespace with sizes as names.

    `literal` ones are passed unchanged.
    """

    source: str
    literal: bool
    keeps_numbers: bool = False
    """Whether Python numbers in its value stay numbers, as in a call that nothing traces."""


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """A pytree; `keys` are source literals for a dict."""

    kind: Literal["dict", "list", "tuple"]
    children: tuple[InputSpec, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """The mesh of the request, as an argument."""


InputSpec = ArraySpec | KeySpec | ValueSpec | TreeSpec | MeshSpec


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the call.

    Its name is that of the parameter, `args[0]` for an item of `*args`, the key for `**kwargs`.
    """

    name: str
    spec: InputSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCall:
    """A call of a function with its example inputs."""

    function: str
    """Its qualified name; `Class.method` for methods."""
    arguments: tuple[Argument, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    mesh: Mesh | None = None
    """The mesh that the example inputs declare; the function is traced under it."""
    mesh_is_default: bool = False
    """The mesh is the settings': one that the module sets takes precedence."""
    mesh_source: str = ""
    """An expression of the module that evaluates to the mesh, if the example inputs have one."""
    mesh_names: tuple[str, ...] = ()
    """Names of the module that may be its mesh, if example inputs name axes but declare none."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """Where a program begins whose dry run shows what functions are called with.

    `module` is the dotted name of the file's module, as in `Trace`.
    """

    file: str
    module: str
    function: str = ""
    """A function without arguments of their own (`main`), or several tests with blanks between
    them (`TestTrain.test_step TestTrain.test_loss`); if empty, the module's statements themselves,
    with `if __name__ == "__main__":`.
    """
    text: str = ""
    """Statements that are run instead of the module's: those of a doctest, a notebook, a README."""
    line: int = 0
    """The line (from 0) of `file` at which `text` begins."""
    given: tuple[InputCall, ...] = ()
    """Functions of the module that are traced with their example inputs, after its statements."""

    @property
    def title(self) -> str:
        """Its first function, or the name of its file."""
        return self.function.partition(" ")[0] or PurePath(self.file).name

    def is_own(self, file: str) -> bool:
        """Return whether it is all of a file, as it is run as a script."""
        return self.file == file and not (self.function or self.text or self.given)


RUN = -1
"""The number of a `DryCall` that is about the dry run itself, not about a call."""


PROGRAM = "<program>"
"""What names of programs begin with that XLA gets without that one function is all of it."""


@dataclass(frozen=True, slots=True)
class DryCall:
    """A call of a function in a dry run: its arguments are those of the traced function."""

    entry: EntryPoint
    number: int = 0
    """Its number among the function's different calls in the run; `RUN` for what the run itself
    shows of the function, which is answered by `Failed` at the stage `dry run`.
    """

    @property
    def is_run(self) -> bool:
        """Whether it is about what the run shows of a function, of which there is no trace."""
        return self.number == RUN
