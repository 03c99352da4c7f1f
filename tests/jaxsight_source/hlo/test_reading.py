"""HLO, before and after optimizations, is read as the same program."""

from __future__ import annotations

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight_source.compat.staging import evaluate, opened
from jaxsight_source.hlo import formats
from jaxsight_source.hlo.reading import read
from jaxsight_source.stablehlo.program import UnreadableProgram


def run(program, *arguments):
    """Run a program that was read, under `jit`."""
    jaxpr = opened(read(program).jaxpr)
    results = jax.jit(lambda *flat: evaluate(jaxpr, *flat))(*arguments)
    return [np.asarray(result) for result in results]


def step(x, w):
    def body(carry, row):
        return jnp.tanh(carry @ w) + row, jnp.sort(carry).sum()

    carry, sums = jax.lax.scan(body, x[0], x)
    return {"out": jax.nn.softmax(carry), "sums": sums, "most": jnp.argmax(x, 1)}


def updates(x, w):
    positions = jnp.array([1, 2, 1])
    drawn = jax.random.normal(jax.random.key(0), (3,))
    return x.at[positions].add(1.0), jnp.einsum("ij,kj->ik", x, w).T, drawn


def branches(x, w):
    return jax.lax.cond(x[0, 0] > w[0, 0], lambda: jnp.cumsum(x, 0), lambda: jnp.linalg.norm(w) * x)


@pytest.mark.parametrize("function", [step, updates, branches])
@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_dump_is_the_program(function, stage):
    x = jax.random.normal(jax.random.key(1), (8, 8))
    w = jax.random.normal(jax.random.key(2), (8, 8))
    lowered = jax.jit(function).lower(x, w)
    compiled = lowered.compile()
    text = lowered.as_text("hlo") if stage == "before" else compiled.as_text()
    expected = jax.tree.leaves(compiled(x, w))
    for result, other in zip(run(text, x, w), expected, strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result, other, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("stage", ["before", "after"])
def test_parameters_keep_their_names(stage):
    def loss(scale, params, p):
        return scale * params["w"] @ p

    lowered = jax.jit(loss).lower(2.0, {"w": jnp.ones((3, 3))}, jnp.ones(3))
    text = lowered.as_text("hlo") if stage == "before" else lowered.compile().as_text()
    assert read(text).names == ("scale", "params_w", "x2")


def test_protos_are_read_with_what_is_around_them():
    module = jax.jit(jnp.sin).lower(jnp.ones(3)).compiler_ir("hlo")
    proto = module.as_serialized_hlo_module_proto()
    around = lambda inner: b"\n" + _length(inner) + inner
    for content in (proto, around(proto) + b"\x1a\x00"):
        assert np.array_equal(run(content, jnp.ones(3))[0], jnp.sin(jnp.ones(3)))


def _length(message):
    low, high = len(message) & 0x7F, len(message) >> 7
    return bytes([low | 0x80, high]) if high else bytes([low])


def test_bitcasts_follow_layouts():
    text = """HloModule m

    ENTRY main {
      p = f32[2,3,4]{2,1,0} parameter(0)
      c = f32[2,3,4]{0,2,1} copy(p)
      b = f32[12,2]{0,1} bitcast(c)
      d = f32[2,12]{1,0} bitcast(b)
      ROOT e = s32[24]{0} bitcast(d)
    }
    """
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (result,) = run(text, x)
    # Memory of `c` has dimension 1 outside, then 2, then 0.
    assert np.array_equal(result, x.transpose(1, 2, 0).reshape(-1).view(np.int32))


def test_asynchronous_calls_are_calls():
    text = """HloModule m, is_scheduled=true

    inner {
      q = f32[8]{0} parameter(0)
      ROOT n = f32[8]{0} tanh(q)
    }

    ENTRY main {
      p = f32[8]{0} parameter(0)
      cs = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(p)
      cd = f32[8]{0} copy-done(cs)
      s = ((f32[8]), f32[8], s32[]) async-start(cd), calls=inner
      u = ((f32[8]), f32[8], s32[]) async-update(s), calls=inner
      ROOT d = f32[8]{0} async-done(u), calls=inner
    }
    """
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    assert np.allclose(run(text, x)[0], np.tanh(x))


def gemm(**settings):
    config = {
        "alpha_real": 2,
        "beta": 0,
        "dot_dimension_numbers": {
            "lhs_contracting_dimensions": ["1"],
            "rhs_contracting_dimensions": ["0"],
        },
        "epilogue": "DEFAULT",
        **settings,
    }
    return json.dumps({"gemm_backend_config": config})


def test_a_product_of_cublas_is_a_product():
    text = f"""HloModule m

    ENTRY main {{
      a = f32[3,4]{{1,0}} parameter(0)
      b = f32[4,5]{{1,0}} parameter(1)
      c = f32[3,5]{{1,0}} parameter(2)
      v = f32[5]{{0}} parameter(3)
      g = (f32[3,5]{{1,0}}, s8[64]{{0}}) custom-call(a, b, c, v), custom_call_target="__cublas$lt$matmul", backend_config={gemm(beta=0.5, epilogue="BIAS_RELU")}
      ROOT r = f32[3,5]{{1,0}} get-tuple-element(g), index=0
    }}
    """
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = (3, 4), (4, 5), (3, 5), (5,)
    a, b, c, v = (jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True))
    expected = np.maximum(2 * (a @ b) + 0.5 * c + v, 0)
    np.testing.assert_allclose(run(text, a, b, c, v)[0], expected, rtol=1e-5, atol=1e-5)


def test_a_convolution_of_cudnn_is_a_convolution():
    config = '{"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":1,"side_input_scale":0}}'
    text = f"""HloModule m

    ENTRY main {{
      x = f32[1,5,7,3]{{3,2,1,0}} parameter(0)
      k = f32[4,3,3,3]{{3,2,1,0}} parameter(1)
      b = f32[4]{{0}} parameter(2)
      c = (f32[1,2,3,4]{{3,2,1,0}}, u8[0]{{0}}) custom-call(x, k, b), window={{size=3x3 stride=2x2}}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBiasActivationForward", backend_config={config}
      ROOT r = f32[1,2,3,4]{{3,2,1,0}} get-tuple-element(c), index=0
    }}
    """
    x = jax.random.normal(jax.random.key(0), (1, 5, 7, 3))
    k = jax.random.normal(jax.random.key(1), (4, 3, 3, 3))
    b = jnp.arange(4.0)
    plain = jax.lax.conv_general_dilated(
        x, k, (2, 2), "VALID", dimension_numbers=("NHWC", "OHWI", "NHWC")
    )
    np.testing.assert_allclose(run(text, x, k, b)[0], np.maximum(plain + b, 0), rtol=1e-5)


@pytest.mark.parametrize(("direction", "known"), [("GT", True), ("LT", False)])
def test_top_k_of_a_library_is_known_by_its_comparator(direction, known):
    text = f"""HloModule m

    compare {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      i = s32[] parameter(2)
      j = s32[] parameter(3)
      ROOT c = pred[] compare(a, b), direction={direction}
    }}

    ENTRY main {{
      x = f32[9]{{0}} parameter(0)
      ROOT k = (f32[3]{{0}}, s32[3]{{0}}) custom-call(x), custom_call_target="TopK", called_computations={{compare}}
    }}
    """
    program = read(text)
    assert [call.target for call in program.opaque] == ([] if known else ["TopK"])
    if known:
        x = jax.random.normal(jax.random.key(0), (9,))
        values, positions = run(text, x)
        assert np.array_equal(values, jax.lax.top_k(x, 3)[0])
        assert np.array_equal(positions, jax.lax.top_k(x, 3)[1])


def test_a_library_call_that_does_more_stays_opaque():
    text = f"""HloModule m

    ENTRY main {{
      a = f32[3,3]{{1,0}} parameter(0)
      ROOT g = f32[3,3]{{1,0}} custom-call(a, a), custom_call_target="__cublas$gemm", backend_config={gemm(epilogue="GELU_AUX")}
    }}
    """
    assert [call.target for call in read(text).opaque] == ["__cublas$gemm"]


BOUNDED = """HloModule m

    add {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] add(a, b)
    }

    ENTRY main {
      p = s32[2,4,4]{2,1,0} parameter(0)
      n = s32[] SIZE
      d = s32[2,<=4,4]{2,1,0} set-dimension-size(p, n), dimensions={1}
      r = s32[<=16,2]{1,0} reshape(d), inferred_dimension=0
      z = s32[] constant(0)
      s = s32[2]{0} reduce(r, z), dimensions={0}, to_apply=add
      e = s32[] get-dimension-size(r), dimensions={0}
      ROOT t = (s32[2]{0}, s32[]) tuple(s, e)
    }
    """


def test_a_size_below_a_bound_is_constant_or_refused():
    x = np.arange(32, dtype=np.int32).reshape(2, 4, 4)
    sums, size = run(BOUNDED.replace("SIZE", "constant(3)"), x)
    assert np.array_equal(sums, x[:, :3].reshape(-1, 2).sum(0))
    assert size == 12
    with pytest.raises(UnreadableProgram, match="expected a constant one"):
        read(BOUNDED.replace("SIZE", "parameter(1)"))


REDUCED = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  p = f32[12]{0} parameter(0)
  ROOT r = f32[12]{0} all-reduce(p), GROUPS, to_apply=add
}
"""
"""As after SPMD in https://github.com/openxla/xla/issues/5655."""


def test_a_sum_over_one_device_is_its_operand_and_one_over_all_partitions_is_refused():
    x = np.arange(12, dtype=np.float32)
    of_one = "replica_groups={{0}}"
    for groups in (of_one, f"channel_id=37, {of_one}, use_global_device_ids=true"):
        assert np.array_equal(run(REDUCED.replace("GROUPS", groups), x)[0], x)
    with pytest.raises(UnreadableProgram, match=r"all_reduce .*: expected groups of devices"):
        read(REDUCED.replace("GROUPS", f"channel_id=37, {of_one}"))


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2)])
def test_an_algorithm_of_a_product_is_kept(shape):
    product = functools.partial(jnp.matmul, precision=jax.lax.DotAlgorithmPreset.F32_F32_F32)
    text = jax.jit(product).lower(jnp.ones(shape), jnp.ones(shape)).as_text("hlo")
    assert "allow_imprecise_accumulation=False" in str(read(text).jaxpr)


ELIDED = """HloModule m

ENTRY main {
  c = f32[12]{0} constant({...})
  p = f32[12]{0} parameter(0)
  ROOT r = f32[12]{0} add(c, p)
}
"""


def test_numbers_that_a_text_leaves_out_are_not_made_up():
    with pytest.raises(UnreadableProgram, match="leaves out the numbers of 1 constant; help: dump"):
        read(ELIDED)
    jaxpr = opened(read(formats.with_ones(ELIDED)).jaxpr)
    assert np.array_equal(evaluate(jaxpr, np.zeros(12, np.float32))[0], np.ones(12))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("nothing", "expected an HLO text, which begins with HloModule"),
        (
            "HloModule m\nENTRY main {\n p = f32[2] parameter(0)\n ROOT r = f32[2] foo(p)\n}\n",
            "at 4:18: expects opcode but sees: foo$",
        ),
        (
            "HloModule m\nENTRY main {\n p = f32[2] parameter(0)\n ROOT r = f32[3] negate(p)\n}\n",
            "requires compatible types for operands and results|all operands and results",
        ),
        (
            "HloModule m\nENTRY main {\n ROOT r = u32[] partition-id()\n}\n",
            "expected a mesh of the",
        ),
        (b"", "No program shape found in the proto"),
        (b"\x00\x01\x02", "neither an HLO text nor a proto of one"),
    ],
)
def test_what_is_no_program_is_refused(program, message):
    with pytest.raises(UnreadableProgram, match=message) as caught:
        read(program)
    assert "\n" not in str(caught.value)
