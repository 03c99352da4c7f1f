"""In which functions and modules an equation was created: `('loss', 'model', 'blocks[3]', 'attn')`.

An equation's traceback has the functions that were running, but not the modules whose methods they
were. So the stack is read when JAX adds an equation, and remembered by the traceback, which JAX
passes on when it differentiates or batches the equation. No value is kept.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import CodeType, FrameType

from jaxsight.tracer.compat import traces
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.states import modules
from jaxsight_source.compat import locations
from jaxsight_source.compat.jaxpr_types import Equation

Scope = tuple[str, ...]

_MOST = 200_000
"""Tracebacks that are remembered; equations of those forgotten have no scope."""

_DEEPEST = 16
"""Maximum length of a scope: code that is nested deeper has the scope around it."""


@dataclass(frozen=True, slots=True)
class _Role:
    """What code means for a scope.

    `name` is the function's for users, empty for one that has none; `package` that of a library.
    """

    name: str
    package: str = ""
    is_method: bool = False
    begins: bool = False
    """Whether JAX begins an inner jaxpr here."""


@dataclass(frozen=True, slots=True)
class _Created:
    """Where an equation was created: `own` is within its jaxpr, `outer` around it."""

    traceback: object
    """Kept alive, so that its address is not reused."""
    outer: Scope
    own: Scope


_created: dict[int, _Created] = {}
"""By the address of the traceback; of the whole process, as JAX reuses inner jaxprs."""


@contextlib.contextmanager
def recorded(function: str) -> Iterator[None]:
    """Remember where equations are created while `function` (a qualified name) is traced."""
    stacks = _Stacks(function)

    def created(traceback: object) -> None:
        if traceback is None or id(traceback) in _created:
            return
        if len(_created) >= _MOST:
            del _created[next(iter(_created))]
        _created[id(traceback)] = stacks.read(traceback, sys._getframe(2))

    with traces.new_equations(created):
        yield


def forget() -> None:
    """Forget where equations were created, as JAX's caches of inner jaxprs are cleared.

    Both keep the code of earlier texts alive.
    """
    _created.clear()


def scope(equation: Equation, around: Scope | None = None) -> Scope:
    """Return the scope of an equation; empty if it was created by the traced function itself.

    Args:
        equation: of the program's jaxpr, or of an inner one.
        around: the scope of the equation that has the inner jaxpr.
    """
    created = _created.get(id(equation.source_info.traceback))
    outer, own = (created.outer, created.own) if created is not None else ((), ())
    named = locations.named_scopes(equation)
    if around is None:
        return _joined((*outer, *own), named)[:_DEEPEST]
    return (*around, *_joined(own, named))[:_DEEPEST]


def _joined(called: Scope, named: Scope) -> Scope:
    """Return the scope with the names of `jax.named_scope` that are not in it, each in its place.

    Linen and Haiku open a named scope for each module, whose name is in both.
    """
    joined: list[str] = []
    waiting: list[str] = []
    begin = 0
    for name in named:
        if name in called[begin:]:
            at = called.index(name, begin)
            joined += [*called[begin:at], *waiting, name]
            waiting, begin = [], at + 1
        else:
            waiting.append(name)
    return (*joined, *called[begin:], *waiting)


class _Stacks:
    """Reads the stacks of one trace."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._roles: dict[int, tuple[_Role | None, CodeType]] = {}
        """By the address of the code, which is kept alive: hashing code takes long."""
        self._same: dict[object, _Created] = {}
        """By tracebacks, which are equal if their frames run the same instructions, as those of
        layers in a loop. Not of methods: their modules differ."""
        self._kind: Callable[[type], modules.ModuleKind] = functools.cache(modules.kind)
        self._paths: dict[tuple[int, int], modules.Steps | None] = {}
        self._variables: dict[tuple[int, int, int], str] = {}
        """Callers' names of modules, by address of the module, and by the caller's instruction."""

    def read(self, traceback: object, frame: FrameType | None) -> _Created:
        if (same := self._same.get(traceback)) is not None:
            return replace(same, traceback=traceback)
        frames: list[tuple[FrameType, _Role]] = []
        begins = -1
        while frame is not None:
            code = frame.f_code
            known = self._roles.get(id(code))
            if known is None:
                known = self._roles[id(code)] = _role(code), code
            role = known[0]
            if role is not None:
                if not role.begins:
                    frames.append((frame, role))
                elif begins < 0:
                    begins = len(frames)
            frame = frame.f_back
        inner = len(frames) - begins if begins >= 0 else 0
        outer, own = self._labels(list(reversed(frames)), inner)
        created = _Created(traceback, outer, own)
        if not any(role.is_method for _, role in frames):
            self._same[traceback] = created
        return created

    def _labels(self, frames: list[tuple[FrameType, _Role]], inner: int) -> tuple[Scope, Scope]:
        """Return the labels of frames, outermost first, before and from index `inner`."""
        outer: list[str] = []
        own: list[str] = []
        library: list[list[str]] = []
        """The labels that end with a library's function, which a function below it replaces."""
        around: list[object] = []
        caller: FrameType | None = None
        is_searched = True
        for index, (frame, role) in enumerate(frames):
            labels = outer if index < inner else own
            module = self._module(frame) if role.is_method else None
            if is_searched and frame.f_code.co_qualname == self._function:
                outer, own, library, is_searched = [], [], [], False
                around = [module] if module is not None else []
                caller = frame
            elif module is None and role.package:
                if role.name and not library and not self._is_library(caller):
                    labels.append(f"{role.package}.{role.name}")
                    library = [labels]
            else:
                for ended in library:
                    ended.pop()
                library = []
                if module is not None:
                    labels += self._called(module, around, caller, role)
                elif role.name:
                    labels.append(role.name)
                caller = frame
        return tuple(outer), tuple(own)

    def _is_library(self, caller: FrameType | None) -> bool:
        role = self._roles[id(caller.f_code)][0] if caller is not None else None
        return role is not None and bool(role.package)

    def _module(self, frame: FrameType) -> object:
        """Return the module whose method a frame runs, or `None`."""
        module = frame.f_locals.get("self")
        return module if self._kind(type(module)) else None

    def _called(
        self, module: object, around: list[object], caller: FrameType | None, role: _Role
    ) -> Scope:
        """Return the labels of a module, and add it to those around."""
        if around and around[-1] is module:
            return ()
        if self._kind(type(module)) == modules.NAMED:
            if not role.name:
                return ()
            around.append(module)
            return (modules.own_name(module),)
        labels: Scope = ()
        for outer in reversed(around):
            if outer is module:
                return ()
            steps = self._path(outer, module)
            if steps is not None:
                labels = modules.labels(steps)
                break
        else:
            labels = (self._variable(module, caller) or type(module).__name__,)
        around.append(module)
        return labels

    def _path(self, outer: object, module: object) -> modules.Steps | None:
        key = (id(outer), id(module))
        if key in self._paths:
            steps = self._paths[key]
            # The ids may be of other objects by now.
            if steps is None or modules.leads_to(outer, steps, module):
                return steps
        steps = self._paths[key] = modules.path(outer, module)
        return steps

    def _variable(self, module: object, caller: FrameType | None) -> str:
        """Return the caller's name of a module: `model`, `layers[3]` or `trainer.model`."""
        if caller is None:
            return ""
        key = (id(module), id(caller.f_code), caller.f_lasti)
        name = self._variables.get(key)
        if name is None:
            name = self._variables[key] = _name_in(caller.f_locals, module)
        return name


def _name_in(variables: Mapping[str, object], module: object) -> str:
    """Return the expression for a module in a function with these local variables.

    An item of a list is preferred to the variable of a loop over the list.
    """
    places = [(name, value) for name, value in variables.items() if name not in ("args", "kwargs")]
    for name, value in [*places]:
        inside = modules.attributes(value).items()
        places += [(f"{name}.{key}".removeprefix("self."), part) for key, part in inside]
    for name, value in places:
        if (steps := modules.path_of_item(value, module)) is not None:
            return name + "".join(modules.labels(steps))
    return next((name for name, value in places if value is module), "")


def _role(code: CodeType) -> _Role | None:
    """Return what code means for a scope; `None` for JAX's, Python's and our own."""
    if traces.begins_jaxpr(code):
        return _Role("", begins=True)
    origin = code_origins.of_file(code.co_filename)
    if origin == code_origins.PYTHON:
        return None
    package = ""
    if origin != code_origins.USER:
        parts = PurePath(code.co_filename).parts
        at = max(at for at, part in enumerate(parts) if part in code_origins.INSTALLED)
        package = PurePath(parts[at + 1]).stem if at + 1 < len(parts) else ""
    if package in ("jax", "jaxlib"):
        return None
    is_method = code.co_argcount > 0 and code.co_varnames[0] == "self"
    return _Role(_name(code, package), package, is_method)


def _name(code: CodeType, package: str) -> str:
    """Return the name of a function for users: `loss`, `Trainer.loss`."""
    if code.co_name.startswith("<") or code.co_filename.replace("\\", "/").endswith(_LINEN):
        return ""
    if package:
        return code.co_name
    return code.co_qualname.rpartition("<locals>.")[2].removesuffix(".__call__")


_LINEN = "flax/linen/module.py"
"""Where the methods of Linen's modules are wrapped; the wrappers are methods too."""
