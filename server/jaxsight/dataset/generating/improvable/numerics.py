"""Templates of forms that lose accuracy, or whose gradient is not finite: JX405, JX417, JX418."""

from __future__ import annotations

from jaxsight.dataset.generating.improvable.steps import finished, floats, prepared, titled
from jaxsight.dataset.generating.writer import Writer

CATEGORY = "numerics"


def jx405_masked(w: Writer) -> None:
    """Write a `where` that hides values, but not their gradient."""
    x = prepared(w, floats(w, w.shape(1, 2, 48)))
    function, other = w.pick((("jnp.sqrt", "0.0"), ("jnp.log", "0.0"), ("jnp.sqrt", "1.0")))
    titled(w, w.pick(("masked", "guarded", "positive_part")), "Guard a function by a mask")
    finished(w, f"jnp.where({x} > 0, {function}({x}), {other})")


def jx405_ratio(w: Writer) -> None:
    """Write a guarded division."""
    x = prepared(w, floats(w, w.shape(1, 2, 48)))
    limit = w.pick(("1e-4", "1e-3", "1e-2"))
    titled(w, w.pick(("sinc", "ratio", "cardinal_sine")), "Compute a ratio away from zero")
    finished(w, f"jnp.where(jnp.abs({x}) > {limit}, jnp.sin({x}) / {x}, 1.0)")


def jx417_logsumexp(w: Writer) -> None:
    """Write the logarithm of a sum of exponentials."""
    x = prepared(w, floats(w, (w.size(4, 48), w.size(4, 48)), "logits scores energies"))
    keeps = w.pick(("", ", keepdims=True"))
    titled(w, w.pick(("log_partition", "soft_maximum", "evidence")), "Add up in log space")
    finished(w, f"jnp.log(jnp.sum(jnp.exp({x}), axis={w.pick(('-1', '0', '1'))}{keeps}))")


def jx417_log_softmax(w: Writer) -> None:
    """Write the logarithm of a softmax."""
    x = prepared(w, floats(w, (w.size(4, 48), w.size(4, 48)), "logits scores energies"))
    titled(w, w.pick(("log_probabilities", "log_policy")), "Compute log probabilities")
    if w.chance(0.5):
        w.line(f"probabilities = jax.nn.softmax({x}, axis=-1)")
        finished(w, "jnp.log(probabilities)")
    else:
        finished(w, f"jnp.log(jax.nn.softmax({x}, axis={w.pick(('0', '-1'))}))")


def jx417_log_sigmoid(w: Writer) -> None:
    """Write the logarithm of a sigmoid."""
    x = prepared(w, floats(w, w.shape(1, 2, 48), "logits scores margins"))
    form = w.pick(("jnp.log(1 - jax.nn.sigmoid({}))", "jnp.log(jax.nn.sigmoid({}))"))
    titled(w, w.pick(("log_odds", "log_likelihood")), "Compute the log of a probability")
    finished(w, form.format(x))


def jx418_distances(w: Writer) -> None:
    """Write the gradient of a distance, which is NaN where two points are the same."""
    shape = (w.size(3, 24),) if w.chance(0.5) else (w.size(3, 24), w.pick((2, 3)))
    x = floats(w, shape, "points positions centres")
    y = floats(w, shape, "origin targets anchors")
    axis = ", axis=-1" if len(shape) > 1 else ""
    titled(w, w.pick(("forces", "repulsion", "pull")), "Differentiate distances")
    x = prepared(w, x)
    with w.nested("energy(p)"):
        form = w.pick(("jnp.linalg.norm(p - {y}{a})", "jnp.sqrt(jnp.sum((p - {y}) ** 2{a}))"))
        w.line(f"d = {form.format(y=y, a=axis)}")
        w.line(f"return {w.pick(('jnp.sum(d)', 'jnp.mean(d)', '0.5 * jnp.sum(d)'))}")
    w.transformations.add("grad")
    w.line(f"return jax.grad(energy)({x})")


TEMPLATES = (
    jx405_masked,
    jx405_ratio,
    jx417_logsumexp,
    jx417_log_softmax,
    jx417_log_sigmoid,
    jx418_distances,
)
