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

from jaxsight_source.calls.signature import BoundCall, TracedCall, bind, only_call
from jaxsight_source.compat import avals
from jaxsight_source.compat.equations import argument_names, function_name
from jaxsight_source.compat.lowered import mlir, stages
from jaxsight_source.compat.staging import Program, evaluate, opened
from jaxsight_source.jaxprs.graph import dot
from jaxsight_source.options import ProgramLanguage
from jaxsight_source.stablehlo.program import StablehloProgram, UnreadableProgram
from jaxsight_source.stablehlo.reading import read
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
class BareProgram:
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
    readable: Callable[[], BareProgram] | None = None
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


def of_jaxpr(jaxpr: object) -> BareProgram:
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
    return BareProgram(jaxpr, name_of(program), structs, names=names)


def name_of(program: Program, fallback: str = "program") -> str:
    """Return a name for the function of a program: that of the function that was traced."""
    name = function_name(program).rpartition(".")[2]
    return identifier(name, fallback) if name != "<lambda>" else "function"


def names_of(program: Program, number: int) -> Sequence[str]:
    """Return the names of a program's inputs: letters, as jaxprs print them, where not known."""
    known = argument_names(program)
    known = known if len(known) == number else ("",) * number
    letters = itertools.chain(string.ascii_lowercase, (f"arg{n}" for n in itertools.count(26)))
    return [name or letter for name, letter in zip(known, letters, strict=False)]


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


_LINE = re.compile(r'"(?P<file>(?!-")[^"]+)":(?P<line>\d+):\d+')  # MLIR's own text is `-`
_ANOTHER = re.compile(r"#loc\d*")


def printed(artifact: str | bytes) -> str:
    """Return a module's text with lines of Python as comments at the end of its lines."""
    module = mlir.parse(artifact)
    text = str(module.operation.get_asm(enable_debug_info=True, pretty_debug_info=False))
    lines, places = mlir.places_of(text)
    return "".join(f"{_commented(*line, places)}\n" for line in lines if line[0])


def _commented(line: str, place: str, places: Mapping[str, str]) -> str:
    if not place or line.lstrip().startswith(("func.func", "module", "}")):
        return line
    where = _where(place, places)
    return f"{line}  // {where}" if where else line


def _where(place: str, places: Mapping[str, str]) -> str:
    """Return the innermost file and line of a location; empty if it has none."""
    waiting, seen = [place], set[str]()
    while waiting:
        words = waiting.pop()
        if found := _LINE.search(words):
            return f"{found['file']}:{found['line']}"
        names = [name for name in _ANOTHER.findall(words) if name not in seen]
        seen.update(names)
        waiting += [places[name] for name in reversed(names) if name in places]
    return ""


def of_traced(traced: jax.stages.Traced) -> BareProgram:
    """Return a traced function with its parameters and pytrees.

    Static arguments are not among its parameters: JAX does not keep their values.
    """
    args, kwargs = stages.arguments(traced)
    program = stages.program(traced)
    count = len(jax.tree.leaves((args, kwargs)))
    name = identifier(traced.fun_name.rpartition(".")[2], "program")
    results = jax.tree.structure(traced.out_info)
    return BareProgram(program, name, args, kwargs, names_of(program, count), results)


def of_stablehlo(
    artifact: str | bytes,
    *,
    is_exact: bool = True,
    readable: bool = False,
    names: Sequence[str] = (),
    linked: bool = False,
) -> BareProgram:
    """Return a StableHLO program, as text or bytecode, as a function of the arrays that it takes.

    Args:
        artifact: the program.
        is_exact: whether it is the program itself, and not converted from HLO.
        readable: whether to find calls of library functions.
        names: of its arguments; by default, those in the program.
        linked: whether to record lines of a text in equations.

    Raises:
        UnreadableProgram: it is none, or has an operation that JAX lacks.
    """
    program = _read(artifact, is_exact=is_exact, readable=readable, linked=linked)
    leaves = tuple(avals.leaf(aval) for aval in program.jaxpr.in_avals)
    origin = Stablehlo(artifact, program, tuple(range(len(leaves))), is_exact)
    return BareProgram(
        program.jaxpr,
        program.name,
        leaves,
        names=names if len(names) == len(leaves) else program.names,
        origin=origin,
        readable=lambda: of_stablehlo(
            artifact, is_exact=is_exact, readable=True, names=names, linked=linked
        ),
    )


def of_lowered(lowered: jax.stages.Lowered, *, readable: bool = False) -> BareProgram:
    """Return a lowered function with its parameters and pytrees.

    Raises:
        UnreadableProgram: it has an operation that JAX lacks.
    """
    text = lowered.as_text(debug_info=True)
    program = _read(text, readable=readable)
    args, kwargs = stages.arguments(lowered)
    kept = stages.used_leaves(lowered)
    name = program.name
    results = jax.tree.structure(lowered.out_info)
    given = _called(text, program, name, (args, kwargs), kept, results)
    return replace(given, readable=lambda: of_lowered(lowered, readable=True))


def of_exported(exported: jax.export.Exported, *, readable: bool = False) -> BareProgram:
    """Return an exported function with its parameters and pytrees.

    Raises:
        UnreadableProgram: it has an operation that JAX lacks.
    """
    artifact = exported.mlir_module_serialized
    program = _read(artifact, readable=readable)
    called = jax.tree.unflatten(exported.in_tree, map(avals.leaf, exported.in_avals))
    name = identifier(exported.fun_name.rpartition(".")[2], "program")
    kept = exported.module_kept_var_idx
    given = _called(artifact, program, name, called, kept, exported.out_tree)
    return replace(given, readable=lambda: of_exported(exported, readable=True))


_PLACE = re.compile(r'"-":(\d+):\d+')


def _read(
    artifact: str | bytes, *, is_exact: bool = True, readable: bool, linked: bool = False
) -> StablehloProgram:
    try:
        return read(artifact, readable=readable, linked=linked)
    except UnreadableProgram as error:
        if (place := _PLACE.fullmatch(error.place)) is None:
            raise
        where = f"line {place[1]}" if is_exact else ""  # else of a text that nobody sees
        raise UnreadableProgram(error.why, error.operation, where) from error
    except Exception as error:  # MLIR raises errors of its own for damaged bytecode
        raise UnreadableProgram(" ".join(str(error).split())) from error


def _called(
    artifact: str | bytes,
    program: StablehloProgram,
    name: str,
    called: tuple[tuple[object, ...], dict[str, object]],
    kept: Sequence[int],
    results: jax.tree_util.PyTreeDef,
) -> BareProgram:
    """Return a program called as its function was.

    Args:
        artifact: the StableHLO.
        program: what was read of it.
        name: the function's.
        called: the arguments and keyword arguments, as pytrees of types.
        kept: the positions of the leaves that the program takes.
        results: their structure.
    """
    types = program.jaxpr.in_avals
    platform = len(types) - len(kept)
    """Of a program for several platforms, the first input says which."""
    leaves, tree = jax.tree.flatten(called)
    names = [""] * len(leaves)
    found = [path or name for path, name in zip(program.paths, program.names, strict=True)]
    for position, aval, known in zip(kept, types[platform:], found[platform:], strict=True):
        leaves[position] = avals.leaf(aval)
        names[position] = known
    args, kwargs = jax.tree.unflatten(tree, leaves)
    first = tuple(avals.leaf(aval) for aval in types[:platform])
    positions = (*range(platform), *(position + platform for position in kept))
    origin = Stablehlo(artifact, program, positions)
    given = BareProgram(
        program.jaxpr,
        name,
        (*first, *args),
        kwargs,
        [*["platform_index"] * platform, *names],
        results,
        origin,
    )
    if len(positions) == len(leaves) + platform:
        return given
    inside = opened(program.jaxpr)
    with given.types():
        with_unused = jax.make_jaxpr(lambda *xs: evaluate(inside, *(xs[at] for at in positions)))
        return replace(given, jaxpr=with_unused(*first, *leaves))
