"""What the server and a tracer say to each other.

This module is the protocol's specification. Both sides import it, so it uses the standard library
alone and must run on every Python from 3.11 on. Every message is a frozen dataclass;
`jaxsight.workers.wire` turns one into a frame and back. A tracer speaks first (`Hello`), then
answers each `Trace`, `Show`, `Lower`, `Outline` or `Compare` with exactly one of `Traced`, `Shown`,
`Lowered`, `Outlined`, `Compared`, `Failed` or `Cancelled` that carries the request's `id`; `Stage`
messages may come before it. A `Trace` that asks to `sourcerize` is answered by `Shown`, any other
one by `Traced`. `Overlay` and `Cancel` have no answer.

Positions on the wire are Python's own: lines from 1 *within the chunk's text*, columns in UTF-8
bytes. The tracer never knows where a chunk stands in its file: an edit that moves a chunk changes
nothing here. A chunk is compiled under the file name `chunk_file(path, id, above)`, so every frame,
warning and location of JAX leads back to it; the lines of its code are those of the file, for code
that asks for them, and the name says how many of them are above the chunk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jaxsight.tracer.places import Span as Span  # noqa: PLC0414 - part of the protocol
from jaxsight.tracer.program import Program

VERSION = 12
"""Raised whenever a message changes; a tracer that greets with another version is refused."""

_CHUNK = r"§(?P<chunk>[0-9a-f]{16})(?:\+(?P<above>\d+))?"
CHUNK_FILE = re.compile(rf"(?P<path>[^\n\"'<>]*?){_CHUNK}")
"""Finds `chunk_file` names inside any text (tracebacks, warnings, JAX's messages)."""
_NAME = re.compile(rf"(?P<path>.*){_CHUNK}", re.DOTALL)
"""A `chunk_file` name by itself: its path may have any character."""


def chunk_file(path: str, chunk: str, above: int = 0) -> str:
    """The file name under which a chunk is compiled: the real path, a section sign, the chunk's id,
    the lines above it.
    """
    return f"{path}§{chunk}+{above}" if above else f"{path}§{chunk}"


def chunk_of(name: str) -> re.Match[str] | None:
    """The parts of the file name under which a chunk was compiled; nothing for another file's
    name.
    """
    return _NAME.fullmatch(name)


def real_file(name: str) -> str:
    """The path of the file that code is in, for the file name that it is compiled under."""
    found = chunk_of(name)
    return found["path"] if found is not None else name


def line_in_chunk(found: re.Match[str], line: int) -> int:
    """The line in the chunk, for a line of code under a name whose parts `chunk_of` found."""
    return line - int(found["above"] or 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One top-level piece of a module: a statement, or several that share a line.

    `id` is 16 hex digits that name this text (equal text, equal id within a file). `key` names its
    meaning: a digest of its syntax tree without positions, comments and docstrings, and of
    everything that it depends on in the slice. The tracer re-executes a chunk when it has not yet
    executed this `key`, and only then.
    """

    id: str
    key: str
    text: str
    binds: tuple[str, ...] = ()
    executes: bool = False
    """It does more than bind names to functions, modules and constants, so it must run in its
    place.
    """
    acts: bool = False
    """It may change anything: what else was executed holds only together with this execution of it.
    """
    needed: bool = True
    """The function needs it by name. What others raise is a caveat, not a failure."""
    unlimited: bool = False
    """It may take as long as the request may."""
    above: int = 0
    """The lines above it in the file.

    They are in the `key` only where the code of the slice may ask for its lines.
    """


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An abstract array: dtype by its numpy/ml_dtypes name (`float32`, `bfloat16`), shape in
    elements.
    """

    dtype: str
    shape: tuple[int, ...]
    weak: bool = False


@dataclass(frozen=True, slots=True)
class KeySpec:
    """An array of typed PRNG keys; `impl` is JAX's short tag (`fry`, `rbg`, `unsafe_rbg`) or
    name.
    """

    impl: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """A Python expression, evaluated in the module with the sizes as names.

    `literal` ones are passed as they are.
    """

    source: str
    literal: bool


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """A pytree display: `kind` is `dict`, `list` or `tuple`; `keys` are Python literals' sources
    for a dict.
    """

    kind: str
    children: tuple[InputSpec, ...]
    keys: tuple[str, ...] = ()


InputSpec = ArraySpec | KeySpec | ValueSpec | TreeSpec


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the call: by the parameter's name, `*args` items by position as `args[0]`,
    `**kwargs` by key.
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

    `grad` and `value_and_grad` are with respect to the first argument that is all floating point,
    `vmap` maps a new leading axis of `MAPPED_SIZE` in every array, `jvp` takes primals and
    tangents, `inverse` takes results and gives the arguments.
    """

    style: str = "lax"
    transform: str = ""
    name: str = ""
    """What the written function is called; the tracer chooses when it is empty."""
    constants: str = ""
    """Where arrays go: into the text, or nowhere, with an error, if they are too large for it
    (`inline`), into a file beside it (`npz`), or into arguments of the written function
    (`argument`). When it is empty: into the text if they fit there, else into arguments.
    """
    shapes: bool = False
    """A comment with the type on each line."""
    sources: bool = False
    """The user's source as a comment wherever it changes."""
    inline: bool = False
    """Jitted functions written out where they are called."""
    scopes: bool = False
    """`jax.named_scope` around what was computed under one."""
    derivatives: str = ""
    """Which rules of custom derivatives are written: those of three orders (`exact`), of one
    (`first`), or none (`primal`). The setting `sourcerize.derivatives` when it is empty.
    """


MAPPED_SIZE = 8


@dataclass(frozen=True, slots=True)
class Trace:
    """Run the slice, take `function` (a qualified name; `Class.method` for methods) and trace
    it.
    """

    id: int
    file: str
    module: str
    """The dotted name to run the module under, so that relative imports work; `__jaxsight__.stem`
    when unknown.
    """
    root: str
    """The project root; put on `sys.path`, as are `root/src` and the file's folder."""
    chunks: tuple[Chunk, ...]
    """The slice, in the file's order."""
    function: str
    arguments: tuple[Argument, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    future_flags: int = 0
    """Flags of the module's `from __future__` imports, for `compile`."""
    call: str | None = None
    """A doctest call, e.g. `f(jnp.ones(3), n=2)`: evaluated for its arguments instead of
    `arguments`.
    """
    sourcerize: Sourcerize | None = None
    """Write the function as source instead of telling about it."""
    patience: float = 5.0
    """Seconds that a chunk may take which is neither `needed` nor `unlimited`; it is left out then.
    """
    whole: bool = False
    """Nothing of the module is left out that other modules might look up in it."""


JAXPR = "jaxpr"
STABLEHLO = "stablehlo"
PROGRAM = "program"
"""The jaxpr without lines of files, and digests of the arrays that it captures: equal for equal
programs.
"""
CONSTANT = "constant "
"""How a line with such a digest begins."""

_SCOPE = re.compile(r"eq\[([^\]]*)\]")


def equation_path(name: str) -> str:
    """The path of an equation in the name of a lowered operation, `""` when there is none.

    `jit(f)/eq[3]/while/body/eq[body.1]/mul` is `3/body/1`. XLA joins names with `;` where several
    operations became one: the first counts.
    """
    if "eq[" not in name:
        return ""
    return "/".join(_SCOPE.findall(name.split(";", 1)[0])).replace(".", "/")


@dataclass(frozen=True, slots=True)
class Show:
    """Give a whole text of what was traced before: the jaxpr, its StableHLO for a platform, or what
    one of `Traced.views` makes of it.

    `trace` is the id of a `Traced` answer, `platform` as in `Lower`.
    """

    id: int
    trace: int
    what: str = JAXPR
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Lower:
    """Lower what was traced before to StableHLO.

    `trace` is the id of a `Traced` answer, `platform` one of `cpu`, `cuda`, `rocm`, `tpu`.
    """

    id: int
    trace: int
    platform: str
    capability: str = ""
    """The compute capability of the GPU (`9.0`), which Pallas kernels are made for; empty where it
    is not known.
    """


@dataclass(frozen=True, slots=True)
class Outline:
    """Tell the whole of what was traced before as plain data.

    `trace` is the id of a `Traced` answer.
    """

    id: int
    trace: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Run two functions on the same drawn inputs. `trace` and `other` are ids of `Traced` answers.

    Where the first one cannot be traced, `run` says how to have it: it is called with values then,
    one operation after another.
    """

    id: int
    trace: int
    other: int
    run: Trace | None = None


@dataclass(frozen=True, slots=True)
class Import:
    """Import `file` whole under the name `module`, and give the program of each of `functions`,
    whose chunks do not count.

    A process of its own answers it, by `Imported`, or by `Failed` when the import raises.
    """

    id: int
    file: str
    module: str
    root: str
    functions: tuple[Trace, ...]
    lines: tuple[tuple[int, int], ...] = ()
    """First and last lines (from 1) of the top-level statements to run; all of them when it is
    empty.
    """
    deadline: float = 60.0
    """Seconds after which the process writes where it is to its output, and ends."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The editor's text of an open file, for imports; `None` when the file was closed."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop request `id` at the next observed expression; it is then answered by `Cancelled`."""

    id: int


@dataclass(frozen=True, slots=True)
class Hello:
    """The tracer's greeting, once jax is imported.

    `problem` says why it cannot trace (then `jax` may be empty).
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
    """What request `id` is at: `execute`, `inputs`, `trace`, `sourcerize`; `detail` for people."""

    id: int
    stage: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one expression was: `text` as jaxprs print it (`f32[8,16]`; a pytree as its display).

    `inside` tells, outermost first, what the value lives in beyond the plain trace: `scan body`,
    `while cond`, `cond branch`, `vmap over 32 (axis 0)`, `grad`…
    """

    text: str
    weak: bool = False
    sharding: str = ""
    inside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """The values that one expression, assignment target or parameter took: indices into
    `Traced.seen`.

    `kind`: `expression`, `target` or `parameter`. At most `OBSERVED_VALUES` distinct values are
    kept; `more` counts the distinct ones left out.
    """

    span: Span
    kind: str
    values: tuple[int, ...]
    more: int = 0


OBSERVED_VALUES = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a traceback.

    `span` is set when it lies in a chunk; else `file` and `line` say where.
    """

    function: str
    file: str
    line: int
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of user code.

    `type` is the class's qualified name, `bases` the names of its superclasses.

    `stage`: `execute` (a chunk), `whole` (another module takes names from this one that were not
    sent: ask again with the whole module), `find` (the function is not there or cannot be traced:
    `async`, generator), `inputs` (an example input did not evaluate: `argument` names it), `trace`,
    `sourcerize` (what was traced cannot be written as source, or what was written is not the same
    program: the message says where), `view` (an interpreter of the user's). Frames run from the
    outermost to the innermost; those of JAX and of the tracer itself are left out.
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
    """A statement of the module that was not run as importing the module would run it, so that the
    answer may differ.

    `reason` is one clause about chunk `chunk`: `raised ValueError: …`, `was stopped after 5 s`.
    """

    chunk: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reused:
    """A chunk of the slice that was not executed as sent, because an earlier text with the same
    meaning had been.

    Spans name that one, `executed`, whose text was `text`; `asked` is the id that was sent.
    """

    asked: str
    executed: str
    text: str


@dataclass(frozen=True, slots=True)
class Traced:
    """A function traced.

    `parameters` pairs names with the display of their avals; `outputs` is the display of the
    result.

    `jaxpr` is the folded text for a hover (at most `FOLDED_LINES` lines); `equations` counts all
    equations, those of inner jaxprs too. `modules` are the project's files that were imported on
    the way, with which this answer stands and falls.
    """

    id: int
    parameters: tuple[tuple[str, str], ...]
    outputs: str
    jaxpr: str
    folded: bool
    equations: int
    constants: tuple[tuple[str, int], ...] = ()
    """Captured constants: display of the aval, bytes."""
    seen: tuple[Seen, ...] = ()
    observations: tuple[Observation, ...] = ()
    warnings: tuple[Warned, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    """Time of each stage."""
    executed: int = 0
    """How many chunks had to be executed for this answer (the others were reused)."""
    reused: tuple[Reused, ...] = ()
    views: tuple[str, ...] = ()
    """The interpreters that packages register in this environment: what `Show` can give besides."""
    caveats: tuple[Caveat, ...] = ()
    """Statements that did not run to their end."""
    updates: tuple[str, ...] = ()
    """What the function updates in place, by the names of its parameters and globals (`model`,
    `self.count`): outputs too.
    """
    left_out: tuple[str, ...] = ()
    """Those of `updates` that are not outputs: what is no array, or what a library's `jit` drops.
    """


FOLDED_LINES = 40


@dataclass(frozen=True, slots=True)
class Failed:
    """Request `id` ended with an exception; observations made until then are kept: shapes up to the
    error still show.
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
    """This process cannot answer request `id` as a fresh one would: what another file, or an
    earlier text, did in it cannot be undone.

    The supervisor replaces the process and asks the new one; nobody else sees this message.
    """

    id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Made:
    """A function of an imported file: its program (`PROGRAM`), or why there is none."""

    program: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """A file was imported. `functions` are in the order of the request."""

    id: int
    functions: tuple[Made, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Line `line` (from 0) of a shown text stands for equation `path`, written at `span`."""

    line: int
    path: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation of a lowered program: its path, its primitive, where the user wrote it, and what
    it gives (`f32[8,16]`).
    """

    path: str
    primitive: str
    span: Span | None = None
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """A computation that XLA would do while compiling, predicted from the jaxpr: equation `path`,
    over `elements` elements.

    `seconds` is a rough estimate of what it would cost; `trap` says whether it is not to be
    awaited.
    """

    path: str
    primitive: str
    elements: int
    bytes: int
    seconds: float
    trap: bool


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program in StableHLO, its operations located by the paths of their equations instead of by
    lines.

    `program` is a portable artifact (MLIR bytecode) in base64. `key` is a digest of the program
    without names of files: an edit that only moves lines does not change it.
    """

    id: int
    platform: str
    key: str
    program: str
    equations: tuple[Equation, ...] = ()
    folds: tuple[Fold, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    """The compiler options of the user's `jax.jit` that hold for every target; part of `key`."""
    constants: tuple[str, ...] = ()
    """Types of the arrays that the program captures, as HLO writes them."""
    barriers: tuple[str, ...] = ()
    """Paths of the equations whose results go straight into an `optimization_barrier`."""
    trips: tuple[tuple[str, int], ...] = ()
    """How often the loops of scans go round, by path."""
    jaxlib: str = ""
    stablehlo: str = ""
    """The StableHLO version of the artifact."""
    parameters: tuple[str, ...] = ()
    """The program's parameters by name (`x`, `params['w']`): the function's inputs but for those
    that it does not use.
    """
    donated: tuple[str, ...] = ()
    """The names of the inputs whose buffers are donated."""
    results: tuple[str, ...] = ()
    """The program's results by name: `result 0`."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A whole text, with the lines that lead back to the source. Several links may name one line.

    Source that a `Trace` asked for was traced again and found to be the same program, of
    `equations` equations.
    """

    id: int
    text: str
    links: tuple[Link, ...] = field(default=())
    equations: int = 0
    reused: tuple[Reused, ...] = ()
    companion: str = ""
    """The file of arrays that written source reads from beside it, in base64; empty where there is
    none.
    """
    ran: tuple[str, ...] = ()
    """How written source was run beside the original, with equal results: `eagerly`, `under jit`,
    `under grad`."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What compiles and runs programs by default where the tracer is."""

    jaxlib: str = ""
    backend: str = ""
    """`cpu`; empty where an accelerator may be used."""
    machine: str = ""
    """The system and its processor: `linux x86_64`."""
    flags: str = ""
    """XLA's flags of the environment (`XLA_FLAGS`)."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """A traced program as plain data, what XLA would fold of it, and what it would run on."""

    id: int
    program: Program
    folds: tuple[Fold, ...] = ()
    runtime: Runtime = field(default=Runtime())


@dataclass(frozen=True, slots=True)
class Miscompiled:
    """What the CPU compiler of `jaxlib` computes wrongly of a function: `usual` at index `at` of a
    result, and `second` without library fusions.

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
    """Whether two functions gave the same; `words` say where they part, or how far they agree.

    `gradients` counts the draws whose gradients were held against each other; `nonfinite` how many
    of their numbers were not finite in either.
    """

    id: int
    same: bool
    words: str
    exact: bool = False
    gradients: int = 0
    nonfinite: tuple[int, int] = (0, 0)
    miscompiled: Miscompiled | None = None
    """What is wrong with the first of the two as it is compiled; the comparison then says nothing
    about the second.
    """


Request = Trace | Show | Lower | Outline | Compare
"""What is answered by one message."""

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
