"""Choose the source of a function's example inputs, from its docstring down to recorded calls.

Explicit examples come first: the function's section, its class's, the project's table; then
annotations, then calls: in recorded runs, in dry runs of programs; then proposals that the user
wants to see. Annotations also fill in arguments that the others lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.binding import Bound, Layers, Signature, bind, missing_problems
from jaxsight.examples.docstrings.lines import Declared, DeclaredSet, read_docstring, read_project
from jaxsight.examples.problems import PROJECT_EXAMPLE, Problem, problem
from jaxsight.examples.sets import Examples, ExampleSet, OutsideOrigin, OutsideSet
from jaxsight.source.definitions import Function
from jaxsight.source.text import Position, Range
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.inputs import ValueSpec

_OUTSIDE: tuple[OutsideOrigin, ...] = ("recorded", "program", "proposed")
"""Where sets that no text declares come from, the best first."""
_OLD = "as recorded before the program changed"
_NOTHING = Declared((DeclaredSet("", Range(Position(0, 0), Position(0, 0))),))
"""A set without lines."""


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
    signature = Signature(function)
    own = read_docstring(function.docstring)
    shared = read_docstring(function.class_docstring) if signature.self_name else Declared()
    sources = _Sources(signature, shared, sizes, mesh)
    if own.sets:
        examples = sources.declared(own)
    else:
        examples = sources.others(project)
        if not examples.sets and examples.source != "project" and outside:
            examples = sources.of_outside(outside, examples)
    sets = examples.sets
    if own.expects and sets and not sets[0].assumed:
        sets = (replace(sets[0], expects=(*own.expects, *sets[0].expects)), *sets[1:])
    problems = dict.fromkeys((*own.problems, *examples.problems))
    in_order = sorted(problems, key=lambda p: (p.code == PROJECT_EXAMPLE, p.range))
    return Examples(sets, tuple(in_order), examples.source)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The sources of one function's sets; those of its class are `shared`."""

    signature: Signature
    shared: Declared
    sizes: Mapping[str, int]
    """The settings' sizes."""
    mesh: Mesh | None

    def declared(self, own: Declared) -> Examples:
        """Return the sets of the function's own sections; missing arguments are problems."""
        bounds = self._bound(own)
        problems = [p for b in bounds for p in (*b.problems, *b.shared_problems)]
        problems += (*self._shared_problems, *self._missing(own, bounds))
        return Examples(_sets(bounds), tuple(problems), "docstring")

    def others(self, project: str | None) -> Examples:
        """Return the first source after the docstring's section with all arguments."""
        examples = Examples()
        if self.shared.sets and self.signature.traced_by_class:
            examples = self.of_class()
        if not examples.sets and project is not None:
            examples = self.of_project(project, examples.problems)
        if examples.sets or examples.source == "project":
            return examples
        if any(p.name != self.signature.self_name for p in self.signature.required):
            head = DeclaredSet("", self.signature.function.name_range)
            annotated = self._bind(Layers(self.shared.sets[:1], (head,))).set
            if annotated is not None:
                return Examples((annotated,), examples.problems, "annotations")
        return examples

    def of_class(self) -> Examples:
        """Return the class's sets with all arguments; a method that needs more is no problem."""
        sets = self.shared.sets
        bounds = [self._bind(Layers(_chain(sets, declared.name), ())) for declared in sets]
        wrong = [p for b in bounds if not b.missing for p in (*b.problems, *b.shared_problems)]
        problems = (*self._shared_problems, *wrong)
        return Examples(_sets(bounds), problems, "class" if _sets(bounds) or problems else "none")

    def of_project(self, text: str, before: tuple[Problem, ...]) -> Examples:
        """Return the project's entry; its problems are JX909, with ranges in its text."""
        declared = read_project(text)
        bounds = self._bound(declared)
        own = [*declared.problems, *(p for b in bounds for p in b.problems)]
        own += self._missing(declared, bounds)
        problems = [
            *before,
            *(problem(PROJECT_EXAMPLE, p.range, p.message, p.help) for p in own),
            *(p for b in bounds for p in b.shared_problems),
        ]
        return Examples(_sets(bounds), tuple(problems), "project")

    def of_outside(self, outside: Sequence[OutsideSet], before: Examples) -> Examples:
        """Return the calls of the best origin that has some which the function still takes.

        A call that no longer fits the function's parameters is left out without a problem.
        """
        better = [call.origin for call in outside if call.is_better or call.is_newer]
        refused = self.signature.function.refused
        for origin in (*better, *_OUTSIDE):
            calls = [call for call in outside if call.origin == origin]
            if any(call.is_newer for call in calls):
                calls += [replace(old, label=_OLD) for old in outside if old.origin == "recorded"]
            if refused:
                # A nested function exists only in a run: there it has all that it is called with.
                is_nested = refused == "nested"
                calls = [call for call in calls if is_nested and call.dry_call is not None]
            if sets := [made for made in map(self.of_call, calls) if made is not None]:
                names = [made.name for made in sets]
                unique = tuple(
                    made if number == 1 else replace(made, name=f"{made.name} {number}")
                    for at, made in enumerate(sets)
                    for number in (names[: at + 1].count(made.name),)
                )
                return Examples(unique, before.problems, origin)
        return before

    def of_call(self, call: OutsideSet) -> ExampleSet | None:
        """Return a call as a set, whose examples all have their place at the function."""
        function = self.signature.function
        place = function.name_range
        declared = read_project(call.text) if call.text else _NOTHING
        if len(declared.sets) != 1:
            return None
        sources = self
        if call.dry_call is not None:
            passed = {line.name for line in declared.sets[0].examples}
            kept = tuple(p for p in function.parameters if p.name in passed)
            signature = Signature(replace(function, parameters=kept))
            sources = replace(self, signature=signature, shared=Declared())
        (bound,) = sources._bound(declared)
        if (made := bound.set) is None or bound.problems:
            return None
        names = tuple(argument.name for argument in made.arguments)
        if call.origin == "proposed":
            assumed = (*(names or ("",)), *call.assumed)
        elif call.sizes:
            assumed = call.assumed
        else:
            assumed = tuple(name for name in names if name in call.assumed)
        return replace(
            made,
            name=call.label,
            arguments=tuple(
                replace(argument, spec=replace(argument.spec, keeps_numbers=call.keeps_numbers))
                if isinstance(argument.spec, ValueSpec)
                else argument
                for argument in made.arguments
            ),
            may_fail=call.may_fail,
            assumed=assumed,
            outside=call,
            dry_call=call.dry_call,
            expects=(),
            line=place.start.line,
            places=tuple((name, place) for name, _ in made.places),
            axis_places=tuple((name, place) for name, _ in made.axis_places),
        )

    def _bound(self, own: Declared) -> list[Bound]:
        """Bind sets, each over the first one and those of the class."""
        return [
            self._bind(Layers(_chain(self.shared.sets, d.name), _chain(own.sets, d.name, d)))
            for d in own.sets
        ]

    def _bind(self, layers: Layers) -> Bound:
        return bind(self.signature, layers, self.sizes, self.mesh)

    def _missing(self, own: Declared, bounds: list[Bound]) -> Iterator[Problem]:
        """Report each missing argument once, at the first set that lacks it."""
        reported: set[str] = set()
        for declared, bound in zip(own.sets, bounds, strict=True):
            unreported = [argument for argument in bound.missing if argument.name not in reported]
            reported.update(argument.name for argument in unreported)
            yield from missing_problems(self.signature, unreported, declared.heading)

    @property
    def _shared_problems(self) -> list[Problem]:
        return [*self.shared.problems, *(p for d in self.shared.sets for p in d.problems)]


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
