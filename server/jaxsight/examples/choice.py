"""Choose the source of a function's example inputs, from its docstring down to recorded calls.

Explicit examples come first: the function's section, its class's, the project's table; then
doctests, then annotations, then calls: in recorded runs, at the module's top level, in dry runs of
programs, by callers; then proposals that the user wants to see. Annotations also fill in arguments
that the others lack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.binding import Bound, Layers, bind, missing_problems
from jaxsight.examples.docstrings.doctests import calls_in
from jaxsight.examples.docstrings.lines import Declared, DeclaredSet, read_docstring, read_project
from jaxsight.examples.problems import PROJECT_EXAMPLE, Problem, problem
from jaxsight.examples.sets import Examples, ExampleSet, OutsideOrigin, OutsideSet
from jaxsight.examples.signature import Signature
from jaxsight.source.functions import Function
from jaxsight.source.text import Position, Range
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.inputs import ValueSpec


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What the settings define: sizes, and a mesh."""

    sizes: Mapping[str, int]
    mesh: Mesh | None


def of(
    function: Function,
    *,
    sizes: Mapping[str, int],
    project: str | None = None,
    mesh: Mesh | None = None,
    outside: Sequence[OutsideSet] = (),
) -> Examples:
    """Return the example inputs of a function.

    Args:
        function: the function as read from its text.
        sizes: the settings' sizes by name.
        project: the text of the function's entry in `[tool.jaxsight.examples]`, if it has one.
        mesh: the settings' mesh, if there is one.
        outside: calls of the function, and proposals.
    """
    settings = _Defaults(sizes, mesh)
    signature = Signature(function)
    own = read_docstring(function.docstring)
    shared = read_docstring(function.class_docstring) if signature.self_name else Declared()
    if own.sets:
        examples = _declared(signature, own, shared, settings)
    else:
        examples = _other_sources(signature, shared, settings, project)
        if not examples.sets and examples.source != "project" and outside:
            examples = _of_outside(signature, outside, shared, settings, examples)
    problems = (*own.problems, *examples.problems)
    sets = examples.sets
    if own.expects and sets and not sets[0].assumed:
        sets = (replace(sets[0], expects=(*own.expects, *sets[0].expects)), *sets[1:])
    return Examples(sets, _in_order(problems), examples.source)


def _declared(
    signature: Signature, own: Declared, shared: Declared, settings: _Defaults
) -> Examples:
    """Return the sets of the function's own sections; missing arguments are problems."""
    bounds = [_bound(signature, layers, settings) for layers in _layers(own, shared)]
    problems = [p for b in bounds for p in (*b.problems, *b.shared_problems)]
    problems += _problems_of(shared)
    problems += _missing(signature, own, bounds)
    return Examples(_sets(bounds), tuple(problems), "docstring")


def _missing(signature: Signature, own: Declared, bounds: list[Bound]) -> list[Problem]:
    """Report each missing argument once, at the first set that lacks it."""
    reported: set[str] = set()
    problems: list[Problem] = []
    for declared, bound in zip(own.sets, bounds, strict=True):
        unreported = [argument for argument in bound.missing if argument.name not in reported]
        reported.update(argument.name for argument in unreported)
        problems += missing_problems(signature, unreported, declared.heading)
    return problems


def _other_sources(
    signature: Signature, shared: Declared, settings: _Defaults, project: str | None
) -> Examples:
    """Return the first source after the docstring's section with all arguments."""
    examples = Examples()
    if shared.sets and signature.traced_by_class:
        examples = _of_class(signature, shared, settings)
    if not examples.sets and project is not None:
        examples = _of_project(signature, project, shared, settings, examples.problems)
    if examples.sets or examples.source == "project":
        return examples
    if calls := _of_doctests(signature.function):
        return Examples(calls, examples.problems, "doctest")
    if (described := _of_annotations(signature, shared, settings)) is not None:
        return Examples((described,), examples.problems, "annotations")
    return examples


def _of_class(signature: Signature, shared: Declared, settings: _Defaults) -> Examples:
    """Return the class's sets with all arguments; a method that needs more is not a problem."""
    bounds = [
        _bound(signature, Layers(_chain(shared.sets, declared.name), ()), settings)
        for declared in shared.sets
    ]
    wrong = [p for b in bounds if not b.missing for p in (*b.problems, *b.shared_problems)]
    problems = (*_problems_of(shared), *wrong)
    return Examples(_sets(bounds), problems, "class" if _sets(bounds) or problems else "none")


def _of_project(
    signature: Signature,
    text: str,
    shared: Declared,
    settings: _Defaults,
    before: tuple[Problem, ...],
) -> Examples:
    """Return the project's entry; its problems are JX909, with ranges in its text."""
    declared = read_project(text)
    bounds = [_bound(signature, layers, settings) for layers in _layers(declared, shared)]
    own = [*declared.problems, *(p for b in bounds for p in b.problems)]
    own += _missing(signature, declared, bounds)
    problems = [
        *before,
        *(problem(PROJECT_EXAMPLE, p.range, p.message, p.help) for p in own),
        *(p for b in bounds for p in b.shared_problems),
    ]
    return Examples(_sets(bounds), tuple(problems), "project")


def _of_doctests(function: Function) -> tuple[ExampleSet, ...]:
    return tuple(
        ExampleSet(
            name="" if number == 1 else f"doctest {number}",
            arguments=(),
            sizes=(),
            call=call.source,
            expects=(),
            line=call.range.start.line,
            expressions=call.names,
            places=(("", call.range),),
        )
        for number, call in enumerate(calls_in(function), start=1)
    )


def _of_annotations(
    signature: Signature, shared: Declared, settings: _Defaults
) -> ExampleSet | None:
    """Return a set from annotations (and the class's `self`), if all arguments have examples."""
    function = signature.function
    needed = [p for p in signature.required if p.name != signature.self_name]
    if not needed:
        return None
    head = DeclaredSet("", function.name_range)
    bound = _bound(signature, Layers(shared.sets[:1], (head,)), settings)
    return bound.set


def _of_outside(
    signature: Signature,
    outside: Sequence[OutsideSet],
    shared: Declared,
    settings: _Defaults,
    before: Examples,
) -> Examples:
    """Return the calls of the best origin that has some which the function still takes.

    A call that no longer fits the function's parameters is left out without a problem.
    """
    better = [call.origin for call in outside if call.is_better]
    for origin in (*better, *_OUTSIDE):
        calls = [call for call in outside if call.origin == origin]
        if signature.function.refused:
            # A nested function exists only in a run: there it has all that it is called with.
            is_nested = signature.function.refused == "nested"
            calls = [call for call in calls if is_nested and call.dry_call is not None]
        made_sets = (_of_call(signature, call, shared, settings) for call in calls)
        if sets := [made for made in made_sets if made is not None]:
            names = [made.name for made in sets]
            unique = tuple(
                made if number == 1 else replace(made, name=f"{made.name} {number}")
                for at, made in enumerate(sets)
                for number in (names[: at + 1].count(made.name),)
            )
            return Examples(unique, before.problems, origin)
    return before


_OUTSIDE: tuple[OutsideOrigin, ...] = ("recorded", "module", "program", "caller", "proposed")
"""Where sets that no text declares come from, the best first."""


def _of_call(
    signature: Signature, call: OutsideSet, shared: Declared, settings: _Defaults
) -> ExampleSet | None:
    """Return a call as a set, whose examples all have their place at the function."""
    place = signature.function.name_range
    declared = read_project(call.text) if call.text else _NOTHING
    if len(declared.sets) != 1:
        return None
    if call.dry_call is not None:
        signature = _with_parameters(signature, {line.name for line in declared.sets[0].examples})
        shared = Declared()
    bound = _bound(signature, _layers(declared, shared)[0], settings)
    if bound.set is None or bound.problems:
        return None
    return replace(
        bound.set,
        name=call.label,
        arguments=tuple(
            replace(argument, spec=replace(argument.spec, keeps_numbers=call.keeps_numbers))
            if isinstance(argument.spec, ValueSpec)
            else argument
            for argument in bound.set.arguments
        ),
        may_fail=call.may_fail,
        assumed=_assumed(call, bound.set),
        outside=call,
        dry_call=call.dry_call,
        expects=(),
        line=place.start.line,
        places=tuple((name, place) for name, _ in bound.set.places),
        axis_places=tuple((name, place) for name, _ in bound.set.axis_places),
    )


def _assumed(call: OutsideSet, made: ExampleSet) -> tuple[str, ...]:
    """Return the parameters whose inputs are guesses, all of them for a proposal."""
    names = tuple(argument.name for argument in made.arguments)
    if call.origin == "proposed":
        return names or ("",)
    return tuple(name for name in names if name in call.assumed)


_NOTHING = Declared((DeclaredSet("", Range(Position(0, 0), Position(0, 0))),))
"""A set without lines."""


def _with_parameters(signature: Signature, names: set[str]) -> Signature:
    """Return a function's signature without the parameters that have other names."""
    function = signature.function
    kept = tuple(p for p in function.parameters if p.name in names)
    return Signature(replace(function, parameters=kept))


def _bound(signature: Signature, layers: Layers, settings: _Defaults) -> Bound:
    return bind(signature, layers, settings.sizes, settings.mesh)


def _layers(own: Declared, shared: Declared) -> list[Layers]:
    return [
        Layers(_chain(shared.sets, declared.name), _chain(own.sets, declared.name, declared))
        for declared in own.sets
    ]


def _chain(
    sets: tuple[DeclaredSet, ...], name: str, last: DeclaredSet | None = None
) -> tuple[DeclaredSet, ...]:
    """Return the first set, then the one with the name (or `last`) if it is a different one."""
    if not sets:
        return ()
    first = sets[0]
    named = last or next((declared for declared in sets if declared.name == name), first)
    return (first,) if named is first else (first, named)


def _sets(bounds: list[Bound]) -> tuple[ExampleSet, ...]:
    return tuple(bound.set for bound in bounds if bound.set is not None)


def _problems_of(declared: Declared) -> list[Problem]:
    return [*declared.problems, *(p for d in declared.sets for p in d.problems)]


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, ordered by place."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda p: (p.code == PROJECT_EXAMPLE, p.range)))
