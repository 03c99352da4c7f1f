"""Messages between the server and a tracer.

This module is the protocol's specification.
Both sides import it, so it uses only the standard library and must run on all Pythons since 3.11.
Every message is a frozen dataclass; `jaxsight.wire.frames` converts it to a frame and back.
A tracer starts with `Hello`, then answers each `Trace`, `Show`, `Lower`, `Outline` or `Compare`
with exactly one `Traced`, `Shown`, `Lowered`, `Outlined`, `Compared`, `Failed` or `Cancelled` with
the request's `id`; `Stage` messages may precede it.
A `Trace` with `sourcerize` is answered by `Shown`, any other `Trace` by `Traced`.
`Overlay` and `Cancel` have no answer.

Positions are Python's own: lines from 1 *within the chunk's text*, columns in UTF-8 bytes.
The tracer never knows the position of a chunk in its file: an edit that moves a chunk changes
nothing here.
A chunk is compiled under the file name `chunk_file(path, id, above)`, so every frame, warning and
location of JAX can be mapped to it; the line numbers of its code are those of the file, for code
that reads them, and the name has the number of lines above the chunk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jaxsight.wire.program import Program
from jaxsight.wire.spans import Span as Span  # noqa: PLC0414 - part of the protocol

VERSION = 12
"""Incremented when a message changes; a tracer with another version is rejected."""

_CHUNK = r"§(?P<chunk>[0-9a-f]{16})(?:\+(?P<above>\d+))?"
CHUNK_FILE = re.compile(rf"(?P<path>[^\n\"'<>]*?){_CHUNK}")
"""Finds `chunk_file` names inside any text (tracebacks, warnings, JAX's messages)."""
_NAME = re.compile(rf"(?P<path>.*){_CHUNK}", re.DOTALL)
"""A complete `chunk_file` name, whose path may contain any character."""


def chunk_file(path: str, chunk: str, above: int = 0) -> str:
    """Return the file name under which a chunk is compiled.

    It has the real path, a section sign, the chunk's id, and the number of lines above it.
    """
    return f"{path}§{chunk}+{above}" if above else f"{path}§{chunk}"


def chunk_of(name: str) -> re.Match[str] | None:
    """Return the parts of a `chunk_file` name, or `None` for another name."""
    return _NAME.fullmatch(name)


def real_file(name: str) -> str:
    """Return the path of the file for a file name that code is compiled under."""
    found = chunk_of(name)
    return found["path"] if found is not None else name


def line_in_chunk(found: re.Match[str], line: int) -> int:
    """Return the line in the chunk for a line of code in the file; `found` is from `chunk_of`."""
    return line - int(found["above"] or 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A top-level part of a module: a statement, or several that share a line.

    `id` is 16 hex digits that identify this text (equal texts in a file have equal ids).
    `key` identifies its meaning: a digest of its syntax tree without positions, comments and
    docstrings, and of its dependencies in the slice.
    The tracer executes a chunk if and only if it has not yet executed this `key`.
    """

    id: str
    key: str
    text: str
    binds: tuple[str, ...] = ()
    executes: bool = False
    """It does more than bind names to functions, modules and constants, so it must run in order."""
    acts: bool = False
    """It may change anything: results of other chunks are valid only with this execution of it."""
    needed: bool = True
    """The function needs its names; errors of other chunks are caveats, not failures."""
    unlimited: bool = False
    """It may take as long as the whole request."""
    above: int = 0
    """Number of lines above it in the file.

    The `key` includes it only if code of the slice may read line numbers.
    """


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An abstract array, with the dtype's numpy or ml_dtypes name, e.g. `float32`, `bfloat16`."""

    dtype: str
    shape: tuple[int, ...]
    weak: bool = False


@dataclass(frozen=True, slots=True)
class KeySpec:
    """An array of typed PRNG keys.

    `impl` is JAX's short tag (`fry`, `rbg`, `unsafe_rbg`) or name.
    """

    impl: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A Python expression, evaluated in the module's namespace with sizes as names.

    `literal` ones are passed unchanged.
    """

    source: str
    literal: bool


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """A pytree: `kind` is `dict`, `list` or `tuple`; `keys` are source literals for a dict."""

    kind: str
    children: tuple[InputSpec, ...]
    keys: tuple[str, ...] = ()


InputSpec = ArraySpec | KeySpec | ValueSpec | TreeSpec


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the call.

    Its name is that of the parameter, `args[0]` for an item of `*args`, the key for `**kwargs`.
    """

    name: str
    spec: InputSpec


STYLES = ("lax", "pretty")
CONSTANTS = ("inline", "npz", "argument")

TRANSFORMS = ("grad", "value_and_grad", "vmap", "jvp", "jit", "inverse")


@dataclass(frozen=True, slots=True)
class Sourcerize:
    """How to write a function as pure source.

    `style` is one of `STYLES`, `transform` one of `TRANSFORMS` or empty.

    `grad` and `value_and_grad` differentiate with respect to the first argument that is all
    floating point, `vmap` maps over a new leading axis of `MAPPED_SIZE` in every array, `jvp` takes
    primals and tangents, `inverse` takes results and returns the arguments.
    """

    style: str = "lax"
    transform: str = ""
    name: str = ""
    """The name of the written function; if empty, the tracer chooses one."""
    constants: str = ""
    """Where arrays are written: in the text, with an error if they are too large (`inline`), in a
    file next to it (`npz`), or as arguments of the written function (`argument`).

    If empty: in the text if they fit, else as arguments.
    """
    shapes: bool = False
    """Add a comment with the type to each line."""
    sources: bool = False
    """Add the user's source lines as comments."""
    inline: bool = False
    """Inline jitted functions at their call sites."""
    scopes: bool = False
    """Preserve `jax.named_scope` annotations."""
    derivatives: str = ""
    """Custom derivative rules to write: up to the third order (`exact`), the first order only
    (`first`), or none (`primal`).

    If empty: the setting `sourcerize.derivatives`.
    """


MAPPED_SIZE = 8


@dataclass(frozen=True, slots=True)
class Trace:
    """Execute the slice and trace `function` (a qualified name; `Class.method` for methods)."""

    id: int
    file: str
    module: str
    """The dotted name of the module, for relative imports; `__jaxsight__.stem` if unknown."""
    root: str
    """The project root; it, `root/src` and the file's folder are added to `sys.path`."""
    chunks: tuple[Chunk, ...]
    """The slice, in the file's order."""
    function: str
    arguments: tuple[Argument, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    future_flags: int = 0
    """Flags of the module's `from __future__` imports, for `compile`."""
    call: str | None = None
    """A doctest call whose arguments replace `arguments`, e.g. `f(jnp.ones(3), n=2)`."""
    sourcerize: Sourcerize | None = None
    """Write the function as source, and answer with `Shown`."""
    patience: float = 5.0
    """Seconds after which a chunk that is neither `needed` nor `unlimited` is skipped."""
    whole: bool = False
    """The chunks include all names of the module that other modules might import."""


JAXPR = "jaxpr"
STABLEHLO = "stablehlo"
PROGRAM = "program"
"""The jaxpr without line numbers, and digests of its captured arrays: equal for equal programs."""
CONSTANT = "constant "
"""Prefix of a line with such a digest."""

_SCOPE = re.compile(r"eq\[([^\]]*)\]")


def equation_path(name: str) -> str:
    """Return the path of an equation in the name of a lowered operation, or `""`.

    `jit(f)/eq[3]/while/body/eq[body.1]/mul` is `3/body/1`.
    XLA joins names with `;` if several operations became one: the first counts.
    """
    if "eq[" not in name:
        return ""
    return "/".join(_SCOPE.findall(name.split(";", 1)[0])).replace(".", "/")


@dataclass(frozen=True, slots=True)
class Show:
    """Return a text of a trace: its jaxpr, its StableHLO for a platform, or one of `Traced.views`.

    `trace` is the id of a `Traced` answer, `platform` as in `Lower`.
    """

    id: int
    trace: int
    what: str = JAXPR
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Lower:
    """Lower a trace to StableHLO.

    `trace` is the id of a `Traced` answer, `platform` one of `cpu`, `cuda`, `rocm`, `tpu`.
    """

    id: int
    trace: int
    platform: str
    capability: str = ""
    """The compute capability of the GPU for Pallas kernels (`9.0`); empty if unknown."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Return a trace as plain data.

    `trace` is the id of a `Traced` answer.
    """

    id: int
    trace: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Run two functions on the same random inputs; `trace` and `other` are ids of `Traced` answers.

    If the first function cannot be traced, `run` is a request for it: it is then called with
    values,
    one operation at a time.
    """

    id: int
    trace: int
    other: int
    run: Trace | None = None


@dataclass(frozen=True, slots=True)
class Import:
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
    """Seconds after which the process prints a traceback and exits."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The editor's text of an open file, for imports; `None` if the file was closed."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop request `id` at the next observed expression; it is then answered by `Cancelled`."""

    id: int


@dataclass(frozen=True, slots=True)
class Hello:
    """The tracer's handshake, after it has imported jax.

    `problem` is the reason why it cannot trace (`jax` may be empty then).
    """

    version: int
    python: str
    executable: str
    jax: str = ""
    jaxlib: str = ""
    platform: str = ""
    problem: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """The current stage of request `id`: `execute`, `inputs`, `trace` or `sourcerize`.

    `detail` is for users.
    """

    id: int
    stage: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A value of an expression: `text` as in jaxprs (`f32[8,16]`; a pytree in Python's notation).

    `inside` lists the stages around the value, outermost first, beyond the plain trace: `scan
    body`,
    `while cond`, `cond branch`, `vmap over 32 (axis 0)`, `grad`…
    """

    text: str
    weak: bool = False
    sharding: str = ""
    inside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """Values of an expression, assignment target or parameter, as indices of `Traced.seen`.

    `kind`: `expression`, `target` or `parameter`.
    At most `OBSERVED_VALUES` distinct values are kept; `more` counts the others.
    """

    span: Span
    kind: str
    values: tuple[int, ...]
    more: int = 0


OBSERVED_VALUES = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a traceback.

    `span` is set if it is in a chunk; else `file` and `line` are.
    """

    function: str
    file: str
    line: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of user code.

    `type` is the class's qualified name, `bases` the names of its superclasses.
    `stage`: `execute` (a chunk), `whole` (another module imports names of this one that were not
    sent:
    repeat the request with the whole module), `find` (the function does not exist or cannot be
    traced:
    `async`, generator), `inputs` (an example input cannot be evaluated: `argument` names it),
    `trace`,
    `sourcerize` (the trace cannot be written as source, or the source is not the same program: the
    message says where), `view` (one of the user's jaxpr interpreters).
    Frames are ordered from outermost to innermost, without those of JAX and of the tracer itself.
    """

    stage: str
    type: str
    message: str
    bases: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    cause: Failure | None = None
    notes: tuple[str, ...] = ()
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """A Python warning raised while running (64-bit truncation, unusable donation…)."""

    category: str
    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Caveat:
    """A statement that was not run as an import would run it, so that the answer may differ.

    `reason` is one clause about chunk `chunk`: `raised ValueError: …`, `was stopped after 5 s`.
    """

    chunk: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reused:
    """A chunk of the slice that was not executed, because one with the same meaning had been.

    Spans refer to that one, `executed`, whose text is `text`; `asked` is the id in the request.
    """

    asked: str
    executed: str
    text: str


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced function.

    `parameters` pairs names with the text of their avals; `outputs` is the text of the result.
    `jaxpr` is the folded text for a hover (at most `FOLDED_LINES` lines); `equations` counts all
    equations, including those of inner jaxprs.
    `modules` are the project's files that were imported, whose changes invalidate this answer.
    """

    id: int
    parameters: tuple[tuple[str, str], ...]
    outputs: str
    jaxpr: str
    folded: bool
    equations: int
    constants: tuple[tuple[str, int], ...] = ()
    """Captured constants: text of the aval, bytes."""
    seen: tuple[Seen, ...] = ()
    observations: tuple[Observation, ...] = ()
    warnings: tuple[Warned, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    """Seconds of each stage."""
    executed: int = 0
    """Number of chunks that were executed for this answer (the others were reused)."""
    reused: tuple[Reused, ...] = ()
    views: tuple[str, ...] = ()
    """Jaxpr interpreters that installed packages register: further values of `Show.what`."""
    caveats: tuple[Caveat, ...] = ()
    """Statements that did not complete."""
    updates: tuple[str, ...] = ()
    """Names of parameters and globals that the function updates in place (`model`, `self.count`),
    which are outputs too.
    """
    left_out: tuple[str, ...] = ()
    """Those of `updates` that are not outputs: not arrays, or dropped by a library's `jit`."""


FOLDED_LINES = 40


@dataclass(frozen=True, slots=True)
class Failed:
    """Request `id` ended with an exception.

    Observations up to it are kept, so that shapes are still shown.
    """

    id: int
    failure: Failure
    seen: tuple[Seen, ...] = ()
    observations: tuple[Observation, ...] = ()
    modules: tuple[str, ...] = ()
    executed: int = 0
    reused: tuple[Reused, ...] = ()
    caveats: tuple[Caveat, ...] = ()


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
class Made:
    """A function of an imported file: its program (`PROGRAM`), or the reason why there is none."""

    program: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """A file was imported; `functions` are in the order of the request."""

    id: int
    functions: tuple[Made, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Line `line` (from 0) of a text shows equation `path`, written at `span`."""

    line: int
    path: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation of a lowered program: its path, primitive, place, and results (`f32[8,16]`)."""

    path: str
    primitive: str
    span: Span | None = None
    outputs: tuple[str, ...] = ()


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

    `program` is a portable artifact (MLIR bytecode) in base64.
    `key` is a digest of the program without file names: an edit that only moves lines does not
    change
    it.
    """

    id: int
    platform: str
    key: str
    program: str
    equations: tuple[Equation, ...] = ()
    folds: tuple[Fold, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    """The compiler options of the user's `jax.jit` that apply to every target; part of `key`."""
    constants: tuple[str, ...] = ()
    """Types of the arrays that the program captures, in HLO's notation."""
    barriers: tuple[str, ...] = ()
    """Paths of the equations whose results go directly into an `optimization_barrier`."""
    trips: tuple[tuple[str, int], ...] = ()
    """Trip counts of scans, by path."""
    jaxlib: str = ""
    stablehlo: str = ""
    """The StableHLO version of the artifact."""
    parameters: tuple[str, ...] = ()
    """Names of the program's parameters (`x`, `params['w']`): the inputs that it uses."""
    donated: tuple[str, ...] = ()
    """The names of the inputs whose buffers are donated."""
    results: tuple[str, ...] = ()
    """Names of the program's results, e.g. `result 0`."""


@dataclass(frozen=True, slots=True)
class Shown:
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
    companion: str = ""
    """The file of arrays next to written source, in base64; empty if there is none."""
    ran: tuple[str, ...] = ()
    """Runs of written source with results equal to the original's: `eagerly`, `under jit`, `under
    grad`.
    """


@dataclass(frozen=True, slots=True)
class Runtime:
    """The default platform of programs in the tracer's environment."""

    jaxlib: str = ""
    backend: str = ""
    """`cpu`, or empty if an accelerator may be used."""
    machine: str = ""
    """The system and its processor: `linux x86_64`."""
    flags: str = ""
    """The environment variable `XLA_FLAGS`."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """A traced program as plain data, its predicted folds, and its default platform."""

    id: int
    program: Program
    folds: tuple[Fold, ...] = ()
    runtime: Runtime = field(default=Runtime())


@dataclass(frozen=True, slots=True)
class Miscompiled:
    """A wrong result of `jaxlib`'s CPU compiler for a function.

    At index `at` of a result it is `usual`, but `second` without library fusions.
    `difference` is the largest one, as a multiple of the root mean square of `second`'s result.
    """

    jaxlib: str
    result: str
    """`result 0`, `the gradient of x`."""
    at: tuple[int, ...]
    usual: str
    second: str
    difference: float
    options: str
    """Compiler options of `second`, as Python."""


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
    miscompiled: Miscompiled | None = None
    """An error in the compiled code of the first function; the second was not compared then."""


Request = Trace | Show | Lower | Outline | Compare
"""Messages with one answer."""

ToTracer = Request | Overlay | Cancel | Import
FromTracer = (
    Hello
    | Stage
    | Traced
    | Failed
    | Cancelled
    | Spoiled
    | Shown
    | Lowered
    | Outlined
    | Compared
    | Imported
)
