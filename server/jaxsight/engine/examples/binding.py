"""Puts one example set together: which line gives which parameter, every size a number, what is missing.

Lines are bound in layers, later ones over earlier ones: the class's section, the first set of the function, then
the set itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.engine.answers import Severity
from jaxsight.engine.examples.annotations import example_of
from jaxsight.engine.examples.expressions import Expression
from jaxsight.engine.examples.lines import DeclaredSet, Given
from jaxsight.engine.examples.notation import (
    Node,
    Tree,
    is_literal,
    names_in,
    sizes_of,
    to_spec,
)
from jaxsight.engine.examples.problems import (
    CONFLICT,
    MALFORMED,
    MISSING_ARGUMENT,
    UNKNOWN_ARGUMENT,
    UNKNOWN_SIZE,
    Malformed,
    Problem,
    nearest,
    problem,
)
from jaxsight.engine.examples.sets import ExampleSet
from jaxsight.engine.examples.signature import Signature
from jaxsight.engine.examples.sizes import Sizes
from jaxsight.engine.text import Range
from jaxsight.tracer import protocol


@dataclass(frozen=True, slots=True)
class Layers:
    """The sets that one set is made of, weakest first: `shared` of the class, `own` of the function."""

    shared: tuple[DeclaredSet, ...]
    own: tuple[DeclaredSet, ...]

    @property
    def all(self) -> tuple[DeclaredSet, ...]:
        return (*self.shared, *self.own)

    @property
    def last(self) -> DeclaredSet:
        return self.all[-1]


@dataclass(frozen=True, slots=True)
class Missing:
    """A parameter that nothing gives; `sizes` are those that its annotation would give it with."""

    name: str
    sizes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """The outcome: a set when nothing is missing or wrong. `shared_problems` lie in the class's docstring."""

    set: ExampleSet | None
    missing: tuple[Missing, ...]
    problems: tuple[Problem, ...]
    shared_problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """What a parameter gets, and where that stands."""

    value: Node | Expression
    range: Range
    shared: bool


@dataclass(slots=True)
class _Binding:
    signature: Signature
    sizes: Sizes
    values: dict[str, _Value] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    shared_problems: list[Problem] = field(default_factory=list)
    expression_names: set[str] = field(default_factory=set)
    used_sizes: set[str] = field(default_factory=set)
    arguments: list[protocol.Argument] = field(default_factory=list)
    places: list[tuple[str, Range]] = field(default_factory=list)

    def report(self, found: Problem, *, shared: bool) -> None:
        (self.shared_problems if shared else self.problems).append(found)


def bind(signature: Signature, layers: Layers, sizes: Mapping[str, int]) -> Bound:
    """Put the layers together for a function; `sizes` are the settings'."""
    defined = {d.name: d.size for layer in layers.all for d in layer.sizes}
    binding = _Binding(signature, Sizes(defined, sizes))
    for layer in layers.shared:
        for given in layer.given:
            if given.stars == 0 and given.name in signature.plain:
                binding.values[given.name] = _Value(given.value, given.value.range, shared=True)
    for layer in layers.own:
        binding.problems += layer.problems
        for given in layer.given:
            _place(binding, given)
    missing = _fill(binding, frozenset().union(*(layer.spoiled for layer in layers.all)))
    for name in dict.fromkeys((*signature.slots, *binding.values)):
        if name in binding.values:
            _argument(binding, name, binding.values[name])
    numbers = _numbers(binding, layers)
    wrong = any(p.severity is Severity.ERROR for p in (*binding.problems, *binding.shared_problems))
    made: ExampleSet | None = None
    if not wrong and not missing:
        names = binding.expression_names
        made = ExampleSet(
            layers.last.name,
            tuple(binding.arguments),
            numbers,
            None,
            layers.last.expects,
            layers.last.heading.start.line,
            tuple(sorted(names - {name for name, _ in numbers})),
            tuple(binding.places),
        )
    return Bound(made, missing, tuple(binding.problems), tuple(binding.shared_problems))


def _place(binding: _Binding, given: Given) -> None:
    """Bind a line of the function's own to the parameter that it names."""
    signature = binding.signature
    name, stars = given.name, given.stars
    value = _Value(given.value, given.value.range, shared=False)
    if stars == 0 and name in signature.plain:
        if name in signature.function.static_names and _holds_array(given.value):
            message = (
                f"`{name}` is static, so it cannot be an array: give a literal, or `{name} = …`"
            )
            binding.problems.append(problem(MALFORMED, given.value.range, message))
        binding.values[name] = value
    elif stars == 1 and name == signature.variadic:
        if isinstance(given.value, Tree) and given.value.kind != "dict":
            binding.values["*"] = value
        else:
            message = f"`*{name}` takes a tuple of examples: `*{name}: (f32[8], f32[8])`"
            binding.problems.append(problem(MALFORMED, given.value.range, message))
    elif stars == 2 and name == signature.keywords:
        _place_keywords(binding, given)
    elif stars == 0 and name in (signature.variadic, signature.keywords):
        written = f"*{name}" if name == signature.variadic else f"**{name}"
        display = "(f32[8], f32[8])" if name == signature.variadic else "{'a': f32[8]}"
        message = f"`{name}` collects arguments: write `{written}: {display}`"
        binding.problems.append(problem(UNKNOWN_ARGUMENT, given.range, message))
    elif stars == 0 and name == signature.class_parameter:
        message = f"`{name}` is the class itself and needs no example"
        binding.problems.append(problem(UNKNOWN_ARGUMENT, given.range, message))
    elif stars == 0 and signature.keywords is not None:
        binding.values[name] = value
    else:
        binding.problems.append(problem(UNKNOWN_ARGUMENT, given.range, _unknown(signature, given)))


def _place_keywords(binding: _Binding, given: Given) -> None:
    tree = given.value
    if not isinstance(tree, Tree) or tree.kind != "dict":
        message = f"`**{given.name}` takes a dict of examples: `**{given.name}: {{'a': f32[8]}}`"
        binding.problems.append(problem(MALFORMED, tree.range, message))
        return
    for key, child in zip(tree.keys, tree.children, strict=True):
        name = key[1:-1]
        if key[0] not in "'\"" or not name.isidentifier():
            message = f"the keys of `**{given.name}` are names in quotes, not {key}"
            binding.problems.append(problem(MALFORMED, given.range, message))
        elif name in binding.signature.plain:
            message = f"`{name}` is a parameter of its own: give it on its own line"
            binding.problems.append(problem(CONFLICT, given.range, message))
        else:
            binding.values[name] = _Value(child, child.range, shared=False)


def _unknown(signature: Signature, given: Given) -> str:
    shown = "*" * given.stars + given.name
    names = [p.name for p in signature.parameters]
    function = signature.function.qualname
    near = nearest(given.name, names)
    if near is not None:
        return f"`{function}` has no parameter `{shown}`: did you mean `{near}`?"
    if not names:
        return f"`{function}` has no parameter `{shown}`: it takes none"
    return f"`{function}` has no parameter `{shown}`: it has {', '.join(f'`{n}`' for n in names)}"


def _holds_array(value: Node | Expression) -> bool:
    return not isinstance(value, Expression) and not is_literal(value)


def _fill(binding: _Binding, spoiled: frozenset[str]) -> tuple[Missing, ...]:
    """Take from annotations what no line gives; returns the parameters that nothing gives."""
    missing: list[Missing] = []
    for parameter in binding.signature.required:
        if parameter.name in binding.values or parameter.name in spoiled:
            continue
        node = example_of(parameter.annotation)
        if node is None:
            missing.append(Missing(parameter.name))
            continue
        names = [name for size in sizes_of(node) for name in names_in(size)]
        unknown = [name for name in dict.fromkeys(names) if not binding.sizes.knows(name)]
        try:
            to_spec(node, binding.sizes.value)
        except Malformed:
            missing.append(Missing(parameter.name, tuple(unknown)))
        else:
            binding.values[parameter.name] = _Value(node, parameter.range, shared=False)
    return tuple(missing)


def _argument(binding: _Binding, name: str, bound: _Value) -> None:
    """Add a parameter's argument, every item of `*args` as one of its own."""
    try:
        match name, bound.value:
            case "*", Tree(_, children):
                for number, child in enumerate(children):
                    _add(binding, f"{binding.signature.variadic}[{number}]", child, child.range)
            case _, value:
                _add(binding, name, value, bound.range)
    except Malformed as malformed:
        binding.report(malformed.problem, shared=bound.shared)


def _add(binding: _Binding, name: str, value: Node | Expression, range: Range) -> None:
    spec: protocol.InputSpec
    match value:
        case Expression(source, names):
            binding.expression_names.update(names)
            binding.used_sizes.update(names)
            spec = protocol.ValueSpec(source, literal=False)
        case node:
            for size in sizes_of(node):
                binding.used_sizes |= binding.sizes.used(size)
            spec = to_spec(node, binding.sizes.value)
    binding.arguments.append(protocol.Argument(name, spec))
    binding.places.append((name, range))


def _numbers(binding: _Binding, layers: Layers) -> tuple[tuple[str, int], ...]:
    """The sizes that the set's expressions may use: all that it defines, and those of elsewhere that it does use."""
    sizes = binding.sizes
    numbers: dict[str, int] = {}
    layered = [(d, layer in layers.own) for layer in layers.all for d in layer.sizes]
    for definition, own in layered:
        if not own and definition.name not in binding.used_sizes:
            continue
        try:
            numbers[definition.name] = sizes.value(sizes.defined[definition.name])
        except Malformed as malformed:
            binding.report(malformed.problem, shared=not own)
    for name in sorted(binding.used_sizes):
        if name not in sizes.defined and name in sizes.given:
            numbers[name] = sizes.given[name]
    return tuple(numbers.items())


def missing_problems(
    signature: Signature, missing: Sequence[Missing], heading: Range
) -> list[Problem]:
    """What to say of parameters without example, at the heading of the set that lacks them."""
    problems: list[Problem] = []
    if any(one.name == signature.self_name for one in missing):
        message = (
            f"`{signature.self_name}` has no example: add `{signature.self_name} = {signature.class_name}(…)` here,"
            f" or in an `Example inputs:` section of the docstring of `{signature.class_name}`"
        )
        problems.append(problem(MISSING_ARGUMENT, heading, message))
    rest = [one for one in missing if one.name != signature.self_name]
    sizes = dict.fromkeys(size for one in rest for size in one.sizes)
    if sizes:
        names = _listed([one.name for one in rest if one.sizes])
        where = ", ".join(f"{size}=…" for size in sizes)
        known = "is not known" if len(sizes) == 1 else "are not known"
        message = f"{_listed(sizes)} in the annotation of {names} {known}: add `where {where}`"
        problems.append(problem(UNKNOWN_SIZE, heading, message))
    if bare := [one.name for one in rest if not one.sizes]:
        have = "has" if len(bare) == 1 else "have"
        message = f"{_listed(bare)} {have} no example: add `{', '.join(bare)}: f32[8, 8]`"
        problems.append(problem(MISSING_ARGUMENT, heading, message))
    return problems


def _listed(names: Iterable[str]) -> str:
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}" if first else last
