"""Elementwise steps before and after what a rule finds: they make programs differ in structure."""

from __future__ import annotations

from jaxsight.dataset.generating.writer import Writer

F32 = "float32"

_STEPS = (
    "jnp.tanh({})",
    "jnp.sin({})",
    "jnp.cos({})",
    "0.5 * {}",
    "{} + 1.0",
    "jnp.exp(-jnp.abs({}))",
    "jnp.log1p(jnp.abs({}))",
    "jnp.maximum({}, 0.0)",
    "jax.nn.sigmoid({})",
    "jnp.arctan({})",
)

_ROOMS = "signal inputs features field samples values data"


def floats(w: Writer, shape: tuple[int, ...], names: str = _ROOMS, values: str = "normal") -> str:
    """Add an array of `float32` to the parameters, and return its name."""
    return w.array(names, F32, shape, values).text


def prepared(w: Writer, name: str) -> str:
    """Return a name for the value of `name` after up to two steps."""
    for _ in range(w.between(0, 2)):
        new = w.name("scaled shifted smooth bounded prepared adjusted")
        w.line(f"{new} = {w.pick(_STEPS).format(name)}")
        name = new
    return name


def finished(w: Writer, value: str) -> None:
    """Write the `return` of a value after up to three steps."""
    steps = w.between(0, 3)
    if steps and not value.isidentifier():
        name = w.name("result outcome found")
        w.line(f"{name} = {value}")
        value = name
    for _ in range(steps):
        name = w.name("response activation output score level weighted")
        w.line(f"{name} = {w.pick(_STEPS).format(value)}")
        value = name
    w.line(f"return {value}")


def titled(w: Writer, name: str, title: str) -> None:
    """Set the name and the title of a program."""
    w.words += [name, w.pick(("", "", "values", "terms", "step", "of_batch"))]
    w.title = title
