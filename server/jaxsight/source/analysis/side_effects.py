"""The possible side effects of executing code, besides binding names, from its syntax tree.

This module does not follow a name to another piece or resolve names: `roles` does. Code whose
effects the text does not show is `opaque`, never guessed. A function's body is read only on demand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxsight.source.analysis.syntax_trees import (
    annotations_of,
    blocks_of,
    dotted_name,
    is_main_guard,
    names_stored,
)

VALUE_METHODS = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "block_until_ready",
        "clip",
        "conj",
        "conjugate",
        "copy",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "flatten",
        "imag",
        "item",
        "max",
        "mean",
        "min",
        "nonzero",
        "prod",
        "ravel",
        "real",
        "repeat",
        "reshape",
        "round",
        "searchsorted",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "tolist",
        "trace",
        "transpose",
        "var",
        "view",
        "count",
        "encode",
        "endswith",
        "format",
        "index",
        "isdigit",
        "join",
        "lower",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "replace",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "title",
        "upper",
        "items",
        "keys",
        "values",
    ]
)
"""Methods of arrays, strings and dictionaries without side effects.

None of them returns a one-pass iterator.
"""

VALUE_ATTRIBUTES = frozenset(
    {"T", "at", "dtype", "imag", "itemsize", "nbytes", "ndim", "real", "shape", "size"}
)
"""Attributes of arrays."""

_UPDATES_OF_ARRAYS = frozenset(
    {"add", "apply", "divide", "get", "max", "min", "mul", "multiply", "power", "set", "subtract"}
)
"""Methods such as `x.at[i].set(y)`, which return a new array."""

_CONTAINER_METHODS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "difference_update",
        "discard",
        "extend",
        "get",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    ]
)
"""Methods that a function may call on a container that it created itself."""

_CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"})

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.Match)


@dataclass(frozen=True, slots=True)
class Effects:
    """The side effects of code while it runs.

    Names are the module's, dotted as written (`jnp.sum`, `CFG.update`).

    * `calls`: functions that are called, or that may be called by a function they are passed to.
    * `reads`: names whose values are used; `attributes`: attributes of module names.
    * `changes`: names whose values are assigned into or deleted.
    * `repeated`: those of `calls` in a loop of many iterations.
    * `carried`: those of `repeated` whose arguments include a name that the statement rebinds.
    """

    calls: frozenset[str] = frozenset()
    handed: frozenset[str] = frozenset()
    """Names passed to calls as arguments: if they are functions, they may be called."""
    reads: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    carried: frozenset[str] = frozenset()
    writes_files: bool = False
    opaque: str = ""
    """The first construct with unknown effects; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The kind of a single statement, as far as `roles` needs it.

    `kind` is `def`, `class`, `import`, `assign` (one value to one name) or `other`.
    """

    kind: str
    wrapped_by: tuple[str, ...] = ()
    """Decorators, or the function whose call is assigned."""
    wraps: tuple[str, ...] = ()
    """The names that this call takes."""
    bases: tuple[str, ...] = ()
    active: bool = False
    """Whether creating the class, or one derived from it, runs code.

    It has a metaclass, keywords or hooks (`__init_subclass__`, `__set_name__`).
    """


def effects_of(body: Sequence[ast.stmt]) -> Effects:
    """Return the effects of executing top-level statements.

    The functions that they define are not called by that.
    """
    walker = _Walker(function=None)
    walker.block(body)
    return walker.result()


def effects_of_call(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Effects:
    """Return the effects of calling a function, including functions defined inside it."""
    walker = _Walker(function=function)
    if isinstance(function, ast.Lambda):
        walker.read(function.body)
    else:
        walker.block(function.body)
    return walker.result()


class _Walker:
    """Walks code once, from top to bottom, and assumes the worst where it is not certain."""

    def __init__(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None
    ) -> None:
        self.inside = function is not None
        self.locals: set[str] = set()
        self.parameters: set[str] = set()
        self.fresh: set[str] = set()
        self.functions: set[str] = set()
        self.calls: set[str] = set()
        self.handed: set[str] = set()
        self.reads: set[str] = set()
        self.attributes: set[str] = set()
        self.changes: set[str] = set()
        self.repeated: set[str] = set()
        self.carried: set[str] = set()
        self.writes_files = False
        self.opaque = ""
        self.depth = 0
        """Nesting depth of long loops."""
        self.targets: set[str] = set()
        """Names that the current statement binds."""
        if function is not None:
            self.enter(function)
        if isinstance(function, ast.AsyncFunctionDef):
            self.unknown("a coroutine")

    def result(self) -> Effects:
        return Effects(
            calls=frozenset(self.calls),
            handed=frozenset(self.handed),
            reads=frozenset(self.reads),
            attributes=frozenset(self.attributes),
            changes=frozenset(self.changes),
            repeated=frozenset(self.repeated),
            carried=frozenset(self.carried),
            writes_files=self.writes_files,
            opaque=self.opaque,
        )

    def unknown(self, what: str) -> None:
        self.opaque = self.opaque or what

    def enter(self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Add a function's parameters and local names."""
        arguments = function.args
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        names += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        self.parameters |= {a.arg for a in names}
        self.locals |= self.parameters
        if isinstance(function, ast.Lambda):
            return
        made: dict[str, list[ast.expr | None]] = {}
        outer: set[str] = set()
        for statement in _statements(function.body):
            match statement:
                case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                    outer.update(declared)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self.functions.add(name)
                    made.setdefault(name, []).append(None)
                case ast.ClassDef(name=name):
                    made.setdefault(name, []).append(None)
                case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                    for alias in imported:
                        name = alias.asname or alias.name.partition(".")[0]
                        made.setdefault(name, []).append(None)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    made.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    made.setdefault(name, []).append(value)
                case _:
                    for target in _targets(statement):
                        for name in names_stored(target):
                            made.setdefault(name, []).append(None)
            for node in _own_expressions(statement):
                if isinstance(node, ast.NamedExpr):
                    made.setdefault(node.target.id, []).append(None)
        self.locals |= made.keys() - outer
        self.fresh |= {
            name
            for name, values in made.items()
            if name not in self.parameters and all(_is_fresh(value) for value in values)
        }
        self.functions -= {n for n in self.functions if len(made[n]) > 1}

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        self.targets = {name for t in _targets(statement) for name in names_stored(t)}
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.definition(statement)
            case ast.Import() | ast.ImportFrom():
                if self.inside:
                    self.unknown("an import in a function")
            case ast.Assign(targets=targets, value=value):
                self.value(value)
                for target in targets:
                    self.target(target)
            case ast.AnnAssign(target=target, value=value):
                self.annotations(statement)
                if value is not None:
                    self.value(value)
                    self.target(target)
            case ast.AugAssign(target=target, value=value):
                self.read(value)
                self.augmented(target)
            case ast.Delete(targets=targets):
                for target in targets:
                    if not (self.inside and isinstance(target, ast.Name)):
                        self.change(target)
            case ast.Return(value=value):
                if value is not None:
                    self.read(value)
            case ast.Expr(value=ast.Call() as call):
                self.value(call)
            case ast.Expr(value=value):
                self.read(value)
            case ast.For(target=target, iter=iterated):
                self.read(iterated)
                self.target(target)
                self.loop(statement, long=not _is_short(iterated))
            case ast.While(test=test):
                self.read(test)
                self.loop(statement, long=True)
            case ast.If(test=test, orelse=orelse) if not self.inside and is_main_guard(test):
                self.block(orelse)
            case ast.If(test=test, body=body, orelse=orelse):
                self.read(test)
                self.block(body)
                self.block(orelse)
            case ast.With(items=items, body=body):
                for item in items:
                    self.context(item.context_expr)
                    if item.optional_vars is not None:
                        self.target(item.optional_vars)
                self.block(body)
            case ast.Try() | ast.TryStar():
                for handler in statement.handlers:
                    if handler.type is not None:
                        self.read(handler.type)
                for block in blocks_of(statement):
                    self.block(block)
            case ast.Match(subject=subject, cases=cases):
                self.read(subject)
                for case in cases:
                    if case.guard is not None:
                        self.read(case.guard)
                    self.block(case.body)
                if not self.inside and any(_calls_a_class(case.pattern) for case in cases):
                    self.unknown("a class pattern")
            case ast.Assert(test=test, msg=message):
                self.read(test)
                if message is not None:
                    self.read(message)
            case ast.Raise(exc=raised):
                if raised is not None:
                    self.read(raised)
                if not self.inside:
                    self.unknown("`raise`")
            case ast.Pass() | ast.Break() | ast.Continue():
                pass
            case _ if type(statement).__name__ == "TypeAlias":
                pass
            case _:
                self.unknown(f"`{type(statement).__name__.lower()}`")

    def definition(self, statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in statement.decorator_list:
            self.wrapping(decorator)
        if isinstance(statement, ast.ClassDef):
            if self.inside:
                self.unknown("a class in a function")
                return
            for base in statement.bases:
                self.read(base)
            for keyword in statement.keywords:
                self.read(keyword.value)
            inner = _Walker(function=None)
            inner.locals |= {
                n for s in statement.body for t in _targets(s) for n in names_stored(t)
            }
            inner.locals |= {s.name for s in statement.body if isinstance(s, _DEFINITIONS)}
            inner.block(statement.body)
            self.take(inner)
            return
        for default in (*statement.args.defaults, *statement.args.kw_defaults):
            if default is not None:
                self.read(default)
        self.annotations(statement)
        if self.inside:
            inner = _Walker(function=statement)
            inner.locals |= self.locals
            inner.functions |= self.functions
            inner.block(statement.body)
            if any(isinstance(s, ast.Nonlocal) for s in _statements(statement.body)):
                self.unknown("`nonlocal`")
            self.take(inner)

    def annotations(self, statement: ast.stmt) -> None:
        """Read annotations that contain calls, which run when the function is defined."""
        for annotation in annotations_of(statement):
            if any(isinstance(node, ast.Call) for node in ast.walk(annotation)):
                self.read(annotation)

    def take(self, inner: _Walker) -> None:
        """Add the effects of inner code."""
        self.calls |= inner.calls
        self.handed |= inner.handed
        self.reads |= inner.reads
        self.attributes |= inner.attributes
        self.changes |= inner.changes
        self.repeated |= inner.repeated
        self.carried |= inner.carried
        self.writes_files |= inner.writes_files
        if inner.opaque:
            self.unknown(inner.opaque)

    def wrapping(self, decorator: ast.expr) -> None:
        """Read a decorator: `roles` decides by its name whether it only wraps."""
        match decorator:
            case ast.Call(func=function, args=args, keywords=keywords):
                name = dotted_name(function)
                if not name or self.is_local(name):
                    self.unknown("a decorator")
                for argument in (*args, *(k.value for k in keywords)):
                    if not dotted_name(argument):
                        self.read(argument)
            case _:
                name = dotted_name(decorator)
                if not name:
                    self.unknown("a decorator")

    def loop(self, statement: ast.For | ast.While, *, long: bool) -> None:
        self.depth += long
        self.block(statement.body)
        self.depth -= long
        self.block(statement.orelse)

    def context(self, expression: ast.expr) -> None:
        self.read(expression)
        match expression:
            case ast.Call(func=function) if _is_scope(dotted_name(function)):
                pass
            case _:
                self.unknown("`with`")

    def target(self, target: ast.expr) -> None:
        match target:
            case ast.Name():
                pass
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.target(part)
            case ast.Starred(value=value):
                self.target(value)
            case _:
                self.change(target)

    def augmented(self, target: ast.expr) -> None:
        """Read the target of `+=`, which changes a list or an array in place."""
        match target:
            case ast.Name(id=name) if name in self.locals and name not in self.parameters:
                pass
            case ast.Name(id=name):
                self.change(target)
            case _:
                self.change(target)

    def change(self, target: ast.expr) -> None:
        """Record an assignment into a target, or its deletion."""
        for node in ast.walk(target):
            if isinstance(node, ast.Subscript):
                self.read(node.slice)
        root = _root(target)
        if root and self.is_local(root):
            if root not in self.fresh:
                self.unknown(f"a change of `{root}`")
        elif root:
            self.changes.add(root)
        else:
            self.unknown("an assignment")

    def value(self, value: ast.expr) -> None:
        """Read a value that a statement binds or drops.

        An iterator among such values is exhausted by its first reader.
        """
        if _is_iterator(value) and not self.inside:
            self.unknown("an iterator")
        self.read(value)

    def read(self, node: ast.AST) -> None:
        match node:
            case ast.Call():
                self.call(node)
            case ast.Lambda():
                inner = _Walker(function=node)
                inner.locals |= self.locals
                inner.functions |= self.functions
                inner.read(node.body)
                self.take(inner)
            case ast.Attribute():
                self.attribute(node)
            case ast.Name(id=name, ctx=ast.Load()):
                if not self.is_local(name):
                    self.reads.add(name)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.comprehension(node)
            case ast.NamedExpr(target=target, value=value):
                self.read(value)
                if not self.inside:
                    self.unknown(f"`{target.id} :=`")
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                self.unknown("a generator")
            case _:
                for child in ast.iter_child_nodes(node):
                    self.read(child)

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        names = {n for g in node.generators for n in names_stored(g.target)}
        inner = _Walker(function=None)
        inner.inside = self.inside
        inner.locals = self.locals | names
        inner.parameters, inner.fresh, inner.functions = self.parameters, self.fresh, self.functions
        inner.depth = self.depth + 1
        for generator in node.generators:
            inner.read(generator.iter)
            for condition in generator.ifs:
                inner.read(condition)
        for part in ("elt", "key", "value"):
            if (expression := getattr(node, part, None)) is not None:
                inner.read(expression)
        self.take(inner)

    def attribute(self, node: ast.Attribute) -> None:
        name = dotted_name(node)
        if name and not isinstance(node.value, ast.Subscript):
            root = name.partition(".")[0]
            if not self.is_local(root):
                self.attributes.add(name)
                self.reads.add(root)
                return
        self.read(node.value)
        if node.attr not in VALUE_ATTRIBUTES:
            self.unknown(f"`.{node.attr}`")

    def call(self, call: ast.Call) -> None:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(keyword.arg == "out" for keyword in call.keywords):
            self.unknown("`out=`")
        for argument in arguments:
            if isinstance(argument, ast.Starred):
                argument = argument.value
            name = dotted_name(argument)
            if name and not isinstance(argument, ast.Subscript) and not self.is_local(_first(name)):
                self.handed.add(name)
            self.read(argument)
        match call.func:
            case ast.Name(id=name):
                if not self.is_local(name):
                    self.called(name, arguments)
                    if name == "open" and _opens_to_write(call):
                        self.writes_files = True
                elif name not in self.functions:
                    self.unknown(f"`{name}()`")
            case ast.Attribute(value=value, attr=method):
                self.method(call, value, method, arguments)
            case ast.Call(func=inner) as wrapping:
                # `jax.vmap(f)(x)`: arguments of the inner call may be called.
                self.call(wrapping)
                if not dotted_name(inner):
                    self.unknown("a call of a call's result")
            case ast.Lambda() as function:
                self.read(function)
            case _:
                self.read(call.func)
                self.unknown("a call of a value")

    def method(
        self, call: ast.Call, value: ast.expr, method: str, arguments: Sequence[ast.expr]
    ) -> None:
        name = dotted_name(call.func)
        if name and "[" not in name and not isinstance(value, ast.Subscript):
            root = _first(name)
            if not self.is_local(root):
                self.called(name, arguments)
                self.reads.add(root)
                return
        self.read(value)
        if method in VALUE_METHODS:
            return
        if method in _UPDATES_OF_ARRAYS and _is_at(value):
            return
        if method in _CONTAINER_METHODS and isinstance(value, ast.Name) and value.id in self.fresh:
            return
        self.unknown(f"`.{method}()`")

    def called(self, name: str, arguments: Sequence[ast.expr]) -> None:
        self.calls.add(name)
        if self.depth:
            self.repeated.add(name)
            names = {n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name)}
            if names & self.targets:
                self.carried.add(name)

    def is_local(self, name: str) -> bool:
        return _first(name) in self.locals


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_SHORT = 16
"""Maximum number of iterations of a loop that does not count as long."""

_ITERATORS = frozenset({"enumerate", "filter", "iter", "map", "open", "reversed", "zip"})


def _is_short(iterated: ast.expr) -> bool:
    match iterated:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return len(parts) <= _SHORT
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(stop))]):
            return stop <= _SHORT
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return _is_short(inner)
    return False


def _is_iterator(value: ast.expr) -> bool:
    match value:
        case ast.GeneratorExp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _ITERATORS
        case ast.Call(func=function):
            return dotted_name(function).partition(".")[0] == "itertools"
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(map(_is_iterator, parts))
        case ast.IfExp(body=body, orelse=orelse):
            return _is_iterator(body) or _is_iterator(orelse)
    return False


def shape_of(body: Sequence[ast.stmt]) -> Shape:
    """Return the shape of a piece's statement; `other` for several statements."""
    if len(body) != 1:
        return Shape("other")
    match body[0]:
        case (
            ast.FunctionDef(decorator_list=decorators)
            | ast.AsyncFunctionDef(decorator_list=decorators)
        ):
            return Shape("def", wrapped_by=tuple(map(_wrapper, decorators)))
        case ast.ClassDef() as definition:
            return _class_shape(definition)
        case ast.Import() | ast.ImportFrom():
            return Shape("import")
        case ast.Assign(targets=[ast.Name()], value=value):
            return _assign_shape(value)
        case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
            return _assign_shape(value)
    return Shape("other")


def _assign_shape(value: ast.expr) -> Shape:
    match value:
        case ast.Call(func=function, args=args, keywords=keywords):
            values = (*args, *(keyword.value for keyword in keywords))
            names = tuple(filter(None, map(dotted_name, values)))
            return Shape("assign", (_wrapper(function),), names)
        case ast.Lambda():
            return Shape("assign", ("lambda",))
    return Shape("assign")


def _class_shape(definition: ast.ClassDef) -> Shape:
    hooks = {"__init_subclass__", "__set_name__", "__prepare__", "__class_getitem__"}
    keywords = {k.arg for k in definition.keywords}
    decorators = list(definition.decorator_list)
    active = bool(keywords - {"frozen", "eq", "order", "kw_only", "total", "pytree"})
    stack: list[ast.stmt] = list(definition.body)
    while stack:
        match stack.pop():
            case ast.FunctionDef(name=name, decorator_list=own):
                active |= name in hooks
                decorators += own
            case ast.ClassDef():
                active = True
    names = tuple(_wrapper(each) for each in decorators)
    local = {s.name for s in definition.body if isinstance(s, ast.FunctionDef)}
    return Shape(
        "class",
        wrapped_by=tuple(name for name in names if _first(name) not in local),
        bases=tuple(_base(base) for base in definition.bases),
        active=active,
    )


def _base(base: ast.expr) -> str:
    """Return the name of a base class: `Generic` for `Generic[T]`."""
    return dotted_name(base.value if isinstance(base, ast.Subscript) else base) or "?"


def _wrapper(decorator: ast.expr) -> str:
    """Return the name of a wrapping function: `jit` for `@partial(jit, …)`; `?` if it has none."""
    match decorator:
        case ast.Call(func=function, args=[first, *_]) if dotted_name(function).endswith("partial"):
            return dotted_name(first) or "?"
        case ast.Call(func=function):
            return dotted_name(function) or "?"
    return dotted_name(decorator) or "?"


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a function's body and inner blocks, but not of inner functions."""
    stack = list(body)
    while stack:
        statement = stack.pop()
        yield statement
        if isinstance(statement, _BLOCKS):
            for block in blocks_of(statement):
                stack.extend(block)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(statement, _DEFINITIONS):
        return
    stack: list[ast.AST] = [
        n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)
    ]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.Lambda):
            stack.extend(n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt))


def _targets(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.optional_vars for item in items if item.optional_vars is not None]
    return []


def _is_fresh(value: ast.expr | None) -> bool:
    """Return whether a value is a new container that no other code can hold."""
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Call(func=function):
            return dotted_name(function).rpartition(".")[2] in _CONTAINERS
    return False


def _is_at(value: ast.expr) -> bool:
    match value:
        case ast.Subscript(value=ast.Attribute(attr="at")):
            return True
    return False


def _is_scope(name: str) -> bool:
    return name.rpartition(".")[2] in {"named_scope", "ensure_compile_time_eval"}


def _calls_a_class(pattern: ast.pattern) -> bool:
    return any(isinstance(node, ast.MatchClass) for node in ast.walk(pattern))


def _opens_to_write(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]
    for mode in modes:
        match mode:
            case ast.Constant(value=str(letters)):
                return not set(letters).isdisjoint("wax+")
        return True
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _first(name: str) -> str:
    return name.partition(".")[0]
