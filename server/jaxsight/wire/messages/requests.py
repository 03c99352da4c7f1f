"""Messages to a tracer: requests, each with the class of its reply, and overlays and cancellations.

A tracer starts with `Hello`, then answers each request with exactly one reply of the request's
class, `Failed` or `Cancelled`, with the request's `id`; `Stage` messages may precede it.
`Overlay` and `Cancel` have no answer.

This module and `replies` are the protocol's specification.
Both sides import them, so they use only the standard library and must run on all Pythons since
3.11.
Every message is a frozen dataclass; `jaxsight.wire.frames` converts it to a frame and back.

Positions are Python's own: lines from 1 *within the chunk's text*, columns in UTF-8 bytes.
The tracer never knows the position of a chunk in its file: an edit that moves a chunk changes
nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Generic, Literal, Self, TypeVar, get_args

from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.inputs import DryCall, EntryPoint, InputCall
from jaxsight.wire.messages.measuring import Measured, MeasuringLimits
from jaxsight.wire.messages.replies import (
    Compared,
    DryCalls,
    Imported,
    Listing,
    Lowered,
    MissingModules,
    Outlined,
    Traced,
)
from jaxsight_source.options import Constants, Derivatives, SourceOptions

# The device and the process that code sees, which need not be those that run it.


_FAMILIES = {"cuda": "gpu", "rocm": "gpu"}


@dataclass(frozen=True, slots=True)
class FakeDevice:
    """What a program is told about its devices, instead of the CPU that it runs on."""

    platform: str
    """As JAX lowers for it: `cuda`, `rocm`, `tpu`."""
    device_kind: str = ""
    """JAX's name of it; empty if unknown."""
    capability: str = ""
    """The compute capability of an NVIDIA GPU (`9.0`); empty if none or unknown."""
    cores: int = 0
    """The TensorCores of a TPU's device; 0 if none or unknown."""

    @property
    def family(self) -> str:
        """What `jax.default_backend()` and `Device.platform` are on it: `gpu` or `tpu`."""
        return _FAMILIES.get(self.platform, self.platform)


@dataclass(frozen=True, slots=True)
class FakeProcess:
    """What a program is told about its process, as if it were one of a job with several."""

    index: int
    count: int


Reply_co = TypeVar("Reply_co", covariant=True)

NEW = 0
"""The `id` of a request that has not been sent."""


class Request(Generic[Reply_co]):
    """A message with one answer: its reply, `Failed` or `Cancelled`."""

    __slots__ = ()

    id: int
    """The number that the answer has too."""
    reply: type
    """The class of its reply."""
    TITLE: ClassVar[str] = ""
    """What it does, with its own fields as `{0.platform}`."""

    def __init_subclass__(cls) -> None:
        """Read the class of the reply off `Request[…]`, for a class that states it."""
        (reply,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        if isinstance(reply, type):
            cls.reply = reply

    def numbered(self, id: int) -> Self:
        """Return the same request with an `id`."""
        return replace(self, id=id)  # type: ignore[type-var]

    @property
    def executes(self) -> Trace | None:
        """The slice of a module that is executed for it; `None` if it is about an earlier trace."""
        return getattr(self, "run", None)

    @property
    def title(self) -> str:
        """What it does, in the words of a progress message."""
        return self.TITLE.format(self)


@dataclass(frozen=True, slots=True)
class AboutTrace(Request[Reply_co]):
    """A request about an earlier trace, which the tracer may not keep any more."""

    id: int
    trace: int
    """The `id` of a `Traced`."""


Transform = Literal["grad", "value_and_grad", "vmap", "jit"]
TRANSFORMS: tuple[Transform, ...] = get_args(Transform)


@dataclass(frozen=True, slots=True)
class TransformedSource(SourceOptions):
    """How to write a function, or a transformation of it, as source.

    `grad` and `value_and_grad` differentiate with respect to the first argument that is all
    floating point, `vmap` maps over a new leading axis of `MAPPED_SIZE` in every array, `jvp` takes
    primals and tangents, `inverse` takes results and returns the arguments.
    """

    constants: Constants | None = None
    derivatives: Derivatives | None = None
    transform: Literal[Transform, ""] = ""

    @property
    def plain(self) -> SourceOptions:
        """The options without the transformation."""
        return SourceOptions(
            **{each.name: getattr(self, each.name) for each in fields(SourceOptions)}
        )


MAPPED_SIZE = 8  # any above 1, along which operations might broadcast instead


@dataclass(frozen=True, slots=True)
class Trace(Request[Traced], InputCall):
    """Execute the slice and trace `function`."""

    TITLE: ClassVar[str] = "{0.function}"
    id: int
    file: str
    module: str
    """The dotted name of the module, for relative imports; `__jaxsight__.stem` if unknown."""
    root: str
    """The project root; it, `root/src` and the file's folder are added to `sys.path`."""
    chunks: tuple[Chunk, ...]
    """The slice, in the file's order."""
    future_flags: int = 0
    """Flags of the module's `from __future__` imports, for `compile`."""
    dry_call: DryCall | None = None
    """A call in a dry run that has the arguments, except those of `arguments`, which nobody knows.

    `function` may then be nested in others, e.g. `main.<locals>.step`.
    """
    skipped: tuple[Chunk, ...] = ()
    """The other chunks of the file, if the file's own program is run dry."""
    patience: float = 5.0
    """Seconds until a chunk neither `needed` nor `unlimited` is skipped (`timeouts.statement`)."""
    slow: tuple[str, ...] = ()
    """The ids of chunks that are known to take longer."""
    whole: bool = False
    """The chunks include all names of the module that other modules might import."""
    devices: int = 0
    """The number of devices of the target; 0: as many as the program asks for."""
    device: FakeDevice | None = None
    """The device of the target, which code sees; `None` for that of the tracer, a CPU."""
    process: FakeProcess | None = None
    """The process of a job that code sees; `None` for the only one. A tracer shows one alone."""
    unasked: bool = False
    """The inputs are not the user's: effects outside of the process are refused."""
    keep: bool = True
    """Later requests may be about this trace."""
    with_values: bool = False
    """Whether values of example inputs are computed and kept with the trace, to run it with."""

    @property
    def executes(self) -> Trace:
        """The request itself."""
        return self


@dataclass(frozen=True, slots=True)
class DryRun(Request[DryCalls]):
    """Execute the slice of `run` and run programs abstractly; say how they call its functions.

    Arrays have no values, each loop runs at most a few times, statements that fail are skipped, and
    effects outside of the process are refused. `run.function` is ignored.
    """

    TITLE: ClassVar[str] = "looking for calls"
    id: int
    run: Trace
    entries: tuple[EntryPoint, ...]
    patience: float
    """Seconds after which no further program is started, and the running one ends."""


@dataclass(frozen=True, slots=True)
class Sourcerize(Request[Listing]):
    """Execute the slice of `run` and write its function, or a transformation of it, as source."""

    TITLE: ClassVar[str] = "{0.run.function}"
    id: int
    run: Trace
    options: TransformedSource


JAXPR = "jaxpr"


STABLEHLO = "stablehlo"


UNOPTIMIZED = "hlo-unoptimized"
"""The HLO that XLA begins with."""


GRAPH = "graph"
"""The jaxpr in the language DOT."""


PROGRAM = "program"
"""The jaxpr without line numbers, and digests of its captured arrays: equal for equal programs."""


CONSTANT = "constant "
"""Prefix of a line with such a digest."""


@dataclass(frozen=True, slots=True)
class Show(AboutTrace[Listing]):
    """Return a text of a trace: its jaxpr, a program for a platform, or one of `Traced.views`.

    `trace` is the id of a `Traced` answer, `platform` as in `Lower`.
    """

    TITLE: ClassVar[str] = "{0.view}"
    view: str = JAXPR
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Lower(AboutTrace[Lowered]):
    """Lower a trace to StableHLO.

    `trace` is the id of a `Traced` answer, `platform` one of `cpu`, `cuda`, `rocm`, `tpu`.
    """

    TITLE: ClassVar[str] = "lowering for {0.platform}"
    platform: str
    capability: str = ""
    """The compute capability of the GPU for Pallas kernels (`9.0`); empty if unknown."""


@dataclass(frozen=True, slots=True)
class Outline(AboutTrace[Outlined]):
    """Return a trace as plain data.

    `trace` is the id of a `Traced` answer.
    """

    TITLE: ClassVar[str] = "reading a traced program"


@dataclass(frozen=True, slots=True)
class Compare(AboutTrace[Compared]):
    """Run two functions on the same random inputs; `trace` and `other` are ids of `Traced` answers.

    If the first function cannot be traced, `run` is a request for it: it is then called with
    values, one operation at a time.
    """

    TITLE: ClassVar[str] = "comparing two functions"
    other: int
    run: Trace | None = None


@dataclass(frozen=True, slots=True)
class Measure(AboutTrace[Measured]):
    """Compile a trace for the first device of the process, run it, and time the runs.

    `trace`, and `other` unless it is 0, are ids of `Traced` answers; runs of both alternate.
    Arguments without a value are random, also those of traces that were not kept `with_values`.
    """

    TITLE: ClassVar[str] = "measuring"
    other: int = 0
    limits: MeasuringLimits = field(default_factory=MeasuringLimits)


@dataclass(frozen=True, slots=True)
class Import(Request[Imported]):
    """Import `file` as the module `module`, and return the programs of `functions`.

    The chunks of `functions` are ignored.
    A process of its own answers it by `Imported`, or by `Failed` if the import raises an error.
    """

    id: int
    file: str
    module: str
    root: str
    functions: tuple[Trace, ...]
    lines: tuple[tuple[int, int], ...] = ()
    """First and last lines (from 1) of the top-level statements to run; empty for all."""
    deadline: float = 60.0
    """Seconds (`timeouts.execute`) after which the process prints a traceback and exits."""


@dataclass(frozen=True, slots=True)
class FindModules(Request[MissingModules]):
    """Say which top-level modules no import in a file would find; nothing is imported."""

    TITLE: ClassVar[str] = "looking for modules"
    id: int
    folders: tuple[str, ...]
    """The folders of the file's project that imports search first."""
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """The editor's text of an open file, for imports; `None` if the file was closed."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop request `id` at the next observed expression; it is then answered by `Cancelled`.

    A compile stops when XLA has scheduled the program; it is then answered by `NotCompiled`.
    """

    id: int


ToTracer = (
    Trace
    | DryRun
    | Sourcerize
    | Show
    | Lower
    | Outline
    | Compare
    | Measure
    | Import
    | FindModules
    | Overlay
    | Cancel
)
