"""Code sees the platform of the target: each way to ask for it, in programs and in libraries."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Spoiled, Traced
from jaxsight.wire.messages.requests import FakeDevice
from tests.tracer.isolation.driver import Driver

H100 = FakeDevice("cuda", "NVIDIA H100 80GB HBM3", "9.0")
MI300 = FakeDevice("rocm")
"""A device whose kind is not known."""
V5E = FakeDevice("tpu", "TPU v5 lite", cores=1)

BEGIN = "import functools\nimport jax\nimport jax.numpy as jnp\n"
CHOOSES = "def f(x):\n    return jnp.tanh(x) if {condition} else jnp.sin(x)\n"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that chooses `tanh` on one platform and `sin` on all others."""

    name: str
    condition: str
    """An expression that the function evaluates."""
    on: tuple[FakeDevice, ...] = (H100,)
    """The devices on which it holds."""
    before: str = ""
    """Statements of the module."""
    caveats: tuple[tuple[FakeDevice, str], ...] = ()
    """Devices for which the answer is not known, and what is said."""


def by_global(name: str, value: str, on: tuple[FakeDevice, ...] = (H100,)) -> Program:
    """A program whose module asks when it is imported."""
    return Program(name, "CHOICE", on, f"CHOICE = {value}\n")


GPUS = (H100, MI300)
PROGRAMS = (
    Program("default_backend", "jax.default_backend() == 'gpu'", GPUS),
    Program("not_the_cpu", "jax.default_backend() != 'cpu'", (*GPUS, V5E)),
    Program("of_a_device", "jax.devices()[0].platform == 'tpu'", (V5E,)),
    Program("of_a_local_device", "jax.local_devices()[0].platform in ('gpu', 'cuda')", GPUS),
    Program("of_a_client", "jax.devices()[0].client.platform == 'gpu'", GPUS),
    Program("compute_capability", "getattr(jax.devices()[0], 'compute_capability', '') >= '8.0'",
            caveats=((MI300, "reads `compute_capability` of a device: the CPU here has none"),)),
    Program("kind", "'H100' in jax.devices()[0].device_kind",
            caveats=((MI300, "reads `device_kind`: it is not known, and is 'AMD GPU' here"),)),
    Program("kind_of_a_tpu", "jax.devices()[0].device_kind == 'TPU v5 lite'", (V5E,),
            caveats=((MI300, "reads `device_kind`: it is not known, and is 'AMD GPU' here"),)),
    Program("extend", "backend.get_backend().platform == 'gpu'", GPUS,
            "from jax.extend import backend\n"),
    Program("extended_list", "'tpu' in backend.backends()", (V5E,),
            "from jax.extend import backend\n"),
    Program("private", "xla_bridge.get_backend().platform == 'gpu'", GPUS,
            "from jax._src import xla_bridge\n"),
    Program("imported_by_name", "default_backend() == 'gpu'", GPUS,
            "from jax import default_backend\n"),
    by_global("global", "any(d.platform == 'gpu' for d in jax.devices())", GPUS),
    by_global("as_text", "'cuda' in str(jax.devices()[0]).lower()"),
    by_global("as_a_list", "'TpuDevice' in repr(jax.devices())", (V5E,)),
    by_global("of_an_array", "next(iter(jnp.ones(3).devices())).platform == 'gpu'", GPUS),
    by_global("of_a_mesh", "jax.make_mesh((1,), 'x').devices.flat[0].platform == 'tpu'", (V5E,)),
    Program("by_trying", "HAS_GPU", GPUS,
            "try:\n    HAS_GPU = len(jax.devices('gpu')) > 0\nexcept RuntimeError:\n"
            "    HAS_GPU = False\n"),
    Program("cached", "on_gpu()", GPUS,
            "@functools.cache\ndef on_gpu():\n    return jax.default_backend() == 'gpu'\n"),
    Program("default_argument", "chosen()", (V5E,),
            "def chosen(is_tpu=jax.default_backend() == 'tpu'):\n    return is_tpu\n"),
    Program("matched", "chosen()", (V5E,),
            "def chosen():\n    match jax.default_backend():\n        case 'tpu':\n"
            "            return True\n        case _:\n            return False\n"),
    Program("megablox", "common.is_tpu()", (V5E,),
            "from jax.experimental.pallas.ops.tpu.megablox import common\n",
            caveats=((MI300, "calls `jax`, which reads `device_kind`: it is not known, and is 'AMD GPU' here"),)),
    Program("memory", "(jax.devices()[0].memory_stats() or {}).get('bytes_limit', 0) > 0", (),
            caveats=tuple((device, "reads `memory_stats()`: they are the CPU's here")
                          for device in (H100, MI300, V5E))),
    Program("coordinates", "getattr(jax.devices()[0], 'coords', None) is not None", (),
            caveats=((V5E, "reads `coords` of a device: the CPU here has none"),)),
    Program("cores", "getattr(jax.devices()[0], 'num_cores', 0) == 1", (V5E,)),
    Program("version", "'12' in jax.devices()[0].client.platform_version", (),
            caveats=tuple((device, "reads `platform_version`: the number in it is not known")
                          for device in (H100, MI300, V5E))),
    Program("the_cpus", "jax.devices('cpu')[0].platform == 'gpu'", GPUS,
            caveats=tuple((device, "asks for the CPU's devices: here they are those of the target")
                          for device in (H100, MI300, V5E))),
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_sees_the_platform_of_the_target_or_has_a_caveat(
    tracer: Driver, program: Program
) -> None:
    source = BEGIN + program.before + CHOOSES.format(condition=program.condition)
    for device in (None, H100, V5E, MI300, None):
        answer = tracer.trace(source, file=f"{program.name}.py", device=device)
        assert ("tanh" in answer.jaxpr) == (device in program.on), device
        assert [each.reason for each in answer.caveats] == [
            reason for known, reason in program.caveats if known == device
        ]
        assert answer.asks_platform


SELECTIONS = (
    "import os\nos.environ['JAX_PLATFORMS'] = '{name}'",
    "import jax\njax.config.update('jax_platforms', '{name},cpu')",
    "import jax\njax.config.update('jax_platform_name', '{name}')",
)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_program_may_select_the_platform_of_the_target(tracer: Driver, selection: str) -> None:
    for device, name in ((H100, "cuda"), (V5E, "tpu"), (H100, "cuda")):
        source = f"""{selection.format(name=name)}
import jax.numpy as jnp
TABLE = jnp.arange(4.)
def f(x):
    return x * jnp.sin(TABLE)
"""
        answer = tracer.trace(source, file="selects.py", device=device)
        assert answer.outputs == "f32[4]"
        assert answer.caveats == ()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("os.environ['JAX_PLATFORMS'] = 'cpu'", "selects the CPU"),
        ("jax.config.update('jax_platform_name', 'cpu')", "selects the CPU"),
        ("HERE = os.environ.get('JAX_PLATFORMS') == 'cpu'", "reads which platform is selected"),
        ("HERE = 'JAX_PLATFORMS' in os.environ", "reads which platform is selected"),
        ("HERE = jax.config.jax_platforms", "reads which platform is selected"),
    ],
)
def test_a_selected_cpu_has_a_caveat(tracer: Driver, statement: str, reason: str) -> None:
    source = f"import os\nimport jax\n{statement}\ndef f(x):\n    return x\n"
    if "HERE" in statement:
        source = source.replace("return x", "return x if HERE else 2 * x")
    (caveat,) = tracer.trace(source, file="selected.py", device=H100).caveats
    assert caveat.reason.startswith(reason)
    assert tracer.trace(source, file="selected.py").caveats == ()


GRADIENT = """
import jax
def f(x):
    return jax.grad(lambda a: jax.random.gamma(jax.random.key(0), a).sum())(x)
"""
BINOMIAL = """
import jax
from numpyro.distributions.util import binomial
def f(x):
    return binomial(jax.random.key(0), x, 10)
"""


def test_jax_chooses_by_the_platform_of_the_target(tracer: Driver) -> None:
    # Derivatives are computed one after another on CPUs, and all at once on other devices.
    on_cpu, on_gpu, on_tpu, again = (
        tracer.trace(GRADIENT, file="gamma.py", device=device).equations
        for device in (None, H100, V5E, None)
    )
    assert on_cpu == again
    assert on_gpu == on_tpu != on_cpu


@pytest.mark.skipif(importlib.util.find_spec("numpyro") is None, reason="needs NumPyro")
def test_a_library_sees_the_platform_of_the_target(fresh: Driver, tmp_path: Path) -> None:
    answer = fresh.trace(BINOMIAL, device=H100)
    assert answer.asks_platform
    # The library stays loaded, and may have kept what it was told.
    spoiled = fresh.ask(BINOMIAL)
    assert isinstance(spoiled, Spoiled)
    assert spoiled.reason == "package numpyro was used for another platform"
    another = Driver(tmp_path)
    try:
        assert another.trace(BINOMIAL).equations != answer.equations
    finally:
        another.close()


def test_a_kernel_of_pallas_is_compiled_on_its_platform_only(tracer: Driver) -> None:
    source = """
    import jax
    from jax.experimental import pallas as pl
    def double(x_ref, o_ref):
        o_ref[...] = 2 * x_ref[...]
    def f(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        on_cpu = jax.default_backend() == "cpu"
        return pl.pallas_call(double, out_shape=shape, interpret=on_cpu)(x)
    """
    assert "interpret=True" in tracer.trace(source, file="pallas.py").jaxpr
    assert "interpret=False" in tracer.trace(source, file="pallas.py", device=H100).jaxpr


INNER = """
import jax
import jax.numpy as jnp
@jax.jit
def inner(x):
    return jnp.tanh(x) if jax.default_backend() == "gpu" else jnp.sin(x)
def f(x):
    return inner(x) * {factor}
"""


def test_what_jax_has_cached_of_a_platform_is_not_used_for_another(tracer: Driver) -> None:
    for factor, device in ((2.0, H100), (3.0, H100), (3.0, None), (4.0, V5E), (4.0, H100)):
        answer = tracer.trace(INNER.format(factor=factor), file="inner.py", device=device)
        assert ("tanh" in answer.jaxpr) == (device == H100)
        assert answer.asks_platform


def test_a_module_of_the_project_sees_the_platform(tracer: Driver) -> None:
    tracer.write("ours.py", "import jax\n\nON_GPU = jax.default_backend() == 'gpu'\n")
    source = "import jax.numpy as jnp\nimport ours\n" + CHOOSES.format(condition="ours.ON_GPU")
    for file in ("first.py", "second.py"):
        for device in (H100, None, H100):
            answer = tracer.trace(source, file=file, device=device)
            assert ("tanh" in answer.jaxpr) == (device == H100)
            assert answer.asks_platform


def test_a_caveat_about_a_module_of_the_project_is_at_its_import(tracer: Driver) -> None:
    tracer.write("ours.py", "import jax\n\nMEMORY = jax.devices()[0].memory_stats()\n")
    source = "import jax.numpy as jnp\nimport ours\n" + CHOOSES.format(condition="ours.MEMORY")
    (caveat,) = tracer.trace(source, device=H100).caveats
    assert caveat.reason == (
        "imports `ours.py`, whose line 3 reads `memory_stats()`: they are the CPU's here"
    )
    tracer.write("ours.py", "import jax\n\nMEMORY = None\n")
    assert tracer.trace(source, device=H100).caveats == ()


def test_a_caveat_is_at_the_line_that_asks(tracer: Driver) -> None:
    source = "import jax\ndef f(x):\n\n    jax.devices()[0].memory_stats()\n    return x\n"
    (caveat,) = tracer.trace(source, file="line.py", device=H100).caveats
    assert caveat.line == 3


def test_a_file_that_does_not_ask_is_not_executed_again(tracer: Driver) -> None:
    plain = "import jax.numpy as jnp\nTABLE = jnp.arange(4.)\ndef f(x):\n    return x * TABLE\n"
    asking = BEGIN + CHOOSES.format(condition="jax.default_backend() == 'gpu'")
    answer = tracer.trace(plain, file="plain.py", device=H100)
    assert answer.executed == 3
    assert not answer.asks_platform
    for device in (None, H100, None):
        answer = tracer.trace(plain, file="plain.py", device=device)
        assert answer.executed == 0
        assert not answer.asks_platform
    assert tracer.trace(asking, file="asks.py", device=H100).asks_platform
    # It is not shown another platform, as it does not ask.
    assert tracer.trace(plain, file="plain.py").executed == 0
    assert tracer.trace(asking, file="asks.py", device=H100).executed == 0


def test_code_that_catches_everything_sees_the_platform(tracer: Driver) -> None:
    source = (
        BEGIN
        + """
def on_gpu():
    try:
        return jax.default_backend() == "gpu"
    except BaseException:
        return False
"""
        + CHOOSES.format(condition="on_gpu()")
    )
    other = BEGIN + CHOOSES.format(condition="jax.default_backend() == 'gpu'")
    tracer.trace(other, file="other.py")
    assert "tanh" in tracer.trace(source, file="catches.py", device=H100).jaxpr


def test_arrays_are_computed_on_the_cpu(tracer: Driver) -> None:
    source = """
    import jax
    import jax.numpy as jnp
    assert jax.default_backend() == "gpu"
    TABLE = jnp.linalg.svd(jax.random.normal(jax.random.key(0), (4, 4)))[1]
    PLACED = jax.device_put(TABLE, jax.devices("gpu")[0])
    def f(x):
        return jax.device_put(x, jax.devices("gpu")[0]) * PLACED
    """
    answer = tracer.trace(source, file="eager.py", device=H100)
    assert answer.outputs == "f32[4]"
    assert answer.caveats == ()


def test_an_error_of_code_that_asked_says_where_it_is_executed(tracer: Driver) -> None:
    source = """
    import jax
    def f(x):
        if jax.default_backend() == "gpu":
            raise RuntimeError("no CUDA here")
        return x
    """
    assert isinstance(tracer.ask(source, file="raises.py"), Traced)
    failure = tracer.fail(source, file="raises.py", device=H100).failure
    assert failure.message == "no CUDA here"
    assert failure.notes == ("the program sees the platform `gpu`, but is executed on a CPU here",)
