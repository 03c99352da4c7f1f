"""Bind the lines of an example set to the parameters of a function, and evaluate its sizes.

Lines are bound in layers, later ones over earlier ones: the class's section, the first set of the
function, then the set itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.examples.annotations import example_of
from jaxsight.examples.docstrings.lines import DeclaredSet, ExampleLine, Written
from jaxsight.examples.notation.parser import Expression
from jaxsight.examples.notation.shapes import NAME as MESH
from jaxsight.examples.notation.shapes import MeshAxes, Sizes, division_problem, to_mesh
from jaxsight.examples.notation.values import (
    Node,
    TreeNode,
    axes_of,
    is_literal,
    names_in,
    sizes_of,
    to_spec,
)
from jaxsight.examples.problems import (
    CONFLICT,
    MALFORMED,
    MISSING_ARGUMENT,
    UNKNOWN_ARGUMENT,
    UNKNOWN_SIZE,
    Malformed,
    Problem,
    listed,
    nearest,
    problem,
    quoted,
)
from jaxsight.examples.sets import ExampleSet
from jaxsight.rules import wording
from jaxsight.rules.finding import Severity
from jaxsight.source.definitions import Function, Parameter
from jaxsight.source.text import Range
from jaxsight.text.inert import clause
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.inputs import Argument, InputSpec, MeshSpec, ValueSpec

# The parameters that a function may have examples for, and those that it requires.


class Signature:
    """A function's parameters as a trace passes them: without the class of a class method."""

    def __init__(self, function: Function) -> None:
        self.function = function
        parameters = function.parameters
        bound = function.kind == "classmethod" and bool(parameters)
        self.class_parameter = parameters[0].name if bound else None
        self.parameters: tuple[Parameter, ...] = parameters[1:] if bound else parameters
        by_kind = {p.kind: p.name for p in self.parameters}
        self.variadic = by_kind.get("var_positional")
        self.keywords = by_kind.get("var_keyword")
        self.plain = {
            p.name: p for p in self.parameters if p.kind not in ("var_positional", "var_keyword")
        }
        method = function.kind in ("method", "property")
        self.self_name = parameters[0].name if method and parameters else None

    @property
    def slots(self) -> tuple[str, ...]:
        """The names that arguments are bound to, in signature order; `*` for those of `*args`."""
        return tuple(
            "*" if p.kind == "var_positional" else p.name
            for p in self.parameters
            if p.kind != "var_keyword"
        )

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters without a default."""
        return tuple(p for p in self.plain.values() if p.default is None)

    @property
    def class_name(self) -> str:
        return self.function.qualname.rpartition(".")[0].rpartition(".")[2]

    @property
    def traced_by_class(self) -> bool:
        """Whether the class's section alone is enough to trace a method.

        Special methods other than `__call__` need a section of their own.
        """
        name = self.function.qualname.rpartition(".")[2]
        return self.self_name is not None and (name == "__call__" or not name.startswith("__"))


_REMOVE = "remove this line"


@dataclass(frozen=True, slots=True)
class Layers:
    """The sets that one set consists of, weakest first: `shared` of the class, then `own`."""

    shared: tuple[DeclaredSet, ...]
    own: tuple[DeclaredSet, ...]

    @property
    def all(self) -> tuple[DeclaredSet, ...]:
        return (*self.shared, *self.own)

    @property
    def last(self) -> DeclaredSet:
        return self.all[-1]


@dataclass(frozen=True, slots=True)
class Lacking:
    """A parameter without example; `sizes` are the undefined ones of its annotation."""

    name: str
    sizes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """The outcome: a set, unless an example is missing or wrong.

    The ranges of `shared_problems` are in the class's docstring.
    """

    set: ExampleSet | None
    missing: tuple[Lacking, ...]
    problems: tuple[Problem, ...]
    shared_problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Value:
    """The example of a parameter, and its place."""

    value: Written
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
    arguments: list[Argument] = field(default_factory=list)
    places: list[tuple[str, Range]] = field(default_factory=list)
    mesh: Mesh | None = None
    mesh_is_default: bool = False
    mesh_source: str = ""
    axis_places: list[tuple[str, Range]] = field(default_factory=list)
    nodes: list[tuple[str, Node]] = field(default_factory=list)

    def report(self, problem: Problem, *, shared: bool) -> None:
        (self.shared_problems if shared else self.problems).append(problem)


def bind(
    signature: Signature, layers: Layers, sizes: Mapping[str, int], mesh: Mesh | None = None
) -> Bound:
    """Bind the layers for a function; `sizes` and `mesh` are those of the settings."""
    defined = {d.name: d.size for layer in layers.all for d in layer.sizes}
    binding = _Binding(signature, Sizes(defined, sizes))
    for layer in layers.shared:
        for line in layer.examples:
            if line.stars == 0 and line.name in signature.plain:
                binding.values[line.name] = _Value(line.value, line.value.range, shared=True)
    for layer in layers.own:
        binding.problems += layer.problems
        for line in layer.examples:
            _place(binding, line)
    spoiled: frozenset[str] = frozenset().union(*(layer.spoiled for layer in layers.all))
    missing = _fill(binding, spoiled)
    if MESH not in spoiled:
        _declare_mesh(binding, layers, mesh)
    for name in dict.fromkeys((*signature.slots, *binding.values)):
        if name in binding.values:
            _argument(binding, name, binding.values[name])
    numbers = _numbers(binding, layers)
    wrong = any(p.severity is Severity.ERROR for p in (*binding.problems, *binding.shared_problems))
    example_set: ExampleSet | None = None
    if not wrong and not missing:
        names = binding.expression_names
        example_set = ExampleSet(
            layers.last.name,
            tuple(binding.arguments),
            numbers,
            tuple(layers.last.expects),
            layers.last.heading.start.line,
            tuple(sorted(names - {name for name, _ in numbers})),
            tuple(binding.places),
            binding.mesh,
            binding.mesh_is_default,
            binding.mesh_source,
            tuple(binding.axis_places),
            nodes=tuple(binding.nodes),
            definitions=tuple(defined.items()),
        )
    return Bound(example_set, missing, tuple(binding.problems), tuple(binding.shared_problems))


def _place(binding: _Binding, line: ExampleLine) -> None:
    """Bind a line of the function's own section to the parameter that it names."""
    signature = binding.signature
    name, stars = line.name, line.stars
    value = _Value(line.value, line.value.range, shared=False)
    if stars == 0 and name in signature.plain:
        is_python = isinstance(line.value, Expression | MeshAxes) or is_literal(line.value)
        if name in signature.function.static_names and not is_python:
            message = f"static parameter {quoted(name)} cannot be an array"
            help = f"use a literal, or a Python expression: `{name} = …`"
            binding.problems.append(problem(MALFORMED, line.value.range, message, help))
        binding.values[name] = value
    elif stars == 1 and name == signature.variadic:
        if isinstance(line.value, TreeNode) and line.value.kind != "dict":
            binding.values["*"] = value
        else:
            message = f"{quoted(f'*{name}')} takes a tuple of examples"
            help = f"write `*{name}: (f32[8], f32[8])`"
            binding.problems.append(problem(MALFORMED, line.value.range, message, help))
    elif stars == 2 and name == signature.keywords:
        _place_keywords(binding, line)
    elif stars == 0 and name in (signature.variadic, signature.keywords):
        written = f"*{name}" if name == signature.variadic else f"**{name}"
        display = "(f32[8], f32[8])" if name == signature.variadic else "{'a': f32[8]}"
        kind = "positional" if name == signature.variadic else "keyword"
        message = f"{quoted(name)} collects {kind} arguments"
        help = f"write `{written}: {display}`"
        binding.problems.append(problem(UNKNOWN_ARGUMENT, line.range, message, help))
    elif stars == 0 and name == signature.class_parameter:
        message = f"{quoted(name)} is bound to the class and takes no example"
        binding.problems.append(problem(UNKNOWN_ARGUMENT, line.range, message, _REMOVE))
    elif (
        (name, stars) == (MESH, 0)
        and isinstance(line.value, MeshAxes | Expression)
        and (signature.keywords is None or isinstance(line.value, MeshAxes))
    ):
        pass  # `_declare_mesh` reads it
    elif stars == 0 and signature.keywords is not None:
        binding.values[name] = value
    else:
        binding.problems.append(_unknown(signature, line))


def _place_keywords(binding: _Binding, line: ExampleLine) -> None:
    tree = line.value
    write = f"write `**{line.name}: {{'a': f32[8]}}`"
    if not isinstance(tree, TreeNode) or tree.kind != "dict":
        message = f"{quoted(f'**{line.name}')} takes a dict of examples"
        binding.problems.append(problem(MALFORMED, tree.range, message, write))
        return
    for key, child in zip(tree.keys, tree.children, strict=True):
        name = key[1:-1]
        if key[0] not in "'\"" or not name.isidentifier():
            message = f"expected a quoted parameter name as key, found {quoted(key)}"
            binding.problems.append(problem(MALFORMED, line.range, message, write))
        elif name in binding.signature.plain:
            message = f"{quoted(name)} is a parameter and cannot be a key of `**{line.name}`"
            help = f"write its example on a line of its own: `{name}: …`"
            binding.problems.append(problem(CONFLICT, line.range, message, help))
        else:
            binding.values[name] = _Value(child, child.range, shared=False)


def _unknown(signature: Signature, line: ExampleLine) -> Problem:
    shown = "*" * line.stars + line.name
    names = [p.name for p in signature.parameters]
    message = f"{quoted(signature.function.qualname)} has no parameter {quoted(shown)}"
    near = nearest(line.name, names)
    if (line.name, line.stars) == (MESH, 0):
        help = "write the axes of a mesh with their sizes: `mesh: data=2, model=4`"
    elif near is not None:
        help = f"did you mean `{near}`?"
    elif names:
        help = f"use a parameter of the function: {', '.join(f'`{name}`' for name in names)}"
    else:
        help = _REMOVE
    return problem(UNKNOWN_ARGUMENT, line.range, message, help)


def _declare_mesh(binding: _Binding, layers: Layers, configured: Mesh | None) -> None:
    """Find the mesh of the set: the last one that a layer declares, else that of the settings.

    The latter applies if arrays are divided over axes, all of which it has.
    """
    lines = [
        (line, layer in layers.shared)
        for layer in layers.all
        for line in layer.examples
        if line.name == MESH and line.stars == 0
    ]
    line, shared = lines[-1] if lines else (None, False)
    match line:
        case ExampleLine(value=MeshAxes(axes) as mesh):
            try:
                binding.mesh = to_mesh(mesh, binding.sizes.value)
            except Malformed as malformed:
                binding.report(malformed.problem, shared=shared)
            for axis in axes:
                binding.used_sizes |= binding.sizes.used(axis.size)
            binding.axis_places.append((MESH, mesh.range))
        case ExampleLine(value=Expression(source, names) as expression):
            binding.mesh_source = source
            binding.expression_names.update(names)
            binding.used_sizes.update(names)
            binding.axis_places.append((MESH, expression.range))
        case _ if configured is not None:
            values = [bound.value for bound in binding.values.values()]
            nodes = [node for node in values if not isinstance(node, Expression | MeshAxes)]
            named = {axis.name for node in nodes for axis in axes_of(node)}
            if named and named <= dict(configured.axes).keys():
                binding.mesh, binding.mesh_is_default = configured, True


def _fill(binding: _Binding, spoiled: frozenset[str]) -> tuple[Lacking, ...]:
    """Take missing examples from annotations; return the parameters that still have none."""
    missing: list[Lacking] = []
    for parameter in binding.signature.required:
        if parameter.name in binding.values or parameter.name in spoiled:
            continue
        if (node := example_of(parameter.annotation)) is None:
            missing.append(Lacking(parameter.name))
            continue
        names = [name for size in sizes_of(node) for name in names_in(size)]
        unknown = [name for name in dict.fromkeys(names) if not binding.sizes.knows(name)]
        try:
            to_spec(node, binding.sizes.value)
        except Malformed:
            missing.append(Lacking(parameter.name, tuple(unknown)))
        else:
            binding.values[parameter.name] = _Value(node, parameter.range, shared=False)
    return tuple(missing)


def _argument(binding: _Binding, name: str, bound: _Value) -> None:
    """Add a parameter's argument, or one for each item of `*args`."""
    try:
        match name, bound.value:
            case "*", TreeNode(_, children):
                for number, child in enumerate(children):
                    _add(binding, f"{binding.signature.variadic}[{number}]", child, child.range)
            case _, value:
                _add(binding, name, value, bound.range)
    except Malformed as malformed:
        binding.report(malformed.problem, shared=bound.shared)


def _add(binding: _Binding, name: str, value: Written, range: Range) -> None:
    spec: InputSpec
    match value:
        case Expression(source, names):
            binding.expression_names.update(names)
            binding.used_sizes.update(names)
            spec = ValueSpec(source, literal=False)
        case MeshAxes():
            spec = MeshSpec()
        case node:
            for size in sizes_of(node):
                binding.used_sizes |= binding.sizes.used(size)
            spec = to_spec(node, binding.sizes.value)
            mesh = binding.mesh
            if mesh is not None and (wrong := division_problem(node, mesh, binding.sizes.value)):
                raise Malformed(wrong)
            binding.axis_places += [(f"{name}@{axis.name}", axis.range) for axis in axes_of(node)]
            binding.nodes.append((name, node))
    binding.arguments.append(Argument(name, spec))
    binding.places.append((name, range))


def _numbers(binding: _Binding, layers: Layers) -> tuple[tuple[str, int], ...]:
    """Return the sizes that the set's expressions may use.

    These are all sizes of the set, and those of the class and the settings that it uses.
    """
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
        if name not in sizes.defined and name in sizes.configured:
            numbers[name] = sizes.configured[name]
    return tuple(numbers.items())


def missing_problems(
    signature: Signature, missing: Sequence[Lacking], heading: Range
) -> list[Problem]:
    """Return problems for parameters without example, at the heading of the set."""
    problems: list[Problem] = []
    if any(argument.name == signature.self_name for argument in missing):
        message = f"no example for `{signature.self_name}`"
        help = (
            f"add `{signature.self_name} = {signature.class_name}(…)` here, or to an"
            f" `Example inputs:` section in the docstring of `{signature.class_name}`"
        )
        problems.append(problem(MISSING_ARGUMENT, heading, message, help))
    arguments = [argument for argument in missing if argument.name != signature.self_name]
    if sizes := dict.fromkeys(size for argument in arguments for size in argument.sizes):
        annotated = [argument.name for argument in arguments if argument.sizes]
        of = f"annotation{'s' * (len(annotated) > 1)} of {listed(annotated)}"
        undefined = f"size{'s' * (len(sizes) > 1)} {listed(sizes)}"
        help = f"add `where {', '.join(f'{size}=…' for size in sizes)}`"
        message = clause(f"undefined {undefined} in the {of}", wording.MOST)
        problems.append(problem(UNKNOWN_SIZE, heading, message, help))
    if bare := [argument.name for argument in arguments if not argument.sizes]:
        example = "data=2" if bare == [MESH] else "f32[8, 8]"
        help = f"add `{', '.join(bare)}: {example}`"
        problems.append(problem(MISSING_ARGUMENT, heading, f"no example for {listed(bare)}", help))
    return problems
