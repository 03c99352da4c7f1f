"""How long the text is: lines per equation in both styles, of functions of libraries and of
gradients, and how many equations only `bind` says.

`python -m tests.jaxsight_source.readability` prints the table that the documentation quotes;
`--libraries` that of the functions that are tested. Equations are those that the plain style
writes, each shared function's once; lines are those of the functions, without the module's
docstring, imports and blank lines.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from tests.corpora.jaxsight_source.libraries import FUNCTIONS
from tests.jaxsight_source.harnesses import check


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def cases() -> Iterator[Case]:
    """Functions of JAX, optax, equinox and flax, and gradients."""
    import equinox as eqx
    import flax.linen as nn
    import optax

    x = jnp.linspace(-1.0, 1.0, 32).reshape(4, 8)
    labels = jnp.array([0, 3, 1, 7])
    key = jax.random.key(0)
    params = {"w": jnp.ones((8, 8)), "b": jnp.zeros(8)}
    grads = {"w": jnp.full((8, 8), 0.1), "b": jnp.ones(8)}
    q = jnp.ones((2, 16, 4, 8))
    for name in ("adam", "adamw", "lamb", "rmsprop", "lion", "adafactor"):
        optimizer = getattr(optax, name)(1e-3)
        state = optimizer.init(params)
        yield Case(f"optax.{name}", optimizer.update, (grads, state, params))
    yield Case(
        "optax.softmax_cross_entropy", optax.softmax_cross_entropy_with_integer_labels, (x, labels)
    )
    yield Case("optax.huber_loss", optax.huber_loss, (x, x * 2))
    yield Case(
        "optax.ctc_loss",
        optax.ctc_loss,
        (x[None], jnp.zeros((1, 4)), labels[None, :2], jnp.zeros((1, 2))),
    )
    yield Case("equinox.nn.MLP", eqx.filter_jit(eqx.nn.MLP(8, 8, 16, 2, key=key)), (x[0],))
    yield Case("equinox.nn.LSTMCell", eqx.nn.LSTMCell(8, 8, key=key), (x[0], (x[0], x[1])))
    yield Case("equinox.nn.MultiheadAttention", eqx.nn.MultiheadAttention(2, 8, key=key), (x, x, x))
    yield Case("equinox.nn.LayerNorm", jax.vmap(eqx.nn.LayerNorm(8)), (x,))
    for module in (nn.Dense(8), nn.LayerNorm(), nn.SelfAttention(2), nn.GRUCell(8)):
        args = (x[0], x[1]) if isinstance(module, nn.GRUCell) else (x,)
        variables = module.init(key, *args)
        yield Case(f"flax.{type(module).__name__}", module.apply, (variables, *args))
    yield Case("jax.nn.dot_product_attention", jax.nn.dot_product_attention, (q, q, q))
    yield Case("jax.random.permutation", jax.random.permutation, (key, x))
    yield Case("jnp.linalg.lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], (x.T, x[:, 0].repeat(2)))
    yield Case(
        "grad of a softmax", jax.grad(lambda x: jax.nn.log_softmax(x @ params["w"])[0].sum()), (x,)
    )
    yield Case("grad of a layer norm", jax.grad(lambda x: (jax.nn.standardize(x) ** 2).sum()), (x,))


def libraries() -> Iterator[Case]:
    """Those of `libraries`."""
    for name, function in FUNCTIONS.items():
        call = function.make()
        yield Case(name, call.function, call.args, call.kwargs)


def code_lines(text: str) -> int:
    """Lines of a written module's functions."""
    body = text.split('"""\n', 1)[1].splitlines()
    return sum(bool(line.strip()) and not line.startswith(("import ", "from ")) for line in body)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.jaxsight_source.readability")
    parser.add_argument("--libraries", action="store_true")
    given = parser.parse_args()
    print("| function | equations | lines, lax | lines, pretty | bound |\n|---|--:|--:|--:|--:|")
    total = [0, 0, 0, 0]
    for case in libraries() if given.libraries else cases():
        pretty = write(case.function, case.args, case.kwargs, SourceOptions("pretty", run=False))
        if pretty.placeholders:
            continue  # part of it is passed in
        lax = write(case.function, case.args, case.kwargs, SourceOptions("lax", run=False))
        difference = check(pretty, case.function, case.args, case.kwargs)
        if difference is not None:
            raise SystemExit(f"{case.name}: {difference}")
        counted = [
            lax.equations,
            code_lines(lax.text),
            code_lines(pretty.text),
            len(lax.bound),
        ]
        total = [a + b for a, b in zip(total, counted, strict=True)]
        print(f"| {case.name} | {' | '.join(map(str, counted))} |", flush=True)
    print(f"| all | {' | '.join(map(str, total))} |")
    print(f"\nlines per equation: lax {total[1] / total[0]:.2f}, pretty {total[2] / total[0]:.2f}")
    print(f"bound: {100 * total[3] / total[0]:.2f} %")


if __name__ == "__main__":
    main()
