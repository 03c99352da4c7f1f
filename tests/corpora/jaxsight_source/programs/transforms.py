"""What transformations make of functions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.jaxprs.same.parameters import DEEPEST_RULES
from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers, program


def _network(params: Any, x: Any) -> Any:
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def _params() -> Any:
    sizes = [3, 5, 4, 2]
    return [{"w": floats(a, b) / 2, "b": floats(b) / 3} for a, b in pairwise(sizes)]


def _loss(params: Any, x: Any, labels: Any) -> Any:
    scores = jax.nn.log_softmax(jax.vmap(_network, (None, 0))(params, x))
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


@program()
def gradient_of_a_network() -> Call:
    return called(jax.grad(_loss), _params(), floats(6, 3), integers(6, modulus=2))


@program()
def training_step_of_a_network() -> Call:
    @jax.jit
    def step(params: Any, x: Any, labels: Any) -> Any:
        value, grads = jax.value_and_grad(_loss)(params, x, labels)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return called(step, _params(), floats(6, 3), integers(6, modulus=2))


@program()
def hessian_of_a_function() -> Call:
    return called(jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3 * x[::-1])), floats(4))


@program()
def jacobians_forwards_and_backwards() -> Call:
    def f(x: Any) -> Any:
        return {"a": jnp.outer(x, x).sum(0), "b": x[0] * x}

    return called(lambda x: (jax.jacfwd(f)(x), jax.jacrev(f)(x)), floats(3))


@program()
def third_derivative_of_tanh() -> Call:
    return called(jax.grad(jax.grad(jax.grad(jnp.tanh))), np.float32(0.5))


@program()
def jvp_and_vjp_with_auxiliaries() -> Call:
    def run(x: Any, t: Any) -> Any:
        def f(v: Any) -> Any:
            return jnp.sin(v) * v, {"kept": v + 1, "label": 3}

        out = jax.jvp(f, (x,), (t,), has_aux=True)
        value, pull, aux = jax.vjp(f, x, has_aux=True)
        return out, value, pull(t), aux

    return called(run, floats(3), floats(3) * 2)


@program()
def holomorphic_gradient() -> Call:
    return called(jax.grad(lambda z: jnp.sin(z) * z**2, holomorphic=True), np.complex64(1 + 2j))


@program(gradient=False)
def jet_of_a_function() -> Call:
    from jax.experimental.jet import jet

    return called(
        lambda x: jet(lambda v: jnp.sin(v) * v, (x,), ((x * 0 + 1, x * 0),)), np.float32(0.5)
    )


@program()
def vmap_with_axes_in_trees() -> Call:
    def f(tree: Any, x: Any) -> Any:
        return {"s": tree["a"] @ x, "t": tree["b"] + 1}

    mapped = jax.vmap(f, in_axes=({"a": 1, "b": None}, 0), out_axes={"s": 0, "t": None})
    return called(mapped, {"a": floats(4, 3), "b": floats(2)}, floats(3, 4))


@program()
def vmap_with_collectives() -> Call:
    def f(x: Any) -> Any:
        i = lax.axis_index("b")
        total = lax.psum(x, "b")
        return (
            x / total,
            lax.pmax(x, "b"),
            lax.all_gather(x, "b"),
            lax.ppermute(x, "b", [(0, 1), (1, 2), (2, 0)]),
            i,
            lax.pmean(x, "b"),
        )

    return called(jax.vmap(f, axis_name="b"), floats(3, 2))


@program()
def vmap_of_vmap_of_indexing() -> Call:
    def f(x: Any, i: Any) -> Any:
        return x[i], x.at[i].set(0.0), lax.dynamic_slice(x, (i,), (2,))

    return called(jax.vmap(jax.vmap(f, (None, 0)), (0, None)), floats(3, 5), integers(4, modulus=4))


@program()
def vmap_of_linear_algebra_and_convolutions() -> Call:
    def f(a: Any, x: Any) -> Any:
        conv = lax.conv_general_dilated(x[None, None], a[None, None], (1, 1), "SAME")
        return conv, jnp.linalg.solve(a + 3 * jnp.eye(3), x[:3, :3]), jnp.fft.fft(x), jnp.sort(x, 0)

    return called(jax.vmap(f), floats(2, 3, 3), floats(2, 4, 4))


@program()
def gradient_of_indexing_and_sorting() -> Call:
    def f(x: Any, i: Any) -> Any:
        ranked = jnp.sort(x)[::2] * jnp.arange(3.0)
        return x[i].sum() + (x.at[i].mul(2.0) ** 2).sum() + ranked.sum() + lax.top_k(x, 2)[0].prod()

    return called(jax.grad(f), floats(6), integers(4, modulus=6))


@program()
def gradient_of_cumulative_operations() -> Call:
    def f(x: Any) -> Any:
        return (
            (jnp.cumsum(x) * jnp.cumprod(x)).sum() + lax.cummax(x).sum() + lax.cumlogsumexp(x).max()
        )

    return called(jax.grad(f), floats(5))


@program()
def gradient_of_special_functions() -> Call:
    def f(x: Any) -> Any:
        s = jax.scipy.special
        each = (s.gammaln, s.digamma, s.erf, s.erfc, s.i0e, s.i1e, s.ndtri, s.expit, s.erfinv)
        return sum(g(x).sum() for g in each) + s.xlogy(x, x).sum()

    return called(jax.grad(f), floats(3, low=0.2, high=0.9))


@program()
def special_functions() -> Call:
    def f(x: Any) -> Any:
        s = jax.scipy.special
        return (
            s.gammainc(x, 2.0), s.gammaincc(2.0, x), s.zeta(x + 2, 1.5), s.polygamma(1, x), s.betainc(x, 2.0, 0.3),
            s.bessel_jn(x, v=1), s.log_ndtr(x), s.entr(x), s.rel_entr(x, x + 1), s.factorial(x), s.exp1(x), s.i0(x),
            s.multigammaln(x + 3, 2), s.spence(x), s.logit(x), s.hyp1f1(x, 2.0, 0.5),
        )  # fmt: skip

    return called(f, floats(3, low=0.2, high=0.9), _orders=DEEPEST_RULES)


@program()
def stop_gradient_and_custom_gradients() -> Call:
    @jax.custom_gradient
    def square(x: Any) -> Any:
        return x**2, lambda g: (g * 7 * x,)

    def straight_through(x: Any) -> Any:
        return (x + lax.stop_gradient(jnp.round(x) - x)).sum() + square(x[0])

    return called(jax.grad(straight_through), floats(4) * 3)


@program()
def gradient_of_norm_at_zero() -> Call:
    return called(
        jax.grad(lambda x: jnp.linalg.norm(x) + jnp.abs(x).sum()), np.zeros(3, np.float32)
    )


@program()
def ordinary_differential_equation() -> Call:
    from jax.experimental.ode import odeint

    def f(y0: Any, ts: Any) -> Any:
        return odeint(lambda y, t: jnp.stack([y[1], -jnp.sin(y[0])]), y0, ts)

    start, times = np.array([1.0, 0.0], np.float32), np.linspace(0, 1, 3, dtype=np.float32)
    return called(f, start, times, _orders=DEEPEST_RULES)


@program()
def minimization_by_bfgs() -> Call:
    from jax.scipy.optimize import minimize

    def f(x0: Any) -> Any:
        return minimize(lambda v: ((v - 1.0) ** 2).sum() + v[0] ** 4, x0, method="BFGS").x

    return called(f, floats(2))


@program()
def eigenvalues_by_lobpcg() -> Call:
    from jax.experimental.sparse.linalg import lobpcg_standard

    a = floats(12, 12)
    return called(lambda m, x: lobpcg_standard(m, x, m=3)[0], a @ a.T, floats(12, 2))


@program()
def vectorized_and_applied_along_axes() -> Call:
    inner = jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")
    return called(
        lambda x: (
            inner(x, x),
            jnp.apply_along_axis(jnp.sort, 0, x),
            jax.vmap(jnp.dot, (1, 1))(x, x),
        ),
        floats(3, 4),
    )


@program()
def ravel_and_unravel_of_a_tree() -> Call:
    from jax.flatten_util import ravel_pytree

    def f(tree: Any) -> Any:
        flat, back = ravel_pytree(tree)
        return back(flat * 2), flat

    return called(f, {"a": floats(2), "b": (floats(2, 2), np.float32(3))})


@program()
def sums_of_squares_in_mixed_precision() -> Call:
    def f(x: Any) -> Any:
        low = x.astype(jnp.bfloat16)
        return jnp.sum(low * low, dtype=jnp.float32), jnp.mean(low), low @ low.T, jnp.var(low)

    return called(jax.value_and_grad(lambda x: f(x)[0]), floats(4, 4))
