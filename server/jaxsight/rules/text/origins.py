"""What the values in functions are made from, which arguments and which arrays, while tracing.

A source that is not certain is left out: sizes, types, results of functions that describe values
rather than compute with them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.scopes import MAPS, NOTHING, NameScope, Sources
from jaxsight.rules.text.transformations import transformation
from jaxsight.source.abstract_interpretation.interpreter import (
    AbstractInterpreter,
    AbstractState,
    Comprehension,
)

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


class Origins:
    """What the expressions of a statement's functions are made from, found when it is first asked.

    Functions are interpreted one by one. What one of them binds, others may see at any time, so
    for them a variable is made from all that it is ever bound to.
    """

    def __init__(self, scopes: Sequence[NameScope], tree: ast.Module) -> None:
        self._scopes, self._tree = scopes, tree
        self.known: dict[ast.AST, Sources] = {}
        self.outer: dict[tuple[NameScope, str], Sources] = {}
        """What the variables of functions are ever bound to."""
        self._is_found = False

    def of(self, scope: NameScope, node: ast.expr) -> Sources:
        """Return what an expression's value is made from, as far as it is certain."""
        if not self._is_found:
            self._is_found = True
            self._find()
        if node not in self.known:  # code that is not reached
            names = {name: sources for (of, name), sources in self.outer.items() if of is scope}
            _ScopeOrigins(self, scope, names).evaluate(node)
        return self.known[node]

    def _find(self) -> None:
        for scope in self._scopes:
            own = (
                (name, {(scope.name, name)}) for name in scope.parameters if name != scope.itself
            )
            self.outer |= {(scope, name): frozenset(sources) for name, sources in own}
        for _ in range(3):  # through up to two functions
            before = dict(self.outer)
            for scope in self._scopes:
                names = {name: self.outer.get((scope, name), NOTHING) for name in scope.parameters}
                interpreter = _ScopeOrigins(self, scope, names)
                if scope.node is None:
                    interpreter.run(self._tree.body)
                else:
                    interpreter.run_function(scope.node)
            if self.outer == before:
                return


class _ScopeOrigins(AbstractInterpreter[AbstractState[Sources], Sources]):
    """Interprets a function on what its variables are made from."""

    def __init__(self, origins: Origins, scope: NameScope, names: dict[str, Sources]) -> None:
        super().__init__(AbstractState(names))
        self._origins, self._scope = origins, scope

    def evaluate(self, node: ast.expr) -> Sources:
        sources, known = super().evaluate(node), self._origins.known
        known[node] = known.get(node, NOTHING) | sources
        return sources

    def either(self, values: Sequence[Sources]) -> Sources:
        return NOTHING.union(*values)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.evaluate(decorator)
        if isinstance(node, ast.ClassDef):
            self.run(each for each in node.body if not isinstance(each, ast.FunctionDef))

    def assign(self, target: ast.expr, value: Sources, _source: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, value)
            case ast.Attribute(value=ast.Name()):
                self._bind(dotted(target), value)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                self.evaluate(index)
                self._fill(name, value)

    def _bind(self, name: str, sources: Sources) -> None:
        holder = self._scope if "." in name else self._scope.holder(name)
        if holder is self._scope:
            self.state.names[name] = sources
        outer = self._origins.outer
        outer[holder, name] = outer.get((holder, name), NOTHING) | sources

    def _fill(self, name: str, sources: Sources) -> None:
        """Put something into what a variable of the function holds."""
        if name in self._scope.bound:
            self._bind(name, self._named(name) | sources)

    def _named(self, name: str) -> Sources:
        holder = self._scope.holder(name)
        if holder is self._scope:
            return self.state.names.get(name, NOTHING)
        return self._origins.outer.get((holder, name), NOTHING)

    def unpacked(
        self, value: Sources, targets: Sequence[ast.expr], source: ast.expr | None
    ) -> Sequence[Sources]:
        match source:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if len(parts) == len(targets):
                return [self.evaluate(part) for part in parts]
            case ast.Call(func=function) if self._scope.full(function) in _WITH_STRUCTURE:
                return [value, *([NOTHING] * (len(targets) - 1))]
        return [value] * len(targets)

    def iterate(self, target: ast.expr, value: Sources, iterable: ast.expr) -> None:
        """Bind what a loop counts: indices and keys are known while tracing."""
        full = self._scope.full(iterable.func) if isinstance(iterable, ast.Call) else ""
        match iterable, target:
            case ast.Call(args=[inner, *_]), ast.Tuple(elts=[index, each]) if full == "enumerate":
                self.bind(index, NOTHING, None)
                self.iterate(each, self.evaluate(inner), inner)
            case ast.Call(args=inners), ast.Tuple(elts=elements) if full == "zip":
                for iterated, each in zip(inners, elements, strict=False):
                    self.iterate(each, self.evaluate(iterated), iterated)
            case ast.Call(func=ast.Attribute(value=items, attr="items")), ast.Tuple(
                elts=[key, each]
            ):
                self.bind(key, NOTHING, None)
                self.bind(each, self.evaluate(items), None)
            case ast.Name(id=name), _ if _is_mapping(self._scope, name, target):
                self.bind(target, NOTHING, None)  # the keys are known
            case _:
                self.bind(target, value, None)

    def expression(self, node: ast.expr) -> Sources:
        match node:
            case ast.Constant() | ast.Lambda():
                return NOTHING
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=value, attr=attr):
                sources = self.evaluate(value) | self.state.names.get(dotted(node), NOTHING)
                return NOTHING if attr in _STATIC_ATTRIBUTES else sources
            case ast.Call():
                return self._of_call(node)
            case ast.Compare(ops=ops) if not all(isinstance(op, _COMPARISONS) for op in ops):
                self.parts(node)
                return NOTHING  # `x is None`, `key in params`
            case _:
                return self.either(self.parts(node))

    def comprehension(self, node: Comprehension) -> Sources:
        sources = super().comprehension(node)
        return self._origins.known[node.value] if isinstance(node, ast.DictComp) else sources

    def _of_call(self, call: ast.Call) -> Sources:
        function, full = call.func, self._scope.full(call.func)
        of_function = self.evaluate(function)
        arguments = [self.evaluate(argument) for argument in call.args]
        arguments += [self.evaluate(keyword.value) for keyword in call.keywords]
        sources = self.either(arguments)
        match function:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in _FILLS:
                self._fill(name, sources)
        last = full.rpartition(".")[2] or getattr(function, "attr", "")
        if full in _STATIC_CALLS or _STATIC_JAX.fullmatch(full) or last in _STATIC_METHODS:
            return NOTHING
        if full in MAPS:
            return self._mapped(call, self.either(arguments[1:]))
        if isinstance(function, ast.Call):  # jax.grad(f)(x)
            if transformation(function.func, self._scope.imports):
                return sources | {(self._scope.name, "")}
            return sources | of_function
        if _COMPUTES.match(full):
            return sources | {(self._scope.name, "")}
        if self._describes(function):
            return NOTHING
        return sources | (of_function if isinstance(function, ast.Attribute) else NOTHING)

    def _mapped(self, call: ast.Call, arguments: Sources) -> Sources:
        mapped = call.args[0] if call.args else None
        scope = self._scope.lambdas.get(mapped) if isinstance(mapped, ast.Lambda) else None
        if isinstance(mapped, ast.Lambda) and scope is not None:
            inner = self._origins.known.get(mapped.body, NOTHING)
            own = {source for source in inner if source[0] == scope.name}
            return (inner - own) | (arguments if own else NOTHING)
        return NOTHING if mapped is None or self._describes(mapped) else arguments

    def _describes(self, function: ast.expr) -> bool:
        full = self._scope.full(function)
        last = full.rpartition(".")[2] or getattr(function, "attr", getattr(function, "id", ""))
        static = full in _STATIC_CALLS or _STATIC_JAX.fullmatch(full) is not None
        jax = full.startswith(("jax.", "numpy."))
        return static or (not jax and _DESCRIBING.search(last) is not None)


_MAPPING = re.compile(
    r"(params?|state|dict|tree|batch|config|cfg|kwargs|cache|metrics|grads?|gradients|data|weights|"
    r"variables|opt|stats|names|keys|mapping|model|aux|info|layers)(_|$)|^(d|p|m)$"
)
"""Names of what may be a dict."""


def _is_mapping(scope: NameScope, name: str, target: ast.expr) -> bool:
    """Whether a name may be a dict, so that a loop over it counts keys."""
    creation = scope.holder(name).aliases.get(name)
    if isinstance(creation, ast.List | ast.Tuple | ast.ListComp):
        return False
    if _MAPPING.search(name) or isinstance(creation, ast.Dict | ast.DictComp):
        return True
    counted = target.id if isinstance(target, ast.Name) else ""
    for node, _ in scope.nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=variable), slice=ast.Name(id=index)):
                if variable == name and index == counted:
                    return True
            case ast.Subscript(value=ast.Name(id=variable), slice=ast.Constant(value=str())):
                if variable == name:
                    return True
            case ast.Attribute(value=ast.Name(id=variable), attr="items" | "keys" | "values"):
                if variable == name:
                    return True
    return False
