"""Functions of a statement with what their values are made from: which arguments, which arrays.

Nothing is run. A source that is not certain is left out: sizes, types, results of functions that
describe values rather than compute with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jaxsight.rules.text.statements import dotted, full_name
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
_WITH_STRUCTURE = frozenset(
    {
        "jax.tree.flatten", "jax.tree_util.tree_flatten", "jax.tree_flatten",
        "jax.flatten_util.ravel_pytree", "equinox.partition",
        "jax.tree_util.tree_flatten_with_path", "jax.tree.flatten_with_path",
    }
)  # fmt: skip
"""Functions that return arrays, and what is known of them while tracing."""
_FILLS = frozenset({"append", "extend", "insert", "appendleft", "add"})
"""Methods that fill a container."""
MAPS = frozenset(
    {
        "jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map", "map", "jax.tree.map_with_path",
        "jax.tree_util.tree_map_with_path", "functools.reduce", "jax.tree.reduce",
    }
)  # fmt: skip
"""Functions that call their first argument on the others."""


Node = tuple[ast.AST, tuple[ast.AST, ...]]


@dataclass(eq=False, slots=True)
class Scope:
    """A function, or the module (`node` is `None`)."""

    name: str
    """`Model.step`, `outer.<locals>.inner`; empty for the module."""
    node: FunctionNode | None
    parent: Scope | None
    owner: str
    """The class that a method is of, by its name; empty otherwise."""
    parameters: tuple[str, ...]
    imports: Mapping[str, str]
    bound: set[str] = field(default_factory=set)
    declared: dict[str, str] = field(default_factory=dict)
    """Names that are `global` or `nonlocal`."""
    functions: dict[str, Scope] = field(default_factory=dict)
    """Functions defined in it, by name."""
    lambdas: dict[ast.Lambda, Scope] = field(default_factory=dict)
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

    def holder(self, name: str) -> Scope | None:
        """Return the scope that binds a name, the module's for globals; `None` for builtins.

        Imported names have no scope either.
        """
        scope: Scope | None = self
        if self.declared.get(name) == "global":
            while scope is not None and scope.node is not None:
                scope = scope.parent
            return scope
        while scope is not None:
            inside = name in scope.bound and name not in scope.declared
            if scope.node is None or inside:
                return scope
            scope = scope.parent
        return None

    def full(self, node: ast.expr) -> str:
        """Return the full name that an expression has; nothing for what is bound in functions."""
        name = dotted(node)
        if not name:
            return ""
        holder = self.holder(name.partition(".")[0])
        if holder is not None and holder.node is not None:
            return ""
        return full_name(name, self.imports)

    def sources(self, node: ast.AST | None) -> Sources:
        """Return what an expression's value is made from."""
        if self.memory is None:
            return self._sources(node)
        known = self.memory.get(id(node))
        if known is None:
            known = self.memory[id(node)] = self._sources(node)
        return known

    def _sources(self, node: ast.AST | None) -> Sources:
        match node:
            case None | ast.Constant():
                return NOTHING
            case ast.Name(id=name):
                holder = self.holder(name)
                return holder.env.get(name, NOTHING) if holder is not None else NOTHING
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
        arguments = [*call.args, *(each.value for each in call.keywords)]
        last = full.rpartition(".")[2] or getattr(function, "attr", "")
        if full in _STATIC_CALLS or _STATIC_JAX.fullmatch(full) or last in _STATIC_METHODS:
            return NOTHING
        if full in MAPS:
            mapped = call.args[0] if call.args else None
            if isinstance(mapped, ast.Lambda):
                scope = self.lambdas.get(mapped)
                inner = scope.sources(mapped.body) if scope is not None else NOTHING
                given = self._of_all(call.args[1:])
                own = {each for each in inner if scope is not None and each[0] == scope.name}
                return (inner - own) | (given if own else NOTHING)
            if mapped is None or self._describes(mapped):
                return NOTHING
            return self._of_all(arguments[1:])
        found = self._of_all(arguments)
        if isinstance(function, ast.Call):  # jax.grad(f)(x)
            if transformation(function.func, self.imports):
                return found | {(self.name, "")}
            return found | self.sources(function)
        if _COMPUTES.match(full):
            return found | {(self.name, "")}
        if self._describes(function):
            return NOTHING
        return found | (
            self.sources(function.value) if isinstance(function, ast.Attribute) else NOTHING
        )

    def _describes(self, function: ast.expr) -> bool:
        full = self.full(function)
        last = full.rpartition(".")[2] or getattr(function, "attr", getattr(function, "id", ""))
        static = full in _STATIC_CALLS or _STATIC_JAX.fullmatch(full) is not None
        jax = full.startswith(("jax.", "numpy."))
        return static or (not jax and _DESCRIBING.search(last) is not None)


def scopes_of(tree: ast.Module, imports: Mapping[str, str]) -> list[Scope]:
    """Return the module's scope as far as a statement is concerned, then all functions in it."""
    module = Scope("", None, None, "", (), imports)
    found = [module]
    _enter(tree, module, "", "", found)
    for scope in found:
        scope.nodes = list(_own_nodes(scope, tree))
    binding = [
        (scope, [node for node, _ in scope.nodes if isinstance(node, _BINDING)]) for scope in found
    ]
    for _ in range(3):  # values that loops carry
        for scope, nodes in binding:
            _bind(scope, nodes)
    for scope in found:
        scope.memory = {}
    return found


def _enter(node: ast.AST, scope: Scope, prefix: str, owner: str, found: list[Scope]) -> None:
    """Make the scopes of the functions inside a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            _function(child, scope, prefix, owner, found)
        elif isinstance(child, ast.ClassDef):
            scope.bound.add(child.name)
            _enter(child, scope, f"{prefix}{child.name}.", f"{prefix}{child.name}", found)
        else:
            _names(child, scope)
            _enter(child, scope, prefix, owner, found)


def _function(
    node: FunctionNode, scope: Scope, prefix: str, owner: str, found: list[Scope]
) -> None:
    args = node.args
    given = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    names = tuple(each.arg for each in (*given, args.vararg, args.kwarg) if each is not None)
    own = f"<lambda {node.lineno}:{node.col_offset}>" if isinstance(node, ast.Lambda) else node.name
    name = f"{prefix}{own}"
    inner = Scope(name, node, scope, owner, names, scope.imports)
    inner.bound |= set(names)
    found.append(inner)
    if isinstance(node, ast.Lambda):
        scope.lambdas[node] = inner
    else:
        for each in node.decorator_list:
            _enter(ast.Expr(each), scope, prefix, "", found)
        if not owner:
            scope.bound.add(own)
            scope.functions[own] = inner
    for default in (*args.defaults, *args.kw_defaults):
        if default is not None:
            _enter(ast.Expr(default), scope, prefix, "", found)
    # What is entered is a node around the body: a function in it is a child then.
    body = ast.Expr(node.body) if isinstance(node, ast.Lambda) else ast.Module(node.body, [])
    _enter(body, inner, f"{name}.<locals>.", "", found)


def _names(node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            scope.bound.add(name)
        case ast.Global(names=names):
            scope.declared.update(dict.fromkeys(names, "global"))
        case ast.Nonlocal(names=names):
            scope.declared.update(dict.fromkeys(names, "nonlocal"))
        case ast.ExceptHandler(name=str(name)):
            scope.bound.add(name)
        case ast.Import(names=names) | ast.ImportFrom(names=names) if scope.node is not None:
            pass  # what a function imports has its full name too
        case _:
            pass


def _own_nodes(scope: Scope, tree: ast.Module) -> Iterator[Node]:
    start: list[ast.AST]
    if scope.node is None:
        start = list(tree.body)
    else:
        start = [scope.node.body] if isinstance(scope.node, ast.Lambda) else list(scope.node.body)
    waiting: list[Node] = [(each, ()) for each in reversed(start)]
    while waiting:
        node, around = waiting.pop()
        inside = around
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner: list[ast.AST] = [*node.decorator_list]
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, ast.ClassDef):
            inner = [
                each
                for each in node.body
                if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        else:
            yield node, around
            inner = list(ast.iter_child_nodes(node))
            if isinstance(node, ast.If | ast.IfExp | ast.With):
                inside = (*around, node)
        waiting += [(each, inside) for each in reversed(inner)]


_BINDING = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.NamedExpr,
    ast.withitem,
    ast.Call,
    ast.For,
    ast.AsyncFor,
    ast.comprehension,
)


def _bind(scope: Scope, nodes: Iterable[ast.AST]) -> None:
    """Find out what the names of a scope are made from."""
    for name in scope.parameters:
        if name != scope.itself:
            scope.env[name] = frozenset({(scope.name, name)})
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _assign(scope, target, value)
                if len(targets) == 1 and isinstance(targets[0], ast.Name):
                    scope.aliases.setdefault(targets[0].id, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _assign(scope, target, value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                _add(scope, name, scope.sources(value))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                _add(scope, name, scope.sources(value))
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                _assign(scope, target, value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if (
                attr in _FILLS and name in scope.bound
            ):
                _add(scope, name, scope.sources(ast.Tuple(node.args)))
            case ast.For(target=target, iter=iterable) | ast.AsyncFor(target=target, iter=iterable):
                _iterate(scope, target, iterable)
            case ast.comprehension(target=target, iter=iterable):
                _iterate(scope, target, iterable)
            case _:
                pass


def _assign(scope: Scope, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                _assign(scope, one, other)
        else:
            called = scope.full(value.func) if isinstance(value, ast.Call) else ""
            with_structure = called in _WITH_STRUCTURE
            for each in target.elts[:1] if with_structure else target.elts:
                _assign(scope, each, value)
    elif isinstance(target, ast.Starred):
        _assign(scope, target.value, value)
    elif isinstance(target, ast.Name):
        _add(scope, target.id, scope.sources(value))
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        name = f"{target.value.id}.{target.attr}"
        scope.env[name] = scope.env.get(name, NOTHING) | scope.sources(value)
    elif (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id in scope.bound
    ):  # what a local list or dict holds
        _add(scope, target.value.id, scope.sources(value))


def _iterate(scope: Scope, target: ast.expr, iterable: ast.expr) -> None:
    """Bind what a loop counts: indices and keys are known while tracing."""
    full = scope.full(iterable.func) if isinstance(iterable, ast.Call) else ""
    match iterable, target:
        case ast.Call(args=[inner, *_]), ast.Tuple(elts=[_, item]) if full == "enumerate":
            _iterate(scope, item, inner)
        case ast.Call(args=inners), ast.Tuple(elts=items) if full == "zip":
            for each, item in zip(inners, items, strict=False):
                _iterate(scope, item, each)
        case ast.Call(func=ast.Attribute(value=value, attr="items")), ast.Tuple(elts=[_, item]):
            _assign(scope, item, value)
        case ast.Name(id=name), _ if _is_mapping(scope, name, target):
            pass  # the keys are known
        case _:
            _assign(scope, target, iterable)


_MAPPING = re.compile(
    r"(params?|state|dict|tree|batch|config|cfg|kwargs|cache|metrics|grads?|gradients|data|weights|"
    r"variables|opt|stats|names|keys|mapping|model|aux|info|layers)(_|$)|^(d|p|m)$"
)
"""Names of what may be a dict."""


def _is_mapping(scope: Scope, name: str, target: ast.expr) -> bool:
    """Whether a name may be a dict, so that a loop over it counts keys."""
    holder = scope.holder(name)
    made = holder.aliases.get(name) if holder is not None else None
    if isinstance(made, ast.List | ast.Tuple | ast.ListComp):
        return False
    if _MAPPING.search(name) or isinstance(made, ast.Dict | ast.DictComp):
        return True
    counted = target.id if isinstance(target, ast.Name) else ""
    for node, _ in scope.nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=whole), slice=ast.Name(id=index)):
                if whole == name and index == counted:
                    return True
            case ast.Subscript(value=ast.Name(id=whole), slice=ast.Constant(value=str())):
                if whole == name:
                    return True
            case ast.Attribute(value=ast.Name(id=whole), attr="items" | "keys" | "values"):
                if whole == name:
                    return True
            case _:
                pass
    return False


def _add(scope: Scope, name: str, sources: Sources) -> None:
    holder = scope.holder(name)
    if holder is not None:
        holder.env[name] = holder.env.get(name, NOTHING) | sources
