"""StableHLO of traced functions: its operations know their equations, and its digest knows nothing
else of the text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

import jax
import pytest

from jaxsight.compiler.hlo import read
from jaxsight.tracer.compat import lowering as compat
from jaxsight.tracer.failures import UserError
from jaxsight.wire.frames import CAPTURED_LIMIT
from jaxsight.wire.messages.replies import Listing, Lowered
from jaxsight.wire.messages.requests import STABLEHLO, Lower, Show
from tests.tracer.handlers.lab import lab

HEAD = "import jax, jax.numpy as jnp, numpy as np\n"

LAYERS = """\
def layer(w, h):
    return jax.nn.relu(h @ w)

@jax.custom_vjp
def scaled(x):
    return x * 2

scaled.defvjp(lambda x: (scaled(x), x), lambda x, g: (g * x,))

def loss(ws, x):
    def step(h, w):
        return layer(w, h), h.sum()
    h, sums = jax.lax.scan(step, x, ws)
    h = jax.lax.cond(sums[0] > 0, lambda v: jnp.sin(v), lambda v: v * 3, h)
    h = jax.lax.fori_loop(0, 4, lambda i, v: jnp.tanh(v) + i, h)
    return scaled(jax.checkpoint(jnp.cos)(h)).sum() + jnp.fft.rfft(h[:, 0]).real.sum()

def f(ws, x):
    return jax.grad(loss)(ws, x)
"""


def lower(source: str, platform: str = "cpu", **arguments: str) -> Lowered:
    file = lab(HEAD + source)
    traced = file.trace("f", **arguments)
    return file.ask(Lower(1, traced.id, platform))


def text(source: str, platform: str = "cpu", **arguments: str) -> Listing:
    file = lab(HEAD + source)
    traced = file.trace("f", **arguments)
    return file.ask(Show(1, traced.id, STABLEHLO, platform))


DRAWN = """\
def f(key):
    return jax.random.uniform(key, (), minval=0.5)
"""


def test_a_program_of_64_bits_is_lowered_as_such_when_its_file_no_longer_runs() -> None:
    file = lab(HEAD + DRAWN)
    jax.config.update("jax_enable_x64", True)
    try:
        traced = file.trace("f", key="key<fry>[]")
    finally:
        jax.config.update("jax_enable_x64", False)
    told = file.ask(Lower(1, traced.id, "cuda"))
    assert told.request.program
    assert not jax.config.values["jax_enable_x64"]


def test_operations_lead_back_to_their_equations() -> None:
    told = lower(LAYERS, ws="f32[5,8,8]", x="f32[8,8]")
    shown = text(LAYERS, ws="f32[5,8,8]", x="f32[8,8]")
    paths = {link.path for link in shown.links}
    assert len(paths) > 20
    assert any("/body/" in path for path in paths)
    spans = {each.path: each.span for each in told.equations}
    assert paths <= set(spans)
    assert all(link.span == spans[link.path] for link in shown.links)
    assert "loc(" not in shown.text


def test_nearly_all_of_what_is_compiled_leads_back() -> None:
    file = lab(HEAD + LAYERS)
    traced = file.trace("f", ws="f32[5,8,8]", x="f32[8,8]")
    stage = compat.located(file.stored(traced.id))
    text = stage.lower().compile().as_text()
    named = re.findall(r'op_name="(jit[^"]*)"', text)
    known = [name for name in named if "eq[" in name]
    assert len(known) >= 0.95 * len(named) > 50
    graph = read(text)
    every = {each.path for each in lower(LAYERS, ws="f32[5,8,8]", x="f32[8,8]").equations}
    assert {path for kernel in graph.kernels for path in kernel.equations} <= every


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_platforms_that_are_not_here_are_lowered_for(platform: str) -> None:
    source = "def f(x):\n    return jnp.sort(jnp.sin(x)) @ x\n"
    told = lower(source, platform, x="f32[8]")
    assert told.platform == platform
    assert base64.b64decode(told.request.program)[:3] == b"ML\xef"
    assert "stablehlo.sine" in text(source, platform, x="f32[8]").text


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "body",
    [
        "jnp.linalg.cholesky(x @ x.T)",
        "jax.random.normal(jax.random.key(0), (8,)) + x",
        "jnp.linalg.svd(x)",
    ],
)
def test_calls_of_libraries_and_random_bits_travel(platform: str, body: str) -> None:
    assert lower(f"def f(x):\n    return {body}\n", platform, x="f32[8,8]").request.program


ONE = "def f(x):\n    y = jnp.sin(x)\n    return y * 2\n"
SAME = [
    "\n\n# a comment\n" + ONE,
    ONE.replace("y", "other"),
    "def g():\n    return 1\n" + ONE.replace("    return", "\n\n    return"),
]
OTHER = [
    ONE.replace("2", "3"),
    ONE.replace("sin", "cos"),
    ONE.replace("y * 2", "2 - y"),
    ONE.replace("y * 2", "(y * 2).astype(jnp.bfloat16)"),
    ONE.replace("y * 2", "jax.lax.optimization_barrier(y) * 2"),
    ONE.replace("def f", "@jax.jit\ndef f").replace(
        "jax.jit", "__import__('functools').partial(jax.jit, donate_argnums=0)"
    ),
]


@pytest.mark.parametrize("source", SAME)
def test_the_digest_does_not_see_where_and_how_things_are_written(source: str) -> None:
    assert lower(source, x="f32[8]").key == lower(ONE, x="f32[8]").key


@pytest.mark.parametrize("source", OTHER)
def test_the_digest_sees_what_the_program_is(source: str) -> None:
    assert lower(source, x="f32[8]").key != lower(ONE, x="f32[8]").key


def test_the_digest_is_the_same_in_another_process(fresh_python: Callable[[str], str]) -> None:
    told = lower(ONE, x="f32[8]").key
    program = """
        from tests.tracer.handlers.test_lower import lower, ONE
        print(lower(ONE, x="f32[8]").key)
    """
    assert fresh_python(program).strip() == told


def test_large_constants_are_elided_for_people_and_told_by_type() -> None:
    source = "w = np.arange(5000.)\ndef f(x):\n    return x + w\n"
    assert len(text(source, x="f32[5000]").text) < 2000
    told = lower(source, x="f32[5000]")
    assert told.request.constants == ("f32[5000]",)


def test_a_program_that_captures_too_much_is_refused_at_once() -> None:
    source = f"w = np.ones({CAPTURED_LIMIT // 4 + 1}, np.float32)\ndef f(x):\n    return x + jnp.sum(jnp.asarray(w))\n"
    with pytest.raises(UserError) as caught:
        lower(source, x="f32[]")
    assert caught.value.failure.stage == "lower"
    assert (
        "captures 40 MiB of constants, which the program would embed (limit 40 MiB)"
        in caught.value.failure.message
    )


def test_what_cannot_be_lowered_for_a_platform_says_so() -> None:
    source = "def f(x):\n    return jax.lax.platform_dependent(x, tpu=jnp.sin)\n"
    with pytest.raises(UserError) as caught:
        lower(source, "cuda", x="f32[3]")
    assert caught.value.failure.stage == "lower"


def test_barriers_are_told_by_what_goes_into_them() -> None:
    source = "def f(x):\n    y = jnp.sin(x) + 1\n    return jax.lax.optimization_barrier(y) * 2\n"
    told = lower(source, x="f32[8]")
    assert [each.primitive for each in told.equations if each.path in told.request.barriers] == [
        "add"
    ]


def test_scans_tell_how_often_their_loops_go_round() -> None:
    source = "def f(x):\n    return jax.lax.scan(lambda c, v: (c + v, c), x[0], x, unroll=2)[0]\n"
    assert [trips for _, trips in lower(source, x="f32[8,3]").request.trips] == [4]


FOLDS = [
    ("def f(x):\n    return x + jnp.sort(T)\n", ["sort"]),
    ("def f(x):\n    return x + jnp.sin(T) * 2\n", ["sin", "mul"]),
    ("def f(x):\n    return x * T\n", []),
    ("def f(x):\n    return x + jnp.arange(100000) * 2.5\n", []),
    ("def f(x):\n    return x + jnp.fft.fft(T).real\n", ["convert_element_type"]),
    ("def f(x):\n    return x + jnp.cos(T[:5].sum())\n", []),
    ("def f(x):\n    return x + jax.jit(jnp.sin)(T)\n", ["sin"]),
    ("def f(x):\n    return x + jax.lax.optimization_barrier(T) * 3\n", []),
]


@pytest.mark.parametrize(("source", "primitives"), FOLDS)
def test_folds_are_predicted(source: str, primitives: list[str]) -> None:
    table = "T = jnp.asarray(np.random.default_rng(0).normal(size=100000).astype(np.float32))\n"
    folds = lower(table + source, x="f32[100000]").folds
    assert [fold.primitive for fold in folds] == primitives
    assert not any(fold.trap for fold in folds if fold.primitive != "sort")


def test_a_fold_that_takes_minutes_is_a_trap() -> None:
    source = "T = np.random.default_rng(0).normal(size=1000000).astype(np.float32)\ndef f(x):\n    return x + jnp.sort(T)\n"
    told = lower(source, x="f32[1000000]")
    (fold,) = told.folds
    assert (fold.primitive, fold.elements, fold.trap) == ("sort", 1_000_000, True)
    assert fold.seconds > 60
    assert told.request.program


def test_a_small_one_is_what_xla_does_in_a_moment() -> None:
    source = "T = np.random.default_rng(0).normal(size=1000).astype(np.float32)\ndef f(x):\n    return x + jnp.sort(T)\n"
    assert lower(source, x="f32[1000]").folds == ()


def test_tracing_again_is_not_needed_to_lower_twice() -> None:
    file = lab(HEAD + ONE)
    traced = file.trace("f", x="f32[8]")
    first = file.ask(Lower(1, traced.id, "cpu"))
    again = file.ask(Lower(2, traced.id, "cpu"))
    assert first.key == again.key
    assert re.fullmatch(r"\d+\.\d+\.\d+", first.stablehlo)
    assert jax.__version__.split(".")[0] == first.jaxlib.split(".")[0]


def test_a_function_is_compiled_with_the_program_that_binds_its_axes() -> None:
    file = lab("import jax\ndef f(x):\n    return jax.lax.ppermute(x, 'i', [(0, 0)])\n")
    traced = file.trace("f", x="f32[3]")
    reason = "the program around it binds `i`, and is compiled with it"
    with pytest.raises(UserError, match=reason):
        file.ask(Lower(0, traced.id, "cpu"))
    with pytest.raises(UserError, match=reason):
        file.ask(Show(0, traced.id, STABLEHLO, "cpu"))


def test_an_error_without_words_says_what_was_asserted() -> None:
    source = (
        "from jax.extend.core import Primitive\n"
        "from jax.interpreters import mlir\n"
        "refused = Primitive('refused')\n"
        "refused.def_abstract_eval(lambda x: x)\n"
        "def rule(ctx, x):\n    assert x is None\n"
        "mlir.register_lowering(refused, rule)\n"
        "def f(x):\n    return refused.bind(x)\n"
    )
    with pytest.raises(UserError) as caught:
        lower(source, x="f32[8]")
    assert caught.value.failure.message == "`assert x is None` in rule"
