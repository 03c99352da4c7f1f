"""A program without its Python function, called as the function was, as far as that is known.

The function that stands for it evaluates the program. It is only traced for gradients: the text is
compared with the program itself.
"""

from __future__ import annotations

import inspect
import itertools
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import jax

from jaxsight_source.calls.jitted_function import only_call
from jaxsight_source.calls.signature import BoundCall, TracedCall, bind
from jaxsight_source.compat import avals
from jaxsight_source.compat.staging import Program, evaluate, opened
from jaxsight_source.jaxprs.graph import dot
from jaxsight_source.program_text import ProgramLanguage
from jaxsight_source.programs.lines import printed
from jaxsight_source.stablehlo.program import StablehloProgram
from jaxsight_source.text.exprs import is_identifier
from jaxsight_source.text.names import identifier, of_path

_VARIADIC = inspect.Parameter.VAR_POSITIONAL

_MEMBER = re.compile(r"([^\W\d]\w*)\[\d+\]")
"""A member of `*args`, as JAX names it."""


@dataclass(frozen=True, slots=True)
class Stablehlo:
    """The StableHLO that a program was read from."""

    artifact: str | bytes
    program: StablehloProgram
    kept: Sequence[int]
    """The positions of the leaves that it takes."""
    is_exact: bool = True
    """Whether JAX lowers to such StableHLO: not so if XLA has converted it from HLO."""


@dataclass(frozen=True, slots=True)
class GivenProgram:
    """A program, the pytrees of its arguments and results, and the names that are known."""

    jaxpr: object
    name: str
    args: tuple[object, ...]
    """The positional arguments: pytrees of the types of the program's inputs, in order."""
    kwargs: Mapping[str, object] = field(default_factory=dict)
    names: Sequence[str] = ()
    """The name of each leaf as JAX writes it, such as `p['w']`; empty if they are not known."""
    results: jax.tree_util.PyTreeDef | None = None
    """The structure of the results: by default, of one result itself, or of a tuple."""
    origin: Stablehlo | None = None
    """What a text is also compared with."""
    readable: Callable[[], GivenProgram] | None = None
    """Reads the program of `origin` again, with calls of library functions."""

    def call(self) -> BoundCall:
        """Return the call of a function that evaluates the program."""
        program, results = opened(self.jaxpr), self._results

        def function(*args: object, **kwargs: object) -> object:
            return jax.tree.unflatten(results, evaluate(program, *jax.tree.leaves((args, kwargs))))

        function.__name__ = self.name
        signature = inspect.Signature(list(self._parameters()))
        setattr(function, "__signature__", signature)  # noqa: B010 - unknown to type checkers
        call = bind(function, self.args, self.kwargs, lambda leaf: True)
        if (equation := only_call(program)) is None:
            return call
        is_donated = equation.params["donated_invars"]
        donated = [
            name
            for name, part in call.parts.items()
            if part.places and all(is_donated[place] for place in part.places)
        ]
        if any(signature.parameters[name].kind is _VARIADIC for name in donated):
            return call
        return replace(call, function=jax.jit(function, donate_argnames=donated))

    def traced(self) -> TracedCall:
        return TracedCall(self.jaxpr, self._results, (False,) * self._results.num_leaves)

    def text(self, language: ProgramLanguage) -> str:
        """Return the program in a language other than Python.

        HLO is that which XLA begins with, a graph is in the language DOT, and StableHLO that was
        read has the lines of Python that it comes from as comments.
        """
        if language == "stablehlo" and self.origin is not None:
            return printed(self.origin.artifact)
        with self.types():
            if language == "jaxpr":
                return f"{self.jaxpr}\n"
            if language == "graph":
                return "".join(f"{line.text}\n" for line in dot(self.jaxpr, self.name))
            lowered = jax.jit(self.call().function).lower(*self.args, **self.kwargs)
            return str(lowered.as_text("stablehlo" if language == "stablehlo" else "hlo"))

    def types(self) -> AbstractContextManager[None]:
        """Return a context in which the program's types can be traced."""
        return self.origin.program.types() if self.origin is not None else nullcontext()

    @property
    def _results(self) -> jax.tree_util.PyTreeDef:
        if self.results is not None:
            return self.results
        results = len(opened(self.jaxpr).jaxpr.outvars)
        return jax.tree.structure(0 if results == 1 else (0,) * results)

    def _parameters(self) -> Iterator[inspect.Parameter]:
        names = iter(self.names)
        used = set(self.kwargs)
        for position, argument in enumerate(self.args):
            leaves, _ = jax.tree_util.tree_flatten_with_path(argument)
            name = ""
            for path, known in zip([path for path, _ in leaves], names, strict=False):
                key = jax.tree_util.keystr(path)
                for suffix in (key, re.sub(r"\W+", "_", key).rstrip("_")):
                    if known.endswith(suffix):
                        name = known.removesuffix(suffix)
                        break
            if member := _MEMBER.fullmatch(name):
                yield inspect.Parameter(member[1], _VARIADIC)
                break
            if not is_identifier(name) or name in used:
                name = next(
                    other
                    for other in (f"arg{number}" for number in itertools.count(position))
                    if other not in used
                )
            used.add(name)
            yield inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in sorted(self.kwargs):
            yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)


def of_jaxpr(jaxpr: object) -> GivenProgram:
    """Return a jaxpr as a function of its inputs, in order.

    It has the name of the function that was traced, and its parameters' names: a part of a pytree
    is a parameter of its own.

    Raises:
        TypeError: if it has constants without values.
    """
    program = opened(jaxpr)
    if missing := len(program.jaxpr.constvars) - len(program.consts):
        constants = f"{missing} constant{'s' * (missing > 1)}"
        raise TypeError(f"the jaxpr has {constants} without values; pass a ClosedJaxpr")
    structs = tuple(avals.leaf(var.aval) for var in program.jaxpr.invars)
    names = distinct(of_path(name, "") for name in names_of(program, len(structs)))
    return GivenProgram(jaxpr, name_of(program), structs, names=names)


def name_of(program: Program, fallback: str = "program") -> str:
    """Return a name for the function of a program: that of the function that was traced."""
    info = getattr(program.jaxpr, "debug_info", None)
    name = str(getattr(info, "func_name", "") or "").rpartition(".")[2]
    return identifier(name, fallback) if name != "<lambda>" else "function"


def names_of(program: Program, number: int) -> Sequence[str]:
    """Return the names of a program's inputs: letters, as jaxprs print them, where not known."""
    info = getattr(program.jaxpr, "debug_info", None)
    known = tuple(getattr(info, "arg_names", None) or ())
    known = known if len(known) == number else ("",) * number
    letters = itertools.chain(string.ascii_lowercase, (f"arg{n}" for n in itertools.count(26)))
    return [str(name) or letter for name, letter in zip(known, letters, strict=False)]


def distinct(names: Iterator[str]) -> list[str]:
    """Return identifiers that differ from each other, with numbers after equal ones."""
    given: list[str] = []
    for name in names:
        fresh = identifier(name)
        numbers = itertools.count(1)
        while fresh in given:
            fresh = f"{name}_{next(numbers)}"
        given.append(fresh)
    return given
