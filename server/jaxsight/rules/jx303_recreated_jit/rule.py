"""JX303: a jitted function is re-created each time, so it is traced and compiled again.

The cache of compiled programs belongs to the function object. Found in the text alone.
"""

# Longer than most rules: it is found in text alone: which functions are new objects, and how often
# each is called.

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.recompilation import Miss, named
from jaxsight.rules.rule import NodeViolation, Rule, Violation
from jaxsight.rules.text.expressions import FunctionNode, dotted
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in, read_in

RULE = Rule(
    __name__,
    "Jitted function is re-created, and recompiled, every time.",
    severity="warning",
    word="jit",
)

_JITS = frozenset(
    {
        "jax.jit", "jit", "jax.pmap", "pmap", "eqx.filter_jit", "nnx.jit", "nn.jit",
        "equinox.filter_jit",
    }
)  # fmt: skip
_ONCE = frozenset({"main", "init", "setup", "post_init"})
"""Functions that run once, so what they compile is compiled once; without underscores."""
_LOOPS = (
    ast.For, ast.While, ast.AsyncFor, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp,
)  # fmt: skip


@RULE.explains_misses
def explain(function: str, misses: Sequence[Miss]) -> Iterator[Violation]:
    """Report that a function was re-created, where that was seen."""
    times = sum(miss.recreated for miss in misses) + 1
    if times > 1:
        yield Violation(
            f"{named(function)} is re-created for this call and was traced {times} times",
            help="jit it once, outside the function or loop that calls it",
            notes=("JAX caches compiled programs by function object",),
        )


@RULE.finds_in_text
def find(tree: ast.Module) -> Iterator[NodeViolation | None]:
    """Yield each `jax.jit(…)` of a new function object that is called once.

    That is in a loop, or in a function that calls the result once.

    The call may follow immediately or use a name. Code in a jitted function is traced once with
    that function, so it is not reported.
    """
    yield from _within(tree, (), set())


def _within(
    node: ast.AST, around: tuple[ast.AST, ...], local: set[str]
) -> Iterator[NodeViolation | None]:
    for child in ast.iter_child_nodes(node):
        inside = (*around, node)
        names = local
        if isinstance(child, FunctionNode):
            if any(map(_is_jit, child.decorator_list)):
                yield _decorated(child, inside)
                continue
            names = {
                node.name
                for node in ast.walk(child)
                if isinstance(node, FunctionNode) and node is not child
            }
        if isinstance(child, ast.Call) and dotted(child.func) in _JITS and child.args:
            yield _recreated(child, node, inside, local)
        yield from _within(child, inside, names)


def _is_jit(decorator: ast.expr) -> bool:
    """Whether a decorator is `@jax.jit`, `@jax.jit(…)` or `@partial(jax.jit, …)`."""
    match decorator:
        case ast.Call(func=function, args=[jit, *_]) if _last(function) == "partial":
            return dotted(jit) in _JITS
        case ast.Call(func=function):
            return dotted(function) in _JITS
        case _:
            return dotted(decorator) in _JITS


def _decorated(function: FunctionNode, around: tuple[ast.AST, ...]) -> NodeViolation | None:
    """Return the finding of a function that a decorator jits in another one, called there once."""
    scope = _scope(around)
    if not isinstance(scope, FunctionNode) or _runs_once(scope):
        return None
    if not _called_once(scope, function.name, function):
        return None
    return _every_call(next(filter(_is_jit, function.decorator_list)), "a local function", scope)


def _recreated(
    call: ast.Call, parent: ast.AST, around: tuple[ast.AST, ...], local: set[str]
) -> NodeViolation | None:
    """Return the finding of a call of `jit`, if the function object is a new one each time.

    Args:
        call: the call of `jit`.
        parent: the node around it.
        around: all nodes around it, the outermost first.
        local: the names of functions that are defined in the function around it.
    """
    function = call.args[0]
    scope = _scope(around)
    since = around[around.index(scope) :] if scope is not None else around
    loops = [node for node in since if isinstance(node, _LOOPS)]
    # `jit` caches by the function's object, however often it is jitted (`_infer_params_cached`).
    method = _is_method(function, around)
    fresh = method or isinstance(function, ast.Lambda | ast.Call)
    fresh = fresh or (isinstance(function, ast.Name) and function.id in local)
    again = fresh
    if fresh and isinstance(function, ast.Name):
        # Each iteration has a new function only if the loop defines it.
        inside = (node for loop in loops for node in ast.walk(loop))
        again = function.id in {node.name for node in inside if isinstance(node, FunctionNode)}
    called = isinstance(parent, ast.Call) and parent.func is call
    kind = "a bound method" if method else _kind(function)
    if again and loops and not _is_made_of(function, loops):
        return NodeViolation(
            call,
            f"jitting {kind} in a loop recompiles in every iteration",
            help="create the jitted function once, before the loop",
            notes=(_new_object(kind, "in every iteration"),),
        )
    if scope is None or not fresh or _runs_once(scope):
        return None
    match parent:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            called = isinstance(scope, FunctionNode) and _called_once(scope, name, parent)
    return _every_call(call, kind, scope) if called else None


def _kind(function: ast.expr) -> str:
    """Return how messages call a function that is jitted."""
    if isinstance(function, ast.Lambda):
        return "a lambda"
    is_partial = isinstance(function, ast.Call) and _last(function.func) == "partial"
    return "a partial" if is_partial else "a local function"


def _new_object(subject: str, when: str) -> str:
    return f"{subject} is a new object {when}, and JAX caches programs by function object"


def _is_made_of(function: ast.expr, loops: Sequence[ast.AST]) -> bool:
    """Whether a call creates the function from a loop variable: iterations need different ones."""
    if not isinstance(function, ast.Call) or _last(function.func) == "partial":
        return False
    targets = (
        clause.target
        for loop in loops
        for clause in (loop, *getattr(loop, "generators", ()))
        if isinstance(clause, ast.For | ast.AsyncFor | ast.comprehension)
    )
    return not set(bound_in(*targets)).isdisjoint(read_in(function))


def _is_method(function: ast.expr, around: tuple[ast.AST, ...]) -> bool:
    """Whether an expression is `self.step` and the class has such a method."""
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            classes = [node for node in around if isinstance(node, ast.ClassDef)]
            methods = classes[-1].body if classes else []
            return any(isinstance(m, FunctionNode) and m.name == name for m in methods)
        case _:
            return False


def _scope(around: tuple[ast.AST, ...]) -> ast.AST | None:
    """Return the innermost function around a node."""
    return next((n for n in reversed(around) if isinstance(n, FunctionNode | ast.Lambda)), None)


def _runs_once(scope: ast.AST) -> bool:
    """Whether the name says that a function runs once: a program, a test, a constructor."""
    name = getattr(scope, "name", "").strip("_")
    return name in _ONCE or name.startswith("test")


def _every_call(node: ast.expr, subject: str, scope: ast.AST) -> NodeViolation:
    """Return the finding of a function that jits another one each time it is called."""
    name = getattr(scope, "name", "")
    outer = quoted(name, "a lambda")
    return NodeViolation(
        node,
        f"jitting {subject} inside {outer} recompiles on every call",
        help=f"create the jitted function once, outside {quoted(name, 'the lambda')}",
        notes=(
            _new_object(subject, "on every call"),
            "the jitted function is called once and then dropped with its cache",
        ),
    )


def _called_once(scope: FunctionNode, name: str, definition: ast.AST) -> bool:
    """Whether a name is used once, in a call of it or of a transformation of it.

    Calls in loops and inner functions do not count as one.
    """
    calls = 0
    waiting: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(scope, ())]
    while waiting:
        node, above = waiting.pop()
        if node is definition and isinstance(node, FunctionNode):
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            apart = (*_LOOPS, FunctionNode, ast.Lambda)
            if any(isinstance(each, apart) for each in above[1:]) or not _is_called(node, above):
                return False
            calls += 1
        waiting += [(child, (*above, node)) for child in ast.iter_child_nodes(node)]
    return calls == 1


def _is_called(name: ast.Name, above: tuple[ast.AST, ...]) -> bool:
    """Whether a name is called as `f(x)` or `grad(f)(x)`."""
    match above[-2:]:
        case (_, ast.Call(func=func)) if func is name:
            return True
        case (ast.Call(func=outer), ast.Call(args=args) as inner):
            return outer is inner and name in args
        case _:
            return False


def _last(node: ast.expr) -> str:
    return dotted(node).rpartition(".")[2]


# The fix: create the jitted function once, before the function that uses it.


@RULE.fixes("the jitted function, created once before the function")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the jitted function as a name of the module, if all that it uses is known there."""
    call = next(context.find(ast.Call), None)
    if not isinstance(call, ast.Call) or isinstance(context.parents.get(call), FunctionNode):
        return  # a decorator re-creates it wherever it is written
    function = context.function(call)
    name = function.name.strip("_") if function is not None else "function"
    name = context.fresh(f"_{name}_jitted")
    yield from context.hoisted(call, name, f"Jit it once, as `{name}`")
