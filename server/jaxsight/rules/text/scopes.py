"""The scope of a function: what its values are made from, which arguments and which arrays.

Nothing is run. A source that is not certain is left out: sizes, types, results of functions that
describe values rather than compute with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.statements import full_name
from jaxsight.rules.text.transformations import transformation

Source = tuple[str, str]
"""A function and its parameter; an empty parameter for arrays that the function computes."""
Sources = frozenset[Source]

NOTHING: Sources = frozenset()

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_STATIC_ATTRIBUTES = frozenset(
    {
        "shape", "ndim", "dtype", "size", "aval", "sharding", "weak_type", "itemsize", "nbytes",
        "name", "names", "config", "cfg", "apply_fn", "tx", "at", "device", "devices", "spec",
    }
)  # fmt: skip
_STATIC_CALLS = frozenset(
    {
        "len", "type", "isinstance", "issubclass", "hasattr", "callable", "id", "range", "int",
        "float", "bool", "complex", "dir", "hash", "input", "open", "print", "iter", "vars",
    }
)  # fmt: skip
_STATIC_METHODS = frozenset({"item", "tolist", "keys", "tobytes", "devices", "is_ready"})
_DESCRIBING = re.compile(
    r"(^|_)(shapes?|sizes?|names?|specs?|structs?|structure|types?|dtypes?|counts?|len|length|info|"
    r"summary|describe|is|has|num|ndim|treedef|keystr|axis|axes|dims?|config)(_|$)"
)
"""Names of functions whose results are no arrays."""
_STATIC_JAX = re.compile(
    r"(jax\.numpy|numpy)\.(shape|ndim|size|dtype|result_type|issubdtype|iinfo|finfo|isdtype|"
    r"promote_types|can_cast)|"
    r"jax\.(devices|local_devices|device_count|local_device_count|process_index|process_count|"
    r"default_backend|eval_shape|make_jaxpr|ShapeDtypeStruct|typeof|named_scope|jit|vmap|grad|"
    r"value_and_grad|pmap|checkpoint|remat|disable_jit|ensure_compile_time_eval|debug\..*|"
    r"profiler\..*|config\..*|core\..*|dtypes\..*|sharding\..*|tree\.structure|"
    r"tree_util\.tree_structure|tree_util\.keystr|lax\.axis_size|typing\..*|errors\..*)"
)
_COMPUTES = re.compile(r"jax\.(numpy|lax|random|nn|scipy|image|ops|device_put)\b")
"""Functions whose results are arrays of the running trace."""
MAPS = frozenset(
    {
        "jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map", "map", "jax.tree.map_with_path",
        "jax.tree_util.tree_map_with_path", "functools.reduce", "jax.tree.reduce",
    }
)  # fmt: skip
"""Functions that call their first argument on the others."""
Node = tuple[ast.AST, tuple[ast.AST, ...]]


@dataclass(eq=False, slots=True)
class NameScope:
    """A function, or the module (`node` is `None`)."""

    name: str
    """`Model.step`, `outer.<locals>.inner`; empty for the module."""
    node: FunctionNode | None
    parent: NameScope | None
    owner: str
    """The class that a method is of, by its name; empty otherwise."""
    parameters: tuple[str, ...]
    imports: Mapping[str, str]
    bound: set[str] = field(default_factory=set)
    declared: dict[str, str] = field(default_factory=dict)
    """Names that are `global` or `nonlocal`."""
    functions: dict[str, NameScope] = field(default_factory=dict)
    """Functions defined in it, by name."""
    lambdas: dict[ast.Lambda, NameScope] = field(default_factory=dict)
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    """Names that are bound once, to calls: `step = jax.jit(f)`."""
    env: dict[str, Sources] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    """Its nodes without those of inner functions, each with the conditions and `with` around it."""
    memory: dict[int, Sources] | None = None
    """What is known of expressions, once all names are."""

    @property
    def itself(self) -> str:
        """What a method calls its object; empty for others."""
        first = self.parameters[:1]
        return first[0] if self.owner and first and first[0] in ("self", "cls") else ""

    def enclosing(self) -> Iterator[NameScope]:
        """Yield the scope and those around it, the module's last."""
        scope: NameScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def holder(self, name: str) -> NameScope:
        """Return the scope that binds a name; the module's for globals, builtins and imports."""
        *functions, module = self.enclosing()
        if self.declared.get(name) == "global":
            return module
        binding = (s for s in functions if name in s.bound and name not in s.declared)
        return next(binding, module)

    def full(self, node: ast.expr) -> str:
        """Return the full name that an expression has; nothing for what is bound in functions."""
        name = dotted(node)
        if not name:
            return ""
        is_local = self.holder(name.partition(".")[0]).node is not None
        return "" if is_local else full_name(name, self.imports)

    def sources(self, node: ast.AST | None) -> Sources:
        """Return what an expression's value is made from."""
        if self.memory is None:
            return self._sources(node)
        sources = self.memory.get(id(node))
        if sources is None:
            sources = self.memory[id(node)] = self._sources(node)
        return sources

    def _sources(self, node: ast.AST | None) -> Sources:
        match node:
            case None | ast.Constant():
                return NOTHING
            case ast.Name(id=name):
                return self.holder(name).env.get(name, NOTHING)
            case ast.Attribute(value=value, attr=attr):
                if attr in _STATIC_ATTRIBUTES:
                    return NOTHING
                return self.sources(value) | self.env.get(dotted(node), NOTHING)
            case ast.Compare(ops=ops) if not all(isinstance(op, _COMPARISONS) for op in ops):
                return NOTHING  # `x is None`, `key in params`
            case ast.Call():
                return self._of_call(node)
            case ast.Subscript(value=value, slice=index):
                return self.sources(value) | self.sources(index)
            case ast.Lambda():
                return NOTHING
            case ast.IfExp(body=body, orelse=orelse):
                return self.sources(body) | self.sources(orelse)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.sources(node.elt)
            case ast.DictComp():
                return self.sources(node.value)
            case _:
                return self._of_all(ast.iter_child_nodes(node))

    def _of_all(self, nodes: Iterable[ast.AST]) -> Sources:
        return frozenset(source for node in nodes for source in self.sources(node))

    def _of_call(self, call: ast.Call) -> Sources:
        function, full = call.func, self.full(call.func)
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        last = full.rpartition(".")[2] or getattr(function, "attr", "")
        if full in _STATIC_CALLS or _STATIC_JAX.fullmatch(full) or last in _STATIC_METHODS:
            return NOTHING
        if full in MAPS:
            mapped = call.args[0] if call.args else None
            if isinstance(mapped, ast.Lambda):
                scope = self.lambdas.get(mapped)
                inner = scope.sources(mapped.body) if scope is not None else NOTHING
                mapped_sources = self._of_all(call.args[1:])
                own = {node for node in inner if scope is not None and node[0] == scope.name}
                return (inner - own) | (mapped_sources if own else NOTHING)
            if mapped is None or self._describes(mapped):
                return NOTHING
            return self._of_all(arguments[1:])
        sources = self._of_all(arguments)
        if isinstance(function, ast.Call):  # jax.grad(f)(x)
            if transformation(function.func, self.imports):
                return sources | {(self.name, "")}
            return sources | self.sources(function)
        if _COMPUTES.match(full):
            return sources | {(self.name, "")}
        if self._describes(function):
            return NOTHING
        return sources | (
            self.sources(function.value) if isinstance(function, ast.Attribute) else NOTHING
        )

    def _describes(self, function: ast.expr) -> bool:
        full = self.full(function)
        last = full.rpartition(".")[2] or getattr(function, "attr", getattr(function, "id", ""))
        static = full in _STATIC_CALLS or _STATIC_JAX.fullmatch(full) is not None
        jax = full.startswith(("jax.", "numpy."))
        return static or (not jax and _DESCRIBING.search(last) is not None)
