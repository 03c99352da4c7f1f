"""JX303: a jitted function is made anew each time: its cache is empty, so it is traced and compiled again.

Found in the text alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.rules.noticed import InText
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX303",
    "recreated-jit",
    "A jitted function is made anew, and compiled, each time.",
    severity="warning",
)

_JITS = frozenset(
    {
        "jax.jit",
        "jit",
        "jax.pmap",
        "pmap",
        "eqx.filter_jit",
        "nnx.jit",
        "nn.jit",
        "equinox.filter_jit",
    }
)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ONCE = frozenset({"main", "init", "setup", "post_init"})
"""Functions that run once, so what they compile is compiled once; without underscores."""
_LOOPS = (
    ast.For,
    ast.While,
    ast.AsyncFor,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
)


@RULE.finds_in_text
def find(tree: ast.Module) -> Iterator[InText]:
    """Each `jax.jit(…)` in a loop of what is a new function each time; each that is made of one in a function and called there once, at once or by its name.

    What stands in a jitted function is traced with it, once, and not spoken of.
    """
    yield from _within(tree, (), set())


def _within(node: ast.AST, around: tuple[ast.AST, ...], local: set[str]) -> Iterator[InText]:
    for child in ast.iter_child_nodes(node):
        inside = (*around, node)
        names = local
        if isinstance(child, _FUNCTIONS):
            again = _decorated(child, inside)
            if again is not None:
                yield again
            if any(map(_is_jit, child.decorator_list)):
                continue
            names = {
                each.name
                for each in ast.walk(child)
                if isinstance(each, _FUNCTIONS) and each is not child
            }
        if isinstance(child, ast.Call) and _dotted(child.func) in _JITS and child.args:
            made = _why(child, node, inside, local)
            if made:
                yield InText(child, made)
        yield from _within(child, inside, names)


def _is_jit(decorator: ast.expr) -> bool:
    """`@jax.jit`, `@jax.jit(…)`, `@partial(jax.jit, …)`."""
    if not isinstance(decorator, ast.Call):
        return _dotted(decorator) in _JITS
    if _last(decorator.func) == "partial" and decorator.args:
        return _dotted(decorator.args[0]) in _JITS
    return _dotted(decorator.func) in _JITS


def _decorated(function: FunctionNode, around: tuple[ast.AST, ...]) -> InText | None:
    """A function that is jitted by a decorator in another one and called there once."""
    scope = _scope(around)
    decorator = next(filter(_is_jit, function.decorator_list), None)
    if decorator is None or not isinstance(scope, _FUNCTIONS) or _runs_once(scope):
        return None
    if not _called_once(scope, function.name, function):
        return None
    return InText(decorator, _each_call("a function that is made here, called once", scope))


def _why(call: ast.Call, parent: ast.AST, around: tuple[ast.AST, ...], local: set[str]) -> str:
    function = call.args[0]
    scope = _scope(around)
    since = around[around.index(scope) :] if scope is not None else around
    loops = [each for each in since if isinstance(each, _LOOPS)]
    # JAX knows a function by its identity, however often it is jitted.
    method = _is_method(function, around)
    fresh = method or isinstance(function, ast.Lambda | ast.Call)
    fresh = fresh or (isinstance(function, ast.Name) and function.id in local)
    again = fresh and (not isinstance(function, ast.Name) or _defines(loops, function.id))
    called = isinstance(parent, ast.Call) and parent.func is call
    what = "a function that is made here"
    if isinstance(function, ast.Lambda):
        what = "a lambda"
    elif isinstance(function, ast.Call) and _last(function.func) == "partial":
        what = "a partial"
    elif method:
        what = "a bound method, which is another one each time,"
    if again and loops and not _is_made_of(function, loops):
        return f"`jit` of {what} in a loop compiles in each round: make it once, before the loop."
    if scope is None or not fresh or _runs_once(scope):
        return ""
    if called:
        return _each_call(f"{what.removesuffix(',')}, called at once", scope)
    if _named_and_called(call, parent, scope):
        return _each_call(f"{what.removesuffix(',')}, called once", scope)
    return ""


def _defines(loops: Sequence[ast.AST], name: str) -> bool:
    """Whether a function is defined in one of these loops: one that is defined before is the same in each round."""
    inside = (node for loop in loops for node in ast.walk(loop))
    return any(isinstance(node, _FUNCTIONS) and node.name == name for node in inside)


def _is_made_of(function: ast.expr, loops: Sequence[ast.AST]) -> bool:
    """Whether a call makes the function of what the loop counts: there is another one in each round."""
    if not isinstance(function, ast.Call) or _last(function.func) == "partial":
        return False
    counted = {
        node.id
        for loop in loops
        for clause in (loop, *getattr(loop, "generators", ()))
        if isinstance(clause, ast.For | ast.AsyncFor | ast.comprehension)
        for node in ast.walk(clause.target)
        if isinstance(node, ast.Name)
    }
    return any(isinstance(node, ast.Name) and node.id in counted for node in ast.walk(function))


def _is_method(function: ast.expr, around: tuple[ast.AST, ...]) -> bool:
    """`self.step`, where the class has such a method."""
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            classes = [each for each in around if isinstance(each, ast.ClassDef)]
            methods = classes[-1].body if classes else []
            return any(isinstance(m, _FUNCTIONS) and m.name == name for m in methods)
        case _:
            return False


def _scope(around: tuple[ast.AST, ...]) -> ast.AST | None:
    """The function that something stands in."""
    return next((n for n in reversed(around) if isinstance(n, (*_FUNCTIONS, ast.Lambda))), None)


def _runs_once(scope: ast.AST) -> bool:
    """Whether a function is called once by its name: a program, a test, what makes an object."""
    name = getattr(scope, "name", "").strip("_")
    return name in _ONCE or name.startswith("test")


def _each_call(what: str, scope: ast.AST) -> str:
    name = getattr(scope, "name", "the lambda")
    return f"`jit` of {what}: each call of `{name}` traces and compiles it again. Make the jitted function once, outside."


def _named_and_called(call: ast.Call, parent: ast.AST, scope: ast.AST) -> bool:
    match parent:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            return isinstance(scope, _FUNCTIONS) and _called_once(scope, name, parent)
        case _:
            return False


def _called_once(scope: FunctionNode, name: str, made: ast.AST) -> bool:
    """Whether all that is done with a name is one call of it or of a transformation of it, outside of loops and functions."""
    calls = 0
    waiting: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(scope, ())]
    while waiting:
        node, above = waiting.pop()
        if node is made and isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if any(isinstance(each, (*_LOOPS, *_FUNCTIONS, ast.Lambda)) for each in above[1:]):
                return False
            if not _is_called(node, above):
                return False
            calls += 1
        waiting += [(child, (*above, node)) for child in ast.iter_child_nodes(node)]
    return calls == 1


def _is_called(name: ast.Name, above: tuple[ast.AST, ...]) -> bool:
    """`f(x)`, or `grad(f)(x)`."""
    match above[-2:]:
        case (_, ast.Call(func=func)) if func is name:
            return True
        case (ast.Call(func=outer), ast.Call(args=args) as inner):
            return outer is inner and name in args
        case _:
            return False


def _last(node: ast.expr) -> str:
    return _dotted(node).rpartition(".")[2]


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""
