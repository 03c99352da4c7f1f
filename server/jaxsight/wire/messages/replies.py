"""Messages from a tracer: its handshake, the stages of a request, and the replies."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.compiling import Compile
from jaxsight.wire.messages.measuring import Measured
from jaxsight.wire.observations import (
    Caveat,
    ExprValue,
    Failure,
    Observation,
    ProgramError,
    Reused,
    Tree,
    Warned,
)
from jaxsight.wire.program import TracedProgram

VERSION = 27
"""Incremented when a message changes; a tracer with another version is rejected."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The handshake of a tracer, after it has imported jax, or of a compiler.

    `problem` is the reason why it cannot trace or compile (`jax` may be empty then).
    """

    version: int
    python: str
    executable: str
    jax: str = ""
    jaxlib: str = ""
    platform: str = ""
    problem: str = ""
    pid: int = 0
    plugins: tuple[str, ...] = ()
    """The accelerators that its JAX has plugins for: `cuda`, `rocm`, `tpu`."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The current stage of request `id`: `execute`, `inputs`, `trace` or `sourcerize`.

    `detail` is for users. While statements are executed, `chunk` is the id of the current one.
    With `file`, the stage goes on: that file of the project is imported, as it was in `version`.
    """

    id: int
    stage: str
    detail: str = ""
    chunk: str = ""
    file: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced function.

    `parameters` pairs names with the text of their avals; `outputs` is the text of the result.
    `jaxpr` is the folded text for a hover (at most `FOLDED_LINES` lines); `equations` counts all
    equations, including those of inner jaxprs.
    `files` are those that it was made of besides its own, imported or read, with their versions
    (`files/texts.py`): a change of one invalidates this answer.
    """

    id: int
    parameters: tuple[tuple[str, str], ...]
    outputs: str
    jaxpr: str
    folded: bool
    equations: int
    trees: tuple[tuple[str, Tree], ...] = ()
    """Parameters that are modules or large trees, by name."""
    constants: tuple[tuple[str, int], ...] = ()
    """Captured constants: text of the aval, bytes."""
    seen: tuple[ExprValue, ...] = ()
    observations: tuple[Observation, ...] = ()
    warnings: tuple[Warned, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    """Seconds of each stage."""
    executed: int = 0
    """Number of chunks that were executed for this answer (the others were reused)."""
    reused: tuple[Reused, ...] = ()
    views: tuple[str, ...] = ()
    """Jaxpr interpreters that installed packages register: further values of `Show.view`."""
    caveats: tuple[Caveat, ...] = ()
    """Statements that did not complete."""
    updates: tuple[str, ...] = ()
    """Names of parameters and globals that the function updates in place (`model`, `self.count`),
    which are outputs too.
    """
    left_out: tuple[str, ...] = ()
    """Those of `updates` that are not outputs: not arrays, or dropped by a library's `jit`."""
    asks_platform: bool = False
    """Whether code asked which platform it runs on, so that the answer is that of the request's."""


FOLDED_LINES = 40  # about a screen


@dataclass(frozen=True, slots=True)
class Failed:
    """Request `id` ended with an exception.

    Observations up to it are kept, so that shapes are still shown.
    """

    id: int
    failure: Failure
    seen: tuple[ExprValue, ...] = ()
    observations: tuple[Observation, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    executed: int = 0
    reused: tuple[Reused, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    asks_platform: bool = False
    """As in `Traced`."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """How a function of the file was called in a dry run.

    `entry` is the index of the program, `number` that of the call, as in `DryCall`.
    """

    function: str
    """Its qualified name; `main.<locals>.step` for a nested function."""
    entry: int
    number: int
    file: str
    """The file and the line (from 1) of the call."""
    line: int
    inputs: tuple[tuple[str, str], ...]
    """The known arguments by parameter, for people: `x`, `f32[8,28,28,1]`."""
    unknown: tuple[str, ...] = ()
    """Parameters whose arguments are not known: data that was not loaded."""
    text: str = ""
    """The lines of an example set, if all arguments can be written so."""
    chunk: str = ""
    """The chunk of the call, if `file` is the request's: `line` is that in the chunk then."""
    definition: str = ""
    """The chunk that defines the function; empty for a nested one."""
    compiled: str = ""
    """What it is to the programs that XLA gets (`tracer/compat/eager_programs.py`)."""
    sized: tuple[str, ...] = ()
    """Parameters of `inputs` with sizes that only missing data would tell."""
    sizes: tuple[tuple[str, str, int], ...] = ()
    """The names of such sizes, the lines of code that they are from, and their numbers."""
    condition: str = ""
    """The unknown conditions under which it happens, such as `flag`; empty if there are none."""


@dataclass(frozen=True, slots=True)
class DryCalls:
    """What programs call a file's functions with, in the order of the calls."""

    id: int
    calls: tuple[CallRecord, ...]
    ran: tuple[tuple[str, int], ...] = ()
    """The functions that ran themselves, outside of JAX's transformations, such as `main`, each
    with the index of a program: `DryCall` with the number `RUN` shows what they computed.
    """
    fed: tuple[str, ...] = ()
    """Types of the arrays that the programs pass to models, such as `f32[128,784]`."""
    files: tuple[tuple[str, str], ...] = ()
    """The files that the answer was made of, with their versions, as in `Traced`."""
    caveats: tuple[Caveat, ...] = ()
    """Statements of the slice that did not complete."""
    errors: tuple[ProgramError, ...] = ()
    """Exceptions that ended statements of the file's own program."""
    reused: tuple[Reused, ...] = ()
    """As in `Traced`, for the places of the errors."""
    fails: bool = False
    """Whether the trace of a function with its example inputs failed: it may call others later."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    id: int


@dataclass(frozen=True, slots=True)
class Spoiled:
    """This process cannot answer request `id` like a fresh one.

    Effects of another file, or of an earlier text, cannot be undone.
    The supervisor replaces the process and repeats the request; nobody else gets this message.
    """

    id: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedProgram:
    """A function of an imported file: its program (`PROGRAM`), or the reason why there is none."""

    program: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """A file was imported; `functions` are in the order of the request."""

    id: int
    functions: tuple[ImportedProgram, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Line `line` (from 0) of a text shows equation `path`, written at `span`."""

    line: int
    path: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the user's functions, or of a library's from the traced function itself.

    `name` is the qualified name of the function, empty for a library's; `parent` is the index of
    the call around it, -1 for the traced function; `span` is where it is called.
    """

    name: str
    parent: int = -1
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class LoweredEquation:
    """An equation of a lowered program: its path, primitive, place, and results (`f32[8,16]`)."""

    path: str
    primitive: str
    span: Span | None = None
    outputs: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    """The functions, modules and named scopes that it was created in, outermost first, below the
    traced function: `("loss", "model", "blocks[3]", "attn")`.
    """
    backward: bool = False
    """Whether it belongs to the backward pass of a reverse-mode derivative."""
    call: int = -1
    """The index of the innermost call that created it; -1 for the traced function."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A computation that XLA would fold, predicted from the jaxpr: equation `path`.

    `seconds` is a rough estimate of its time; `trap` says whether folding is to be disabled.
    """

    path: str
    primitive: str
    elements: int
    bytes: int
    seconds: float
    trap: bool


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program in StableHLO; the locations of its operations are paths of equations, not lines.

    `key` is a digest of the program without file names: an edit that only moves lines does not
    change it.
    """

    id: int
    platform: str
    key: str
    request: Compile
    """What a compiler is asked for, as the server sends it with the name of a target.

    Its `options`, those of the user's `jax.jit` that apply to every target, are part of `key`.
    """
    equations: tuple[LoweredEquation, ...] = ()
    calls: tuple[Call, ...] = ()
    """The calls that created the equations, each after the call around it."""
    folds: tuple[Fold, ...] = ()
    jaxlib: str = ""
    stablehlo: str = ""
    """The StableHLO version of the artifact."""
    parameters: tuple[str, ...] = ()
    """Names of the program's parameters (`x`, `params['w']`): the inputs that it uses."""
    donated: tuple[str, ...] = ()
    """The names of the inputs whose buffers are donated."""
    results: tuple[str, ...] = ()
    """Names of the program's results, e.g. `result 0`."""
    seconds: float = 0.0
    """How long JAX lowered it to StableHLO."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A text, with links from lines to the source; a line may have several links.

    Source that a `Trace` requested was traced again and verified to be the same program, of
    `equations`
    equations.
    """

    id: int
    text: str
    links: tuple[Link, ...] = field(default=())
    equations: int = 0
    reused: tuple[Reused, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Those that a requested `Trace` was made of, as in `Traced`."""
    companion: str = ""
    """The file of arrays next to written source, in base64; empty if there is none."""
    ran: tuple[str, ...] = ()
    """Runs of written source with results equal to the original's: `eagerly`, `under jit`, `under
    grad`.
    """


@dataclass(frozen=True, slots=True)
class Outlined:
    """A traced program as plain data, and its predicted folds."""

    id: int
    program: TracedProgram
    folds: tuple[Fold, ...] = ()
    calls: tuple[Call, ...] = ()
    """The calls that the program's equations were created in."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of a comparison; `words` describe the difference, or how exact the agreement is.

    `gradients` counts the runs whose gradients were compared; `nonfinite` how many of their numbers
    were not finite in each function.
    """

    id: int
    same: bool
    words: str
    exact: bool = False
    gradients: int = 0
    nonfinite: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class MissingModules:
    """The modules among those of `FindModules` that no import would find."""

    id: int
    missing: tuple[str, ...]


Reply = (
    Traced
    | DryCalls
    | Listing
    | Lowered
    | Outlined
    | Compared
    | Measured
    | Imported
    | MissingModules
)
"""The answer to a request that did what it asks for."""

FromTracer = Hello | Stage | Reply | Failed | Cancelled | Spoiled
