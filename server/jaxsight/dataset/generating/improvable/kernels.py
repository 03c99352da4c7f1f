"""Templates of programs with more kernels or temporaries than they need: JX203 to JX208."""

from __future__ import annotations

from jaxsight.dataset.generating.improvable.steps import finished, floats, prepared, titled
from jaxsight.dataset.generating.writer import Writer

CATEGORY = "kernels"


def jx203_layout(w: Writer) -> None:
    """Write FFTs along one axis after another."""
    shape = w.pick(((64, 64), (128, 64), (128, 128), (256, 128)))
    x = w.array("field wave modes", "complex64", shape).text
    titled(w, w.pick(("transform", "spectrum", "modes_of")), "Transform both axes of a field")
    finished(w, f"jnp.abs(jnp.fft.fft(jnp.fft.fft({x}, axis=0), axis=1))")


def jx204_invariant(w: Writer) -> None:
    """Write a mask that a loop keeps in memory."""
    rows, columns = w.pick((256, 512)), w.pick((512, 1024))
    x = prepared(w, floats(w, (rows, columns)))
    factor, modulus = w.pick((0.5, 0.25, 1.5)), w.pick((3.0, 5.0, 7.0))
    grid = f"jnp.arange({rows})[:, None] + jnp.arange({columns}) * {factor}"
    titled(w, w.pick(("decay", "relax", "oscillate")), "Update a field with a fixed mask")
    w.line(f"mask = ({grid}) % {modulus}")
    body = w.pick(("jnp.cos(y) - mask", "jnp.sin(y) * mask", "0.5 * y + mask"))
    finished(w, f"lax.fori_loop(0, {w.between(20, 40)}, lambda _, y: {body}, {x})")


def jx207_short(w: Writer) -> None:
    """Write a loop of few iterations."""
    n, times = w.pick((8192, 16384, 65536)), w.between(2, 4)
    x = prepared(w, floats(w, (n,)))
    rate = w.pick((0.1, 0.05, 0.01))
    body = w.pick(("y - {r} * jnp.tanh(y)", "y + {r} * jnp.sin(y)", "jnp.cos(y) * {r} + y"))
    titled(w, w.pick(("relax", "descend", "euler_steps")), f"Take {times} steps")
    finished(w, f"lax.fori_loop(0, {times}, lambda _, y: {body.format(r=rate)}, {x})")


def jx208_meshgrid(w: Writer) -> None:
    """Write coordinates of a grid."""
    n = w.pick((64, 96, 128, 160))
    x = prepared(w, floats(w, (n, n), "image field density"))
    titled(w, w.pick(("gaussian", "low_pass", "taper")), "Filter a field by its frequencies")
    w.line(f"rows = jnp.fft.fftfreq({n})")
    w.line(f"columns = jnp.fft.fftfreq({n})")
    w.line('u, v = jnp.meshgrid(rows, columns, indexing="ij")')
    finished(w, f"{x} * (u**2 + v**2)")


TEMPLATES = (
    jx203_layout,
    jx204_invariant,
    jx207_short,
    jx208_meshgrid,
)
