"""Functions that stay functions in a jaxpr: jit, custom derivatives, remat."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.custom_batching import custom_vmap, sequential_vmap
from jax.custom_derivatives import linear_call

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


@program()
def jit_called_twice_on_equal_shapes() -> Call:
    @jax.jit
    def layer(w: Any, x: Any) -> Any:
        return jnp.tanh(w @ x)

    return called(lambda w, x: layer(w, layer(w, x)) + layer(w, x), floats(3, 3), floats(3))


@program()
def jit_called_on_other_shapes() -> Call:
    @jax.jit
    def norm(x: Any) -> Any:
        return jnp.sqrt((x * x).sum())

    return called(lambda a, b: norm(a) + norm(b), floats(3), floats(2, 2))


@program()
def jit_with_static_and_donated_arguments() -> Call:
    @partial(jax.jit, static_argnames="mode", donate_argnums=0)
    def update(state: Any, grad: Any, mode: str) -> Any:
        return state - grad if mode == "descend" else state + grad

    def train(state: Any, grad: Any) -> Any:
        return update(state * 1, grad, mode="descend")

    return called(train, floats(3), floats(3) * 2)


@program()
def jit_itself_with_donation() -> Call:
    return called(jax.jit(lambda s, g: s - g, donate_argnums=0), floats(4), floats(4) * 2)


@program()
def jit_inlined_and_unused_kept() -> Call:
    inlined = jax.jit(lambda x: x * 2 + 1, inline=True)
    kept = jax.jit(lambda x, y: x + 1, keep_unused=True)
    return called(lambda x: kept(inlined(x), x), floats(3))


@program()
def jit_of_a_closure_over_an_array() -> Call:
    table = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2

    @jax.jit
    def look_up(i: Any) -> Any:
        return jnp.asarray(table)[i]

    return called(lambda i: look_up(i) + look_up(i + 1), np.int32(1))


@program()
def jit_of_nothing() -> Call:
    return called(lambda: jax.jit(lambda: (jnp.ones(3), 2))())


@program()
def jit_names_with_dots_and_keywords() -> Call:
    def make() -> Any:
        class Holder:
            @staticmethod
            @jax.jit
            def method(x: Any) -> Any:
                return x + 1

        return Holder.method

    def lambda_(x: Any) -> Any:
        return jax.jit(lambda v: v * 3)(make()(x))

    lambda_.__name__ = "class"
    return called(jax.jit(lambda_), floats(2))


@program()
def mutual_functions_of_the_same_name() -> Call:
    def inner(scale: float) -> Any:
        @jax.jit
        def apply(x: Any) -> Any:
            return x * scale

        return apply

    return called(lambda x: inner(2.0)(x) + inner(3.0)(inner(2.0)(x)), floats(3))


@jax.custom_jvp
def log1pexp(x: Any) -> Any:
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


@program()
def custom_jvp_whose_rule_is_never_traced() -> Call:
    return called(lambda x: log1pexp(x).sum(), floats(3) * 50)


@program()
def custom_jvp_under_vmap_and_grad() -> Call:
    return called(jax.vmap(jax.grad(log1pexp)), floats(4) * 30)


@program()
def custom_jvp_with_nondifferentiable_arguments() -> Call:
    @partial(jax.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f: Any, x: Any, n: int) -> Any:
        return f(x) * n

    @apply.defjvp
    def rule(f: Any, n: int, primals: Any, tangents: Any) -> Any:
        return apply(f, primals[0], n), 10.0 * tangents[0]

    return called(lambda x: apply(jnp.sin, x, 3).sum(), floats(3))


@program()
def custom_jvp_of_several_arguments_and_results() -> Call:
    @jax.custom_jvp
    def polar(x: Any, y: Any) -> Any:
        return {"r": jnp.hypot(x, y), "phi": jnp.arctan2(y, x)}

    @polar.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        out = polar(*primals)
        return out, {"r": tangents[0] * 2, "phi": tangents[1] + out["r"]}

    return called(lambda x, y: polar(x, y), floats(2, low=1), floats(2, low=2))


@program()
def custom_jvp_with_symbolic_zeros() -> Call:
    @jax.custom_jvp
    def times(x: Any, y: Any) -> Any:
        return x * y

    def rule(primals: Any, tangents: Any) -> Any:
        x, y = primals
        tx, ty = tangents
        one = (
            jnp.zeros_like(x)
            if type(tx) is not type(x) and tx.__class__.__name__ == "SymbolicZero"
            else tx * y
        )
        other = jnp.zeros_like(x) if ty.__class__.__name__ == "SymbolicZero" else ty * x * 2
        return times(x, y), one + other

    times.defjvp(rule, symbolic_zeros=True)
    return called(lambda x, y: times(x, y).sum(), floats(3), floats(3))


@jax.custom_vjp
def clip_gradient(low: Any, high: Any, x: Any) -> Any:
    return x


def _clip_forward(low: Any, high: Any, x: Any) -> Any:
    return x, (low, high)


def _clip_backward(kept: Any, g: Any) -> Any:
    low, high = kept
    return None, None, jnp.clip(g, low, high)


clip_gradient.defvjp(_clip_forward, _clip_backward)


@program()
def custom_vjp_whose_rules_are_never_traced() -> Call:
    return called(lambda x: jnp.sum(clip_gradient(-0.1, 0.1, x) ** 3), floats(5) * 3)


@program()
def custom_vjp_in_its_gradient() -> Call:
    return called(jax.grad(lambda x: jnp.sum(clip_gradient(-0.1, 0.1, x) ** 3)), floats(5) * 3)


@program()
def custom_vjp_with_nondifferentiable_arguments() -> Call:
    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f: Any, a: Any, guess: Any) -> Any:
        return lax.fori_loop(0, 20, lambda _, x: f(a, x), guess)

    def forward(f: Any, a: Any, guess: Any) -> Any:
        found = fixed_point(f, a, guess)
        return found, (a, found)

    def backward(f: Any, kept: Any, g: Any) -> Any:
        a, found = kept
        _, pull = jax.vjp(lambda a: f(a, found), a)
        return (*pull(g * 2), jnp.zeros_like(found))

    fixed_point.defvjp(forward, backward)

    def cosine(a: Any) -> Any:
        return fixed_point(lambda a, x: jnp.cos(a * x), a, 0.5)

    return called(cosine, np.float32(0.7))


@program()
def custom_vjp_of_pytrees_with_integers() -> Call:
    @jax.custom_vjp
    def pick(tree: Any, i: Any) -> Any:
        return {"out": tree["a"][i] * 2, "rest": (tree["b"], None)}

    def forward(tree: Any, i: Any) -> Any:
        return pick(tree, i), (tree["a"].shape[0], i)

    def backward(kept: Any, g: Any) -> Any:
        _, i = kept
        return {"a": jnp.zeros(3).at[i].set(g["out"] * 5), "b": g["rest"][0]}, None

    pick.defvjp(forward, backward)

    def run(tree: Any, i: Any) -> Any:
        out = pick(tree, i)
        return out["out"] + out["rest"][0].sum()

    return called(run, {"a": floats(3), "b": floats(2)}, np.int32(1))


@program()
def custom_vjp_within_a_scan_within_a_jit() -> Call:
    @jax.jit
    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (clip_gradient(-1.0, 1.0, jnp.sin(c) * 2), c), x, None, 4)

    return called(lambda x: run(x)[0].sum(), floats(3))


@program()
def custom_rules_that_capture_arrays() -> Call:
    scale = jnp.array([1.0, 2.0, 3.0])

    @jax.custom_vjp
    def scaled(x: Any) -> Any:
        return x * scale

    scaled.defvjp(lambda x: (x * scale, x), lambda x, g: (g * scale * scale,))
    return called(lambda x: scaled(x).sum(), floats(3))


@program()
def remat_with_its_defaults() -> Call:
    @jax.checkpoint
    def block(w: Any, x: Any) -> Any:
        return jnp.sin(jnp.dot(w, jnp.sin(x)))

    return called(lambda w, x: block(w, block(w, x)).sum(), floats(3, 3), floats(3))


@program()
def remat_with_policies() -> Call:
    policies = jax.checkpoint_policies

    def block(w: Any, x: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.dot(w, jnp.sin(x)), "dot"))

    def run(w: Any, x: Any) -> Any:
        for policy in (
            policies.everything_saveable,
            policies.nothing_saveable,
            policies.dots_saveable,
            policies.dots_with_no_batch_dims_saveable,
            policies.save_only_these_names("dot"),
            policies.save_anything_except_these_names("dot"),
            policies.save_any_names_but_these("dot"),
        ):
            x = jax.checkpoint(block, policy=policy)(w, x)
        return x.sum()

    return called(run, floats(3, 3), floats(3))


@program()
def remat_with_composed_and_offloading_policies() -> Call:
    policies = jax.checkpoint_policies
    either = policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("dot", "sum")
    )
    offload = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["dot"],
        names_which_can_be_offloaded=[],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def run(x: Any) -> Any:
        x = jax.checkpoint(lambda v: checkpoint_name(jnp.sin(v), "dot"), policy=either)(x)
        return jax.checkpoint(lambda v: checkpoint_name(jnp.cos(v), "dot"), policy=offload)(x)

    return called(run, floats(3))


@program()
def remat_without_the_barrier_and_its_gradient() -> Call:
    block = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), prevent_cse=False)
    return called(jax.value_and_grad(lambda x: block(x).sum()), floats(3))


@program()
def remat_with_static_arguments() -> Call:
    block = jax.checkpoint(lambda x, flip: -x if flip else x * x, static_argnums=(1,))
    return called(lambda x: block(x, True) + block(x, False), floats(3))


@program()
def named_values_and_scopes() -> Call:
    def run(x: Any) -> Any:
        with jax.named_scope("encoder"):
            h = checkpoint_name(jnp.tanh(x), "hidden")
            with jax.named_scope("attention"):
                h = h * 2
        return jax.named_call(jnp.sin, name="decoder")(h)

    return called(run, floats(3))


@program()
def custom_linear_solve_of_a_matrix() -> Call:
    def solve(a: Any, b: Any) -> Any:
        return lax.custom_linear_solve(
            lambda x: a @ x,
            b,
            solve=lambda _, y: jnp.linalg.solve(a, y),
            transpose_solve=lambda _, y: jnp.linalg.solve(a.T, y),
        )

    return called(solve, floats(3, 3) + 2 * np.eye(3, dtype=np.float32), floats(3))


@program()
def custom_linear_solve_of_a_symmetric_operator() -> Call:
    def solve(d: Any, b: Any) -> Any:
        x, extra = lax.custom_linear_solve(
            lambda x: d * x, b, lambda _, y: (y / d, jnp.int32(1)), symmetric=True, has_aux=True
        )
        return x, extra

    return called(solve, floats(3, low=1, high=2), floats(3))


# From JAX 0.12 on its derivatives compare functions by identity.
@program(gradient=jax.__version_info__ < (0, 12))
def custom_root_of_a_function() -> Call:
    def root(a: Any) -> Any:
        return lax.custom_root(
            lambda x: x**3 - a,
            jnp.ones_like(a),
            lambda f, x: lax.fori_loop(0, 30, lambda _, x: x - f(x) / (3 * x * x), x),
            lambda g, y: y / g(jnp.ones_like(y)),
        )

    return called(root, np.float32(2))


@program()
def conjugate_gradients() -> Call:
    a = floats(4, 4)
    matrix = a @ a.T + 4 * np.eye(4, dtype=np.float32)
    return called(lambda m, b: jax.scipy.sparse.linalg.cg(lambda v: m @ v, b)[0], matrix, floats(4))


@program(gradient=False)
def linear_call_with_residuals() -> Call:
    def run(x: Any, y: Any) -> Any:
        return linear_call(lambda r, v: v / r, lambda r, t: t / r, x, y)

    return called(run, floats(3, low=1, high=2), floats(3))


@program(gradient=False)
def custom_vmap_rule_never_traced() -> Call:
    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return x * y

    @f.def_vmap
    def rule(size: int, batched: Any, x: Any, y: Any) -> Any:
        return x * y + 100.0, True

    return called(lambda x, y: f(x, y) + 1, np.float32(2), np.float32(3))


@program()
def sequential_vmap_of_a_function() -> Call:
    f = sequential_vmap(lambda x: jnp.sin(x) * 2)
    return called(jax.vmap(f), floats(4))


@program()
def closure_converted_function() -> Call:
    def run(x: Any, y: Any) -> Any:
        f, captured = jax.closure_convert(lambda v: v * x, y)
        return f(y, *captured)

    return called(run, floats(3), floats(3))


@program(gradient=False)
def composite_operation() -> Call:
    @partial(lax.composite, name="my.tangent", version=2)
    def tangent(x: Any, *, scale: float) -> Any:
        return jnp.sin(x) / jnp.cos(x) * scale

    return called(lambda x: tangent(x, scale=2.0), floats(3))


@program()
def optimization_barrier_of_several() -> Call:
    return called(lambda x, y: lax.optimization_barrier((x * 2, {"y": y, "n": None})), floats(2), 3)


@program(gradient=False)
def linearized_and_transposed() -> Call:
    def run(x: Any, t: Any) -> Any:
        value, tangent = jax.linearize(lambda v: jnp.sin(v) * v, x)
        (back,) = jax.linear_transpose(tangent, x)(t)
        return value, tangent(t), back

    return called(run, floats(3), floats(3) * 2)


@program()
def an_integer_output_beside_a_float() -> Call:
    def run(x: Any, n: Any) -> Any:
        return jax.jit(lambda a, b: (b, a.sum(), b + 1))(x, n)

    return called(run, floats(3), integers(2))
