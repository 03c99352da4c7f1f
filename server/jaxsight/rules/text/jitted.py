"""Which functions of a module `jax.jit` compiles, and how calls outside of traces reach them.

`JittedModule` knows those that the module's own statements and classes bind, once each;
`JittedScope` adds those of the functions around a call.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.text.expressions import FunctionNode, dotted
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import (
    Identical,
    Imports,
    Statement,
    imports_of,
    own_statements,
    uses_jax,
)
from jaxsight.rules.text.traced import TracedModule, traced_module
from jaxsight.rules.text.transformations import Tracing, handed_in, is_partial, of_decorator
from jaxsight.text.names import bound_in_scope


@dataclass(frozen=True, slots=True)
class JitFunction:
    """A function that `jit` compiles."""

    how: Tracing
    parameters: tuple[str, ...] = ()
    """Its positional parameters in a call, where they are known."""
    of: str = ""
    """The function that is jitted, by its name in the module."""

    def static_arguments(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """Yield the static arguments of a call, each with its parameter or position."""
        how, names = self.how, set(self.how.static_names)
        if how.unknown or any(isinstance(argument, ast.Starred) for argument in call.args):
            return
        names |= {self.parameters[at] for at in how.static if -1 < at < len(self.parameters)}
        for at, argument in enumerate(call.args):
            name = self.parameters[at] if at < len(self.parameters) else f"{at}"
            if at in how.static or name in names:
                yield name, argument
        yield from ((word.arg, word.value) for word in call.keywords if word.arg in names)

    def traced_arguments(self, call: ast.Call) -> Iterator[ast.expr]:
        """Yield the arguments of a call that are not static."""
        if self.how.unknown:
            return
        static = [argument for _, argument in self.static_arguments(call)]
        arguments = (*call.args, *(word.value for word in call.keywords))
        yield from (argument for argument in arguments if argument not in static)


@dataclass(frozen=True, slots=True)
class JittedModule:
    """What code that is not traced may call in a module."""

    functions: tuple[tuple[str, JitFunction], ...]
    """By name in the module: `step`, `Trainer.step`."""
    instances: tuple[tuple[str, str], ...]
    """Names of the module that are bound to what a call of a class or a function returns."""
    makers: tuple[tuple[str, JitFunction], ...]
    """Functions of the module that return a function which they jit."""
    traced: frozenset[str]
    """The functions that are traced: what they call is part of their program."""


def jitted_module(statements: Sequence[Statement]) -> JittedModule:
    """Return the jitted functions that a module binds once."""
    imports = imports_of(statements)
    if not uses_jax(imports):
        return _NOTHING
    traced = traced_module(statements)
    facts = tuple(statement.read(_facts, imports) for statement in statements)
    return statements[0].read(_joined, Identical((traced, *facts)))


_NOTHING = JittedModule((), (), (), frozenset())


def _joined(_: ast.Module, read: Identical) -> JittedModule:
    facts = [each for each in read.values if isinstance(each, _Facts)]
    traced = next(each for each in read.values if isinstance(each, TracedModule))
    count = Counter(name for each in facts for name in each.bound)
    signatures = dict(signature for each in facts for signature in each.signatures)
    functions = []
    for name, jitted in (pair for each in facts for pair in each.jitted):
        if count[name] == 1 + (jitted.of == name):  # `f = jax.jit(f)`
            if jitted.of and not jitted.parameters:
                jitted = replace(jitted, parameters=signatures.get(jitted.of, ()))
            functions.append((name, jitted))
    return JittedModule(
        tuple(functions),
        tuple(pair for each in facts for pair in each.instances if count[pair[0]] == 1),
        tuple(pair for each in facts for pair in each.makers if count[pair[0]] == 1),
        frozenset(name for name, function in traced.functions.items() if function.kinds),
    )


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a statement says, whatever the rest of its module says."""

    jitted: tuple[tuple[str, JitFunction], ...]
    signatures: tuple[tuple[str, tuple[str, ...]], ...]
    bound: tuple[str, ...]
    instances: tuple[tuple[str, str], ...]
    makers: tuple[tuple[str, JitFunction], ...]


def _facts(tree: ast.Module, imported: Imports) -> _Facts:
    imports = dict(imported)
    jitted: list[tuple[str, JitFunction]] = []
    signatures: list[tuple[str, tuple[str, ...]]] = []
    bound = list(bound_in_scope(*tree.body))
    instances = []
    makers: list[tuple[str, JitFunction]] = []
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                signatures.append((node.name, positional(node)))
                jitted += [(node.name, each) for each in decorated(node, imports)]
                makers += [(node.name, each) for each in _returned(node, imports)]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                jitted += [(name, each) for each in jit_of(value, imports)]
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                    instances.append((name, value.func.id))
            case ast.ClassDef():
                _of_class(node, imports, jitted, signatures, bound)
    return _Facts(tuple(jitted), tuple(signatures), tuple(bound), tuple(instances), tuple(makers))


def _returned(function: FunctionNode, imports: Mapping[str, str]) -> Iterator[JitFunction]:
    """Yield the jitted function that a function returns, if it returns one and nothing else."""
    inner = {node.name: node for node in function.body if isinstance(node, FunctionNode)}
    returns = [node for node in own_statements(function.body) if isinstance(node, ast.Return)]
    match [node.value for node in returns]:
        case [ast.Name(id=name)] if name in inner:
            yield from decorated(inner[name], imports)
        case [ast.Call() as call]:
            for each in jit_of(call, imports):
                target = inner.get(each.of)
                known = positional(target) if target is not None else each.parameters
                yield replace(each, parameters=known)


def _of_class(
    node: ast.ClassDef,
    imports: Mapping[str, str],
    jitted: list[tuple[str, JitFunction]],
    signatures: list[tuple[str, tuple[str, ...]]],
    bound: list[str],
) -> None:
    """Add the methods of a class, and the attributes of `self` that are jitted functions."""
    for method in node.body:
        if not isinstance(method, FunctionNode):
            continue
        name = f"{node.name}.{method.name}"
        bound.append(name)
        signatures.append((name, positional(method)[1:]))
        for each in decorated(method, imports):
            static = tuple(at - 1 for at in each.how.static if at)
            donated = tuple(at - 1 for at in each.how.donated if at)
            how = replace(each.how, static=static, donated=donated)
            jitted.append((name, replace(each, how=how, parameters=each.parameters[1:])))
        for inner in ast.walk(method):
            if not isinstance(inner, ast.Assign):
                continue
            for target in map(dotted, inner.targets):
                if target.startswith("self.") and target.count(".") == 1:
                    attribute = f"{node.name}.{target[5:]}"
                    bound.append(attribute)
                    for each in jit_of(inner.value, imports):
                        of = each.of
                        of = f"{node.name}.{of[5:]}" if of.startswith("self.") else of
                        jitted.append((attribute, replace(each, of=of)))


def positional(function: FunctionNode | ast.Lambda) -> tuple[str, ...]:
    """Return the names of a function's positional parameters."""
    arguments = function.args
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))


def decorated(function: FunctionNode, imports: Mapping[str, str]) -> Iterator[JitFunction]:
    """Yield the function as its outermost decorator jits it."""
    for decorator in function.decorator_list[:1]:
        how = of_decorator(decorator, imports)
        if how is not None and how.compiled:
            yield JitFunction(how, positional(function))


def jit_of(value: ast.expr, imports: Mapping[str, str]) -> Iterator[JitFunction]:
    """Yield the function that `jax.jit(f, …)` or `partial(jax.jit, …)(f)` makes."""
    if not isinstance(value, ast.Call):
        return
    if isinstance(value.func, ast.Call) and is_partial(value.func.func, imports) and value.args:
        how = of_decorator(value.func, imports)
        function: ast.expr | None = value.args[0]
    else:
        handed = next(handed_in(value, imports), None)
        how = handed.tracing if handed is not None else None
        function = handed.function if handed is not None else None
    if how is None or not how.compiled:
        return
    if isinstance(function, ast.Lambda):
        of = f"<lambda {function.lineno}:{function.col_offset}>"  # its name in the module
        yield JitFunction(how, positional(function), of)
    else:
        yield JitFunction(how, of=dotted(function) if function is not None else "")


class JittedCalls:
    """Which jitted functions the calls in a statement reach."""

    def __init__(self, module: JittedModule) -> None:
        self._module = dict(module.functions)
        self._instances = dict(module.instances)
        self._makers = dict(module.makers)
        self._traced = module.traced

    def is_traced(self, scope: NameScope) -> bool:
        """Whether a function, or one around it, is traced."""
        return any(around.name in self._traced for around in scope.enclosing() if around.node)

    def called(self, scope: NameScope, call: ast.Call) -> tuple[str, JitFunction] | None:
        """Return the jitted function that a call reaches, with its name."""
        name = dotted(call.func)
        first, _, attribute = name.partition(".")
        if not name or "." in attribute:
            return None
        holder = scope.holder(first)
        if attribute:
            itself = (around for around in scope.enclosing() if around.itself == first)
            method = next(itself, None)
            if method is not None:
                owner = method.owner
            elif holder.node is None:
                owner = self._instances.get(first, "")
            else:
                value = holder.aliases.get(first)
                owner = dotted(value.func) if isinstance(value, ast.Call) else ""
            found = self._module.get(f"{owner}.{attribute}")
        elif holder.node is None:
            found = self._module.get(name) or self._makers.get(self._instances.get(name, ""))
        else:
            found = _local(holder, name)
            value = holder.aliases.get(name)
            if found is None and isinstance(value, ast.Call) and is_bound_once(holder, name):
                is_outer = holder.holder(dotted(value.func)).node is None
                found = self._makers.get(dotted(value.func)) if is_outer else None
        return (name, found) if found is not None else None


def _local(holder: NameScope, name: str) -> JitFunction | None:
    """Return the jitted function that a function binds once."""
    if name in holder.functions:
        node = holder.functions[name].node
        assert isinstance(node, FunctionNode)
        return next(decorated(node, holder.imports), None)
    value = holder.aliases.get(name)
    if value is None or not is_bound_once(holder, name):
        return None
    jitted = next(jit_of(value, holder.imports), None)
    if jitted is not None and not jitted.parameters and jitted.of in holder.functions:
        function = holder.functions[jitted.of].node
        if isinstance(function, FunctionNode):
            return replace(jitted, parameters=positional(function))
    return jitted


def is_bound_once(holder: NameScope, name: str) -> bool:
    """Whether one statement of a function binds a name."""
    names = (node for node, _ in holder.nodes if isinstance(node, ast.Name) and node.id == name)
    return sum(not isinstance(node.ctx, ast.Load) for node in names) == 1
