"""A question: one function, one example set, and the current text. Equal questions have equal keys.

The key depends on meanings, not on the text: moved lines, comments and docstrings do not change it,
so that a cached answer stays valid.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, field, replace

from jaxsight.examples.sets import ExampleSet
from jaxsight.projects.project import Project
from jaxsight.queries.documents import Document, Subject, module_name
from jaxsight.rules.finding import Severity
from jaxsight.source.module import Module
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.slicing.slices import Slice, slice_for
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.device_mentions import may_depend_on_devices
from jaxsight.wire.messages.requests import NEW, FakeDevice, Trace


@dataclass(frozen=True, slots=True)
class Question:
    """A function, an example set and the text: `trace` is the request, without `id`.

    `key` identifies the question in caches, on any device; `module` is its text.
    """

    path: str
    subject: Subject
    set: ExampleSet
    module: Module
    slice: Slice
    trace: Trace
    key: str
    caveats: tuple[SliceCaveat, ...] = ()
    """Statements that were not run and may change the answer."""
    asked: int = field(default_factory=itertools.count(1).__next__, compare=False)
    """Its number in the order in which questions are asked."""

    @property
    def key_on_device(self) -> str:
        """Identifies the question for code that asks for the platform, which sees the target's."""
        return f"{self.key} {self.trace.device}"

    @property
    def unit(self) -> tuple[str, str, str]:
        """What it is about, whatever the text: a file, a function, and an example set."""
        return self.path, self.subject.id, self.set.name


@dataclass(frozen=True, slots=True)
class Unasked:
    """Why a function is not traced; shown instead of an answer."""

    reason: str


def ask(
    document: Document,
    subject: Subject,
    chosen: ExampleSet,
    project: Project,
    *,
    devices: int = 0,
    device: FakeDevice | None = None,
    module: Module | None = None,
) -> Question | Unasked:
    """Return the question for `subject` with the example set `chosen`.

    Args:
        project: that of the document.
        devices: the number of devices of the target; 0 for as many as the function needs.
        device: the device of the target; `None` for a CPU.
        module: the subject's text, by default the document's current one.
    """
    if reason := _untraceable(subject, chosen):
        return Unasked(reason)
    module = document.module if module is None else module
    named_meshes = mesh_names(module) if chosen.needs_mesh else ()
    names = [subject.function.qualname.partition(".")[0], *chosen.expressions, *named_meshes]
    whole = document.looked_into or chosen.dry_call is not None
    needed = _needed(document, subject, module, names, whole=whole)
    if any(chunk.broken is not None and chunk.broken.too_large for chunk in needed.broken):
        return Unasked("it depends on code that is too large to be analyzed")
    if needed.broken:
        return Unasked("it depends on code with a syntax error")
    call = chosen.dry_call
    trace = Trace(
        id=NEW,
        file=document.path,
        module=module_name(document.path),
        root=project.root,
        chunks=needed.chunks,
        function=subject.function.qualname,
        arguments=chosen.arguments,
        sizes=chosen.sizes,
        future_flags=module.bindings.future_flags,
        dry_call=chosen.dry_call,
        skipped=_skipped(needed) if call is not None and call.entry.is_own(document.path) else (),
        patience=project.settings.timeouts.statement,
        whole=whole,
        mesh=chosen.mesh,
        mesh_is_default=chosen.mesh_is_default,
        mesh_source=chosen.mesh_source,
        mesh_names=named_meshes,
        devices=devices,
        device=device,
        unasked=bool(chosen.assumed) or subject.examples.source in ("program", "recorded"),
    )
    key = _key(project.environment, needed, trace, module)
    return Question(document.path, subject, chosen, module, needed, trace, key, needed.caveats)


def _skipped(needed: Slice) -> tuple[Chunk, ...]:
    return tuple(chunk for chunk, _ in needed.skipped)


def _needed(
    document: Document, subject: Subject, module: Module, names: list[str], *, whole: bool
) -> Slice:
    """Return the slice of a subject: all of the module if it is the program, as `run_of` has it."""
    if subject.is_program:
        return slice_for(module, (), keep_all=True)
    in_cells = document.path.endswith(".ipynb")
    return slice_for(module, names, subject.chunk, keep_all=whole, in_cells=in_cells)


def _untraceable(subject: Subject, chosen: ExampleSet) -> str:
    """Return why a function cannot be traced with an example set; empty if it may be."""
    if subject.broken:
        return "the function has a syntax error"
    is_called = subject.function.refused == "nested" and chosen.dry_call is not None
    if subject.function.refused and not is_called:
        return refusal(subject)
    if any(problem.severity is Severity.ERROR for problem in subject.examples.problems):
        return "the example inputs have errors"
    return ""


_MESH = re.compile(r"mesh", re.IGNORECASE)
_MAKES_MESH = re.compile(r"mesh\w*\(", re.IGNORECASE)


def mesh_names(module: Module) -> tuple[str, ...]:
    """Return the globals that may be meshes, by their names and the statements that bind them.

    These import from, or call, something named after a mesh. Functions and classes are none.
    """
    names: dict[str, None] = {}
    for chunk in module.chunks:
        statement = chunk.statement
        if statement.broken or statement.functions or not _MESH.search(chunk.text):
            continue
        effects = chunk.name_effects
        makes = _MAKES_MESH if not effects.imports else _MESH
        every = makes.search(chunk.text) is not None
        names |= {name: None for name in effects.binds if every or _MESH.search(name)}
    return tuple(names)


def _key(environment: str, needed: Slice, trace: Trace, module: Module) -> str:
    """Return a digest of everything that the answer depends on.

    A program of the file itself may run statements that no slice has. The number of devices is part
    of it only if the answer may depend on it; whether it depends on the platform is known with the
    answer (`Question.key_on_device`).
    """
    devices = trace.devices if trace.devices and may_depend_on_devices(trace) else 0
    called = trace.dry_call
    is_own = called is not None and called.entry.file == trace.file
    own = module_meaning(module) if is_own else ""
    # The slice's key has the meaning of these fields, and limits of time change no answer.
    asked = replace(trace, chunks=(), skipped=(), future_flags=0, patience=0, device=None)
    return _digest(repr((environment, own, needed.key, replace(asked, devices=devices))))


def module_meaning(module: Module) -> str:
    """Return a digest of the meaning of all statements of a module, also those that are skipped."""
    return _digest("\0".join(chunk.statement.meaning for chunk in module.chunks))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def run_of(
    document: Document, project: Project, device: FakeDevice | None, module: Module
) -> tuple[Trace, str]:
    """Return the request that executes a whole module, of no function, and its key."""
    needed = slice_for(module, (), keep_all=True)
    trace = Trace(
        id=NEW,
        file=document.path,
        module=module_name(document.path),
        root=project.root,
        chunks=needed.chunks,
        function="",
        arguments=(),
        future_flags=module.bindings.future_flags,
        skipped=_skipped(needed),
        patience=project.settings.timeouts.statement,
        whole=True,
        device=device,
        unasked=True,
        keep=False,
    )
    return trace, f"{_key(project.environment, needed, trace, module)} {module_meaning(module)}"


def refusal(subject: Subject) -> str:
    """Return why a function cannot be traced by itself."""
    match subject.function.refused:
        case "async":
            return "JAX cannot trace coroutines; add example inputs to the function that it awaits"
        case "generator":
            return "JAX cannot trace generators; return a tuple, or use `jax.lax.scan`"
        case "nested":
            return (
                "nested functions cannot be traced directly; "
                "add example inputs to the enclosing function"
            )
        case other:
            return other
