"""Random keys and bits."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.interpreters.compat import dtypes
from jaxsight.sourcerizer.equations.fallback import keywords
from jaxsight.sourcerizer.equations.idioms import Window
from jaxsight.sourcerizer.equations.registry import IDIOMS, LAX
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Atom, Expr, call
from jaxsight.sourcerizer.values import public_names, scalars
from jaxsight.sourcerizer.values.spelling import value


def _impl(view: View) -> dict[str, Expr]:
    return {"impl": scalars.text(dtypes.key_impl(view.outputs[0].dtype))}


@LAX("random_seed")
def seed(view: View) -> Iterator[Expr]:
    yield call("jax.random.key", *view.operands, **_impl(view))


@LAX("random_wrap")
def wrap(view: View) -> Iterator[Expr]:
    yield call("jax.random.wrap_key_data", *view.operands, **_impl(view))


@LAX("random_unwrap")
def unwrap(view: View) -> Iterator[Expr]:
    yield call("jax.random.key_data", *view.operands)


@LAX("random_split")
def split(view: View) -> Iterator[Expr]:
    shape = view.params["shape"]
    if shape == (2,):
        yield call("jax.random.split", *view.operands)
    if len(shape) == 1:
        yield call("jax.random.split", *view.operands, value(shape[0]))
    yield call("jax.random.split", *view.operands, value(shape))


@LAX("random_fold_in")
def fold_in(view: View) -> Iterator[Expr]:
    yield call("jax.random.fold_in", *view.operands)


@LAX("random_clone")
def clone(view: View) -> Iterator[Expr]:
    yield call("jax.random.clone", *view.operands)


@LAX("random_bits")
def bits(view: View) -> Iterator[Expr]:
    dtype = Atom(f"jnp.uint{view.params['bit_width']}")
    yield call("jax.random.bits", *view.operands, value(view.params["shape"]), dtype)


_COUNTED = "iota_2x32_shape threefry2x32"
_JOINED = ("xor convert_element_type?", "convert_element_type* shift_left or")
_BITS_OF_A_BYTE = 8


@IDIOMS(
    *(f"unstack {_COUNTED} {joined}" for joined in _JOINED),  # from JAX 0.12 on
    *(f"slice squeeze slice squeeze {_COUNTED} {joined}" for joined in _JOINED),
    plain=True,
)
def threefry_bits(window: Window) -> Iterator[Expr]:
    """Yield the bits of a raw key, whose counters (`iota_2x32_shape`) have no public function."""
    key = window.expr(window.equations[0].invars[0])
    shape = value(window.find("iota_2x32_shape").params["shape"])
    drawn = public_names.imported("jax.extend.random", "threefry_prng_impl.random_bits")
    joined = window.equations[-1].primitive.name == "or"
    width = 64 if joined else window.output.aval.dtype.itemsize * _BITS_OF_A_BYTE
    yield call(drawn, key, value(width), shape)


@LAX("rng_bit_generator")
def rng_bit_generator(view: View) -> Iterator[Expr]:
    yield call(
        "lax.rng_bit_generator",
        *view.operands,
        value(view.params["shape"]),
        **keywords(view, "dtype", "algorithm"),
    )
    yield call(
        "lax.rng_bit_generator",
        *view.operands,
        value(view.params["shape"]),
        **keywords(view, "dtype", "algorithm", "out_sharding"),
    )
