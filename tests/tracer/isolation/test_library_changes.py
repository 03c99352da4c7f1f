"""What a file changes in other modules is there for that file alone."""

import subprocess
import sys

import pytest

from jaxsight.wire.messages.replies import Listing
from jaxsight.wire.messages.requests import STABLEHLO, Show
from tests.tracer.isolation.driver import Driver

PATCHES = {
    "a function of a library": (
        "import scipy.special\nscipy.special.marked = 1",
        "import scipy.special\nSEEN = hasattr(scipy.special, 'marked')",
    ),
    "a function of Python": (
        "import json\njson.dumps = lambda *_: 'marked'",
        "import json\nSEEN = json.dumps(0) == 'marked'",
    ),
    "a method": (
        "import equinox as eqx\neqx.nn.Linear.__call__ = lambda self, x: 'marked'",
        (
            "import equinox as eqx\nSEEN = eqx.nn.Linear.__call__(None, None) == 'marked' "
            "if eqx.nn.Linear.__call__.__name__ == '<lambda>' else False"
        ),
    ),
    "a class's new attribute": (
        "import fractions\nfractions.Fraction.marked = property(lambda self: 1)",
        "import fractions\nSEEN = hasattr(fractions.Fraction, 'marked')",
    ),
    "a table": (
        "import scipy.constants\nscipy.constants.physical_constants['marked'] = (1.0, '', 0.0)",
        "import scipy.constants\nSEEN = 'marked' in scipy.constants.physical_constants",
    ),
    "a rule of JAX": (
        (
            "from jax import lax\nfrom jax.interpreters import ad\n"
            "ad.primitive_jvps[lax.sin_p] = lambda *_: 'marked'"
        ),
        (
            "from jax import lax\nfrom jax.interpreters import ad\n"
            "SEEN = ad.primitive_jvps[lax.sin_p].__class__.__name__ == 'function'"
        ),
    ),
    "a name of a module of the project": (
        "import helper\nhelper.SCALE = 'marked'",
        "import helper\nSEEN = helper.SCALE == 'marked'",
    ),
    "a list of a module of the project": (
        "import helper\nhelper.register('marked')",
        "import helper\nSEEN = 'marked' in helper.NAMES",
    ),
}

HELPER = "SCALE = 1\nNAMES = []\ndef register(name):\n    NAMES.append(name)\n"

SHOWS = "\ndef f(x):\n    return x * (SEEN + 5.0)\n"


def patching(name: str) -> str:
    """A file whose slice has the patch: what it binds is used."""
    patch, reads = PATCHES[name]
    *imports, last = patch.split("\n")
    return "\n".join([*imports, f"PATCHED = None\nif True:\n    {last}\n    PATCHED = 1", reads])


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_does_not_reach_another_file_and_comes_back_with_its_own(
    tracer: Driver, name: str
) -> None:
    tracer.write("helper.py", HELPER)
    own = patching(name) + SHOWS.replace("return", "PATCHED\n    return")
    other = PATCHES[name][1] + SHOWS
    assert "6.0" in tracer.trace(own, file="own.py").jaxpr
    assert "5.0" in tracer.trace(other, file="other.py").jaxpr
    again = tracer.trace(own.replace("5.0", "7.0"), file="own.py")
    assert "8.0" in again.jaxpr
    assert again.executed == 1
    seen_anew = tracer.trace(own.replace("SEEN =", "SEEN = 0 or"), file="own.py")
    assert "6.0" in seen_anew.jaxpr
    assert "5.0" in tracer.trace(other + "\n", file="third.py").jaxpr


def test_a_patch_that_leaves_the_text_is_undone(tracer: Driver) -> None:
    tracer.write("helper.py", HELPER)
    text = "import helper\nDONE = setattr(helper, 'SCALE', 3.0)\ndef f(x):\n    DONE\n    return x * helper.SCALE\n"
    assert "3.0" in tracer.trace(text).jaxpr
    assert "4.5" in tracer.trace(text.replace("3.0", "4.5")).jaxpr
    assert "3.0" not in tracer.trace(text.replace("setattr(helper, 'SCALE', 3.0)", "0")).jaxpr


def test_a_wrapped_function_is_wrapped_once(tracer: Driver) -> None:
    text = """
    import scipy.special
    def wrapped(f):
        return lambda x: f(x) + 1.0
    DONE = setattr(scipy.special, "expit", wrapped(scipy.special.expit))
    A = float(scipy.special.expit(0.0))
    def f(x):
        DONE
        return x * A
    """
    assert "1.5" in tracer.trace(text).jaxpr
    assert "1.5" in tracer.trace(text.replace("x * A", "x + A")).jaxpr
    assert "1.5" in tracer.trace(text.replace("A = float", "A = 0.0 + float")).jaxpr
    helper = text.replace("import scipy", "import helper\n    import scipy")
    helper = helper.replace("DONE\n        ", "DONE, helper\n        ")
    tracer.write("helper.py", HELPER)
    assert "1.5" in tracer.trace(helper).jaxpr
    tracer.write("helper.py", HELPER.replace("1", "2"))
    assert "1.5" in tracer.trace(helper).jaxpr


def test_a_primitive_of_the_users_can_be_lowered_afterwards(tracer: Driver) -> None:
    text = """
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import mlir
    import jax.numpy as jnp
    double_p = Primitive("double")
    A = double_p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    B = mlir.register_lowering(double_p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
    def f(x):
        A, B
        return double_p.bind(x)
    """
    answer = tracer.trace(text)
    tracer.trace(PATCHES["a function of Python"][1] + SHOWS, file="other.py")
    tracer.send(Show(10**6, answer.id, STABLEHLO, "cpu"))
    shown = tracer.answer()
    assert isinstance(shown, Listing), shown
    assert "stablehlo.add" in shown.text


LIBRARIES = """
import equinox as eqx
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer.util import log_density
KEY = jax.random.key(0)
MODEL = nn.Dense(4)
OPTIMIZER = optax.adam(1e-3)
MLP = eqx.nn.MLP(4, 4, 8, 1, key=KEY)
LINEAR = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
def density(x):
    model = lambda: numpyro.sample("a", dist.Normal(0.0, 1.0).expand([4]))
    return log_density(model, (), {}, {"a": x})[0]
def f(x):
    p = MODEL.init(KEY, x)
    updates, _ = OPTIMIZER.update(p, OPTIMIZER.init(p), p)
    y = MODEL.apply(optax.apply_updates(p, updates), x)
    return jax.grad(density)(y) + eqx.filter_jit(MLP)(x) + LINEAR(x) + jnp.linalg.svd(jnp.outer(x, x))[1]
"""


def test_libraries_at_work_change_nothing_that_counts() -> None:
    pytest.importorskip("flax")
    script = f"""
import jax.numpy
from jaxsight.tracer.isolation.process_state import MODULES
from jaxsight.tracer.isolation.library_snapshot import Snapshot
before = Snapshot(MODULES)
exec({LIBRARIES!r})
assert not before.changes().changes
before.extend()
jax.make_jaxpr(f)(jnp.ones(4))
jax.jit(f)(jnp.ones(4))
jax.clear_caches()
assert not before.changes().changes
optax.adam = None
changes = before.changes()
assert changes
changes.undo()
assert optax.adam is not None
assert not before.changes()
assert not changes.lost
"""
    subprocess.run([sys.executable, "-c", script], check=True)
