"""Calls of other programs: jit, checkpoint, functions with custom derivative rules."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import jax

from jaxsight.interpreters.compat import parameters as read
from jaxsight.interpreters.compat.staging import Program, folded, is_literal, opened
from jaxsight.interpreters.same import Comparison
from jaxsight.sourcerizer.equations.claims import equation_key
from jaxsight.sourcerizer.equations.registry import STRUCTURES
from jaxsight.sourcerizer.errors import Unsourceable
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.rules.functions.lineax import linear_solve
from jaxsight.sourcerizer.rules.functions.symbolic_zeros import with_symbolic_zeros
from jaxsight.sourcerizer.text.exprs import NONE, Atom, Attribute, Expr, call, tuple_
from jaxsight.sourcerizer.text.layout import flat
from jaxsight.sourcerizer.text.names import identifier
from jaxsight.sourcerizer.text.statements import Assign, Effect, Function, Return, Statement
from jaxsight.sourcerizer.values import public_names, scalars, spelling
from jaxsight.sourcerizer.values.spelling import value
from jaxsight.sourcerizer.writing.results import argument_bases, nested_results, passed_as, sequence
from jaxsight.sourcerizer.writing.scope import Scope


def closed_function(
    scope: Scope, name: str, program: Program, unnamed: str | Sequence[str] = "x"
) -> Function:
    """Return a program that captures nothing as a function of its inputs.

    It must be placed at the top of the module.
    """
    inner = Scope.top(scope.writer)
    parameters = inner.parameters(program.jaxpr.invars, argument_bases(program, unnamed))
    results = inner.program(program)
    return Function(name, tuple(parameters), [*inner.body, Return(sequence(results))])


def jit_options(params: dict[str, Any]) -> dict[str, Expr]:
    """Return the options of `jax.jit`, from the parameters of the equation."""
    options: dict[str, Expr] = {}
    for side in ("in", "out"):
        shardings = params[f"{side}_shardings"]
        layouts = params.get(f"{side}_layouts") or (None,) * len(shardings)
        if not all(map(read.is_unspecified, shardings)) or any(
            given is not None for given in layouts
        ):
            spelled = [_placed(*pair) for pair in zip(shardings, layouts, strict=True)]
            options[f"{side}_shardings"] = sequence(spelled) if side == "out" else tuple_(spelled)
    if any(params["donated_invars"]):
        donated = tuple(i for i, given in enumerate(params["donated_invars"]) if given)
        options["donate_argnums"] = value(donated[0] if len(donated) == 1 else donated)
    if params["keep_unused"]:
        options["keep_unused"] = Atom("True")
    match params.get("inline"):
        case enum.Enum(name="AUTO"):  # from JAX 0.12 on
            pass
        case enum.Enum(name="JAX_LATE"):
            options["inline"] = Atom("True")
        case enum.Enum() as other:
            options["inline"] = value(other)
        case True:
            raise Unsourceable("jit", "its inline=True makes JAX inline it while tracing")
    if params.get("compiler_options_kvs"):
        options["compiler_options"] = value(dict(params["compiler_options_kvs"]))
    return options


def decorated(
    function: Function, decorator: Any, path: str, options: dict[str, Expr]
) -> list[Statement]:
    """Decorate a function: with `@decorator(options)`, or by an assignment after it.

    The assignment is for versions of JAX whose decorator takes no options without the function.
    """
    if (
        options
        and inspect.signature(decorator).parameters["fun"].default is inspect.Parameter.empty
    ):
        return [function, Assign(function.name, call(path, Atom(function.name), **options))]
    function.decorators.append(call(path, **options) if options else Atom(path))
    return [function]


def _placed(sharding: Any, layout: Any) -> Expr:
    """Return the sharding and layout of an argument or result of a jitted function, if given."""
    where = NONE if read.is_unspecified(sharding) else value(sharding)
    if layout is None:
        return where
    parts = [spelling.layout(layout)] + ([where] if where != NONE else [])
    return call(public_names.imported("jax.experimental.layout", "Format"), *parts)


@STRUCTURES("jit", "pjit")
def jit(scope: Scope, found: Any) -> Proved | None:
    group = found if isinstance(found, list) else [found]
    solution = linear_solve(scope, group)
    if solution is not None or len(group) > 1:
        return solution
    (equation,) = group
    program = opened(equation.params["jaxpr"])
    if scope.writer.options.inline:
        return in_place(scope, program, equation)
    base = identifier(str(equation.params["name"]), "function")
    options = jit_options(equation.params)

    def build(name: str) -> list[Statement]:
        return decorated(closed_function(scope, name, program), jax.jit, "jax.jit", options)

    key = ("jit", id(equation.params["jaxpr"]), str(options))
    function = scope.writer.functions.shared(key, equation.params["jaxpr"], base, build)
    operands = scope.operands(equation.invars, program.jaxpr.invars)
    return Proved(call(function, *operands), nested_results(len(equation.outvars)))


def in_place(scope: Scope, program: Program, equation: Any) -> Proved:
    """Write a program's equations in place of its call."""
    literals: dict[int, Any] = {}
    for var, atom in zip(program.jaxpr.invars, equation.invars, strict=True):
        if is_literal(atom):
            literals[id(var)] = atom
        else:
            scope.alias(var, atom)

    def with_literals(atoms: Sequence[Any]) -> list[Any]:
        return [literals.get(id(atom), atom) for atom in atoms]

    kept: list[Any] = []
    for each in program.jaxpr.eqns:
        invars = with_literals(each.invars)
        if (number := folded(each, invars)) is not None:
            literals[id(each.outvars[0])] = number
        else:
            kept.append(each.replace(invars=invars))
    inside = SimpleNamespace(
        constvars=program.jaxpr.constvars,
        eqns=kept,
        outvars=with_literals(program.jaxpr.outvars),
    )
    results = scope.program(Program(inside, program.consts))
    return Proved(sequence(results), nested_results(len(results)))


@STRUCTURES("remat2", "remat", "checkpoint")
def checkpoint(scope: Scope, equation: Any) -> Proved:
    params = equation.params
    program = opened(params["jaxpr"])
    base = _named(program, "checkpointed")
    policy = policy_expr(params["policy"])
    differentiated = params["differentiated"]
    options: dict[str, Expr] = {}
    if params["prevent_cse"] is not True:
        options["prevent_cse"] = value(params["prevent_cse"])
    if policy != NONE:
        options["policy"] = policy

    operands = scope.operands(equation.invars, program.jaxpr.invars)

    def build(name: str) -> list[Statement]:
        function = closed_function(scope, name, program, passed_as(operands))
        if differentiated:
            return [function]
        return decorated(function, jax.checkpoint, "jax.checkpoint", options)

    key = ("remat", id(params["jaxpr"]), differentiated, str(options))
    function = scope.writer.functions.shared(key, params["jaxpr"], base, build)
    count = len(equation.outvars)
    if not differentiated:
        return Proved(call(function, *operands), nested_results(count))
    scope.writer.bound.append(equation.primitive.name)
    traced = call("jax.make_jaxpr", function)
    given = scope.several(operands, "operands")
    jaxpr = scope.names.fresh("jaxpr")
    scope.body.append(Assign(jaxpr, Attribute(call(traced, *given), "jaxpr")))
    bound = call(
        public_names.primitive(equation.primitive).dot("bind"),
        *given,
        jaxpr=Atom(jaxpr),
        prevent_cse=value(params["prevent_cse"]),
        differentiated=Atom("True"),
        policy=policy,
    )
    return Proved(bound, tuple(range(count)))


def policy_expr(policy: Any) -> Expr:
    """Return an expression for a checkpoint policy; raise `Unwritable` if it has none.

    It is a name in `jax.checkpoint_policies`, a call there, or the path of an import.
    """
    if policy is None:
        return NONE
    for name in _policies():
        if getattr(jax.checkpoint_policies, name) == policy:
            return Atom(f"jax.checkpoint_policies.{name}")
    for name in _policies():
        maker = getattr(jax.checkpoint_policies, name)
        for args, kwargs in _makings(maker, _held(policy)):
            try:
                made = maker(*args, **kwargs)
            except (TypeError, ValueError, AttributeError):
                continue
            if made is not True and made is not False and Comparison().values(made, policy):
                spelled = [_policy_part(arg) for arg in args]
                named = {key: _policy_part(given) for key, given in kwargs.items()}
                return call(f"jax.checkpoint_policies.{name}", *spelled, **named)
    return value(policy)


def _policy_part(given: Any) -> Expr:
    return policy_expr(given) if callable(given) else value(given)


def _policies() -> list[str]:
    return [name for name in dir(jax.checkpoint_policies) if not name.startswith("_")]


def _held(policy: Any) -> dict[str, Any]:
    """Return the arguments of a policy: fields of an object, or variables of a closure."""
    if dataclasses.is_dataclass(policy):
        return {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    if getattr(policy, "__closure__", None):
        cells = [cell.cell_contents for cell in policy.__closure__]
        return dict(zip(policy.__code__.co_freevars, cells, strict=True))
    return {}


def _makings(maker: Any, held: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if not held:
        yield (), {}
        return
    values_ = list(held.values())
    if len(values_) == 1 and isinstance(values_[0], (set, frozenset, tuple, list)):
        yield tuple(sorted(values_[0])), {}
    try:
        wanted = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return
    bare = {key.strip("_"): given for key, given in held.items()}
    if set(wanted) <= set(bare):
        yield (), {key: _listed(bare[key]) for key in wanted}
    if all(callable(given) for given in values_):
        yield tuple(values_), {}


def _listed(given: Any) -> Any:
    return sorted(given) if isinstance(given, (set, frozenset)) else given


def _named(program: Program, fallback: str) -> str:
    info = getattr(program.jaxpr, "debug_info", None)
    name = str(getattr(info, "func_name", "") or "")
    return identifier(name.rpartition(".")[2] or fallback, fallback) if name else fallback


@STRUCTURES("custom_jvp_call")
def custom_jvp(scope: Scope, equation: Any) -> Proved:
    params = equation.params
    program = opened(params["call_jaxpr"])
    captured = params["num_consts"]
    base = _named(program, "function")
    if params["symbolic_zeros"] and (count := read.jvp_inputs(params)) > read.MOST_PATTERNS:
        why = (
            f"its rule asks for symbolic zeros of {count} tangents, and at most "
            f"{read.MOST_PATTERNS} are supported"
        )
        return _with_rules_passed_in(scope, equation, why)

    def build(home: Scope, name: str) -> list[Statement]:
        function = _function(home, name, program, equation.invars[:captured])
        function.decorators.append(Atom("jax.custom_jvp"))
        try:
            with scope.writer.functions.rule():
                if params["symbolic_zeros"]:
                    bases = argument_bases(program)[captured:]
                    return [function, *with_symbolic_zeros(home, name, params, bases, base)]
                derivative = rule_of(home, name)
        except read.Refused as error:
            if isinstance(error, read.Outlived) and home is not scope:
                raise
            derivative = Function(f"{name}_jvp", ("primals", "tangents"), [_refusal(base, error)])
        if params["symbolic_zeros"]:
            zeros = Atom("True")
            registered = call(f"{name}.defjvp", Atom(derivative.name), symbolic_zeros=zeros)
            return [function, derivative, Effect(registered)]
        derivative.decorators.append(Atom(f"{name}.defjvp"))
        return [function, derivative]

    def rule_of(home: Scope, name: str) -> Function:
        rule = read.jvp_rule(params)
        jvp = home.inner()
        bases = argument_bases(program)[captured:]
        named = [jvp.names.fresh(base) for base in bases]
        tangents = [jvp.names.fresh(f"{name}_dot") for name in named]
        jvp.names.keep("primals")
        jvp.names.keep("tangents")
        for var, found in zip(rule.program.jaxpr.invars, [*named, *tangents], strict=True):
            jvp.write(var, Atom(found))
        jvp.body.append(Assign(tuple_(map(Atom, named)), Atom("primals")))
        jvp.body.append(Assign(tuple_(map(Atom, tangents)), Atom("tangents")))
        results = iter(jvp.program(rule.program))
        outputs = [next(results) for _ in rule.zeros]
        dots = [
            _zero_tangent(var.aval) if zero else next(results)
            for var, zero in zip(program.jaxpr.outvars, rule.zeros, strict=True)
        ]
        body: list[Statement] = [
            *jvp.body,
            Return(tuple_([sequence(outputs), sequence(dots)])),
        ]
        return Function(f"{name}_jvp", ("primals", "tangents"), body)

    return _custom(scope, equation, program, captured, base, build)


def _with_rules_passed_in(scope: Scope, equation: Any, why: str) -> Proved:
    """Return a call of a function that is written, with rules that the caller passes."""
    params = equation.params
    program = opened(params["call_jaxpr"])
    base = _named(program, "function")
    operands = scope.operands(equation.invars, program.jaxpr.invars)

    def build(name: str) -> list[Statement]:
        function = closed_function(scope, name, program, passed_as(operands))
        function.decorators.append(scope.writer.passed.rules_of(equation, base, why))
        return [function]

    key = ("ruled", equation_key(equation))
    function = scope.writer.functions.shared(key, equation, base, build)
    return Proved(call(function, *operands), nested_results(len(equation.outvars)))


def _refusal(name: str, why: read.Refused) -> Statement:
    """Return the body of a rule for a function that cannot be differentiated."""
    said = scalars.text(textwrap.shorten(f"no derivative of {name}: {why}", 80, placeholder="…"))
    return Effect(call("raise NotImplementedError", said))


def _zero_tangent(aval: Any) -> Expr:
    tangent = aval.to_tangent_aval()
    if (
        str(tangent.dtype) == "float0"
        or tangent.dtype.names is not None
        or tangent.dtype.kind == "V"
    ):
        return call("np.zeros", value(tangent.shape), Atom("jax.dtypes.float0"))
    return call("jnp.zeros", value(tangent.shape), scalars.dtype(tangent.dtype))


def _function(scope: Scope, name: str, program: Program, captured: Sequence[Any]) -> Function:
    inner = scope.inner()
    inner.capture(program, captured)
    count = len(captured)
    parameters = inner.parameters(program.jaxpr.invars[count:], argument_bases(program)[count:])
    results = inner.program(program)
    return Function(name, tuple(parameters), [*inner.body, Return(sequence(results))])


def _custom(
    scope: Scope,
    equation: Any,
    program: Program,
    captured: int,
    base: str,
    build: Callable[[Scope, str], list[Statement]],
) -> Proved:
    """Return a call of a function with custom rules; it is shared if it captures nothing."""
    count = len(equation.outvars)
    operands = scope.operands(equation.invars[captured:], program.jaxpr.invars[captured:])

    def shared(name: str) -> list[Statement]:
        return build(Scope.top(scope.writer), name)

    if not captured or all(map(is_literal, equation.invars[:captured])):
        identity = read.rule_identity(equation.params)
        with contextlib.suppress(read.Outlived):  # a rule that captures values stays here
            name = scope.writer.functions.custom(identity, program, base, shared)
            return Proved(call(name, *operands), nested_results(count))
    given = [_known(scope, atom) for atom in equation.invars[:captured]]
    types = [var.aval for var in program.jaxpr.invars]
    key = (read.rule_identity(equation.params), given, types)
    for known, around in scope.writer.functions.inside:
        if known == key:  # its own rule calls it
            return Proved(call(around, *operands), nested_results(count))
    own = scope.names.fresh(base)
    scope.writer.functions.inside.append((key, own))
    try:
        scope.body.extend(build(scope, own))
    finally:
        scope.writer.functions.inside.pop()
    return Proved(call(own, *operands), nested_results(count))


@STRUCTURES("custom_vjp_call")
def custom_vjp(scope: Scope, equation: Any) -> Proved:
    params = equation.params
    program = opened(params["call_jaxpr"])
    captured = params["num_consts"]
    if params["symbolic_zeros"]:
        why = "its rules ask for symbolic zeros, which are supported for custom_jvp only"
        return _with_rules_passed_in(scope, equation, why)
    base = _named(program, "function")
    count = len(equation.outvars)

    def build(home: Scope, name: str) -> list[Statement]:
        function = _function(home, name, program, equation.invars[:captured])
        function.decorators.append(Atom("jax.custom_vjp"))
        pair = f"{name}_fwd", f"{name}_bwd"
        try:
            with scope.writer.functions.rule():
                made = rules_of(home, *pair)
        except read.Refused as error:
            if isinstance(error, read.Outlived) and home is not scope:
                raise
            pair = f"{name}_refused", f"{name}_refused"
            made = [Function(pair[0], ("*_",), [_refusal(base, error)])]
        except read.Unreadable as error:
            raise Unsourceable("custom_vjp_call", str(error)) from error
        return [function, *made, Effect(call(f"{name}.defvjp", *map(Atom, pair)))]

    def rules_of(home: Scope, forward_name: str, backward_name: str) -> list[Function]:
        rules = read.vjp_rules(params)
        forward = home.inner()
        named = forward.parameters(rules.forward.jaxpr.invars, argument_bases(program)[captured:])
        results = forward.program(rules.forward)
        own = iter(results)
        residuals = [
            next(own) if source is None else Atom(named[source]) for source in rules.forwarded
        ]
        outputs = list(own)
        forward_function = Function(
            forward_name,
            tuple(named),
            [*forward.body, Return(tuple_([sequence(outputs), tuple_(residuals)]))],
        )
        backward = home.inner()
        backward.names.keep("residuals")
        inputs = rules.backward.jaxpr.invars
        kept = backward.parameters(inputs[: rules.residuals], _residual_bases(rules, named))
        cotangents = backward.parameters(
            inputs[rules.residuals :], ["ct"] * (len(inputs) - rules.residuals)
        )
        parameter = cotangents[0]
        if count != 1:
            parameter = backward.names.fresh("cts")
        if kept:
            backward.body.append(Assign(tuple_(map(Atom, kept)), Atom("residuals")))
        if count > 1:
            backward.body.append(Assign(tuple_(map(Atom, cotangents)), Atom(parameter)))
        given = iter(backward.program(rules.backward))
        answers = [NONE if zero else next(given) for zero in rules.zeros]
        backward_function = Function(
            backward_name,
            ("residuals", parameter),
            [*backward.body, Return(tuple_(answers))],
        )
        return [forward_function, backward_function]

    return _custom(scope, equation, program, captured, base, build)


def _known(scope: Scope, atom: Any) -> str:
    """Return the expression of a captured value; empty if only dead code reads it."""
    try:
        return flat(scope.operand(atom))
    except KeyError:
        return ""


def _residual_bases(rules: read.VjpRules, named: Sequence[str]) -> list[str]:
    return ["residual" if source is None else named[source] for source in rules.forwarded]
