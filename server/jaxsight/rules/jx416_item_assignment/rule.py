"""JX416: an array of JAX is changed in place, or its updated copy is dropped."""

# Longer than most rules: errors, statements that drop an update, and assignments to new arrays are
# three searches.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.failure_text import assigns_item, is_a
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.in_place import in_place, shortened
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import NodeViolation, Rule, Violation
from jaxsight.rules.text.expressions import dotted, parsed_statement, strings_in
from jaxsight.rules.text.item_updates import (
    discarded,
    is_mask,
    item_target,
    masked,
    target_of,
    updated,
    updated_array,
)
from jaxsight.rules.text.statements import written
from jaxsight.rules.wording import cut, quoted

RULE = Rule(__name__, "JAX array is changed in place, or its updated copy is discarded.", word="[")

_IN_NUMPY = re.compile(
    r"(np|numpy)\.(\w+\.at|copyto|put|place|putmask|fill_diagonal|put_along_axis)\("
)
"""Functions of NumPy that change an array in place."""
_NO_FILL = re.compile(r"(Tracer|ArrayImpl)'? (object )?has no attribute '?fill\b")
_PAGE = "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html"
_IN_PLACE = (
    "JAX arrays cannot change; inside `jax.jit` XLA writes the update in place if the old array "
    "is not used again"
)
_NO_SCALAR = "can be converted to Python scalars"
_HELP = 60
"""Characters of the statement that a help shows, beside a few words."""


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize JAX's errors of changes in place, and NumPy's of traced values to store."""
    message, expression, line = error.message, error.expression, error.line.strip()
    statement = parsed_statement(line)
    subject, item, is_type_error = error.quoted(), error.quoted("an item"), error.is_a("TypeError")
    if is_type_error and "do not support in-place item assignment" in message:
        if expression.endswith("]"):
            assigned = _set(statement, expression)
            return _violation(f"cannot assign to {item}: JAX arrays are immutable", assigned)
        advice = "use a function of JAX that returns the result, such as `jax.random.permutation`"
    elif is_type_error and "_IndexUpdate" in message and _changes(statement):
        target = target_of(statement) if statement is not None else None
        update = quoted(ast.unparse(target) if target is not None else "", "`x.at[…]`")
        only = f"cannot assign to {update}, which only describes an update"
        return _violation(only, _set(statement, expression))
    elif error.is_a("AttributeError") and message == "__delitem__":
        return _violation(f"cannot delete {item}: JAX arrays are immutable", _deleted(statement))
    elif error.is_a("NotImplementedError", "ValueError") and "inplace=False" in message:
        call = re.fullmatch(r"([\w.]+)\((\w+)(,.*)?\)", " ".join(expression.split()))
        again = "x = f(x, inplace=False)"
        if call is not None:
            again = cut(f"{call[2]} = {call[1]}({call[2]}{call[3] or ''}, inplace=False)", _HELP)
        advice = f"assign the result: `{again}`"
    elif error.is_a("TypeError", "NotImplementedError") and _IN_NUMPY.match(expression):
        advice = "assign the updated copy: `x = x.at[idx].set(y)`, or `.add`, `.multiply`…"
    elif error.is_a("AttributeError") and _NO_FILL.search(message):
        advice = "assign a new array: `x = jnp.full_like(x, value)`"
    elif _stores(error) and assigns_item(expression, line):
        array = quoted(expression.partition("[")[0], "the array")
        return _violation(
            f"cannot assign a traced value to {subject} of a NumPy array",
            f"create {array} with `jnp`, and {_set(statement, expression)}",
            "NumPy needs the value, which is only known when the function runs",
        )
    else:
        return None
    return _violation(f"{subject} cannot change a JAX array in place", advice)


def _violation(message: str, help: str, why: str = _IN_PLACE) -> Violation:
    return Violation(message, help=help, notes=(why,), url=_PAGE)


def _changes(statement: ast.AST | None) -> bool:
    """Whether a statement assigns to an item; a statement on several lines may."""
    match statement:
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Subscript) for target in targets)
        case ast.AugAssign(target=target):
            return isinstance(target, ast.Subscript)
        case _:
            return statement is None


def _set(statement: ast.AST | None, expression: str) -> str:
    text = None
    if statement is not None:
        target = item_target(target_of(statement), merged=False)
        if target is not None and is_mask(target.indices[0]):
            text = masked(statement, written, "jnp")
        else:
            text = updated(statement, written)
    if text is None or len(text) > _HELP:  # without its value
        statement = parsed_statement(f"{expression} = _")
        text = updated(statement, written) if statement is not None else None
        text = text.replace("(_)", "(…)") if text is not None else ""
    text = text if text and len(text) <= _HELP else "x = x.at[idx].set(y)"
    return f"assign the updated copy: `{text}`"


def _deleted(statement: ast.AST | None) -> str:
    match statement:
        case ast.Delete(targets=[ast.Subscript(value=array, slice=ast.Constant() as index)]):
            name = ast.unparse(array)
            return f"assign what is left: `{name} = jnp.delete({name}, {ast.unparse(index)})`"
        case _:
            return "assign what is left: `x = jnp.delete(x, i)`, with a static `i`"


def _stores(error: RaisedError) -> bool:
    """Whether NumPy was to convert a traced value."""
    if error.is_a("TracerArrayConversionError"):
        return True
    cause = error.failure.cause
    return (
        error.is_a("ValueError")
        and error.message.startswith("setting an array element with a sequence")
        and cause is not None
        and (is_a(cause, "ConcretizationTypeError") or _NO_SCALAR in cause.message)
    )


_FRAME = re.compile(r"(^|_)(df|frame|dataframe|series|refs?)$|_ref\d*$", re.IGNORECASE)
_REFERENCES = frozenset(
    {"new_ref", "array_ref", "mutable_array", "empty_ref", "MutableArray", "Ref", "AbstractRef"}
)


@RULE.finds_in_text
def find(tree: ast.Module) -> Iterator[NodeViolation]:
    """Yield each statement that is only `x.at[i].set(y)`, and assignments to items of new arrays.

    Data frames have an `at` too, and references are changed in place.
    """
    yield from _to_new_arrays(tree)
    references = _references(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or (call := discarded(node)) is None:
            continue
        assert isinstance(call.func, ast.Attribute)
        assert isinstance(call.func.value, ast.Subscript)
        index, array = call.func.value.slice, written(updated_array(call))
        last = re.findall(r"\w+", array)[-1:]
        if any(_FRAME.search(name) or name in references for name in last):
            continue
        if list(strings_in(index)):
            continue
        text = written(call)
        assigned = f"{array} = {text}"
        yield NodeViolation(
            call,
            f"result of {quoted(text)} is discarded",
            help=f"assign it: `{assigned if len(assigned) <= _HELP else 'x = x.at[idx].set(y)'}`",
            notes=(f"{quoted(array)} does not change: JAX arrays are immutable",),
            severity="warning",
        )


_NEW = re.compile(
    r"(jnp|jax\.numpy)\.(zeros|ones|empty|full|arange|linspace|eye|identity|zeros_like|ones_like|"
    r"empty_like|full_like|array|asarray)"
)
"""Functions that return a new array."""


def _to_new_arrays(tree: ast.Module) -> Iterator[NodeViolation]:
    """Yield assignments to items of names that a function only binds to new arrays."""
    for function in ast.walk(tree):
        new = _new_arrays(function) if isinstance(function, ast.FunctionDef) else ()
        for node in ast.walk(function) if new else ():
            if not isinstance(node, ast.Assign | ast.AugAssign):
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                match target:
                    case ast.Subscript(value=ast.Name(id=name)) if name in new:
                        text = written(target)
                        yield NodeViolation(
                            target,
                            f"cannot assign to {quoted(text)}: JAX arrays are immutable",
                            help=_set(node, text),
                            notes=(_IN_PLACE,),
                        )


def _new_arrays(function: ast.FunctionDef) -> set[str]:
    """Return the names that a function binds to new arrays and to nothing else."""
    new, others, bindings = set[str](), set[str](), set[ast.AST]()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.Call(func=made)):
                if _NEW.fullmatch(dotted(made)):  # comes before its target
                    new.add(name)
                    bindings.add(target)
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) if node not in bindings:
                others.add(name)
    return new - others


def _references(tree: ast.Module) -> set[str]:
    """Return the names that a statement binds to references, or annotates so."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                if dotted(function).rpartition(".")[2] in _REFERENCES:
                    names.add(name)
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                if _REFERENCES & set(re.findall(r"\w+", ast.unparse(annotation))):
                    names.add(name)
    return names


# The fix: assign the updated copy of an array, for all changes in place of a function at once.


@RULE.corrects("`x = x.at[i].set(y)`, and `.add`, `.multiply` and others for `+=`, `*=`…")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the assignment of a dropped update, else updates in place of item assignments."""
    for statement in (context.node, next(context.ancestors(context.node), None)):
        if isinstance(statement, ast.stmt) and (call := discarded(statement)) is not None:
            text = f"{context.text(updated_array(call))} = {context.text(call)}"
            title = f"Assign the result: `{shortened(text)}`"
            yield context.replaced(statement, text, title, same=False)
            return
    yield from in_place(context)
