"""Training steps of several libraries and styles: their figures are those of the library's own
`jit(...).lower().compile()`.

What a step updates in place is in its program: the kernels that compute the new state, the arrays
that hold it.
"""

from __future__ import annotations

import importlib.util
import textwrap
from dataclasses import dataclass, replace
from typing import Any

import pytest

from jaxsight.compiler.answer import answer
from jaxsight.compiler.hlo import read
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import Lower
from jaxsight_source.compat.inner import equation_count
from tests.tracer.handlers.lab import lab

HEAD = "import dataclasses, functools, jax, jax.numpy as jnp, numpy as np\n"

NNX = """\
from flax import nnx
import optax

class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(8, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.second = nnx.Linear(16, 4, rngs=rngs)

    def __call__(self, x):
        return self.second(self.drop(nnx.relu(self.norm(self.first(x)))))

class Tied(nnx.Module):
    def __init__(self, rngs):
        self.encoder = nnx.Linear(8, 8, rngs=rngs)
        self.decoder = self.encoder

    def __call__(self, x):
        return self.decoder(jnp.tanh(self.encoder(x)))

def made(kind=Model):
    model = kind(nnx.Rngs(0, dropout=1))
    return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

def loss(model, x, y):
    return jnp.mean((model(x) - y) ** 2)

def step(model, optimizer, x, y):
    value, grads = nnx.value_and_grad(loss)(model, x, y)
    optimizer.update(model, grads)
    return value
"""

EQUINOX = """\
import equinox as eqx
import optax

OPTIMIZER = optax.adamw(1e-3)

def made():
    return eqx.nn.MLP(8, 4, 16, 1, key=jax.random.key(0))

def optimizing(model):
    return OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))

def loss(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)

def update(model, state, x, y):
    value, grads = eqx.filter_value_and_grad(loss)(model, x, y)
    updates, state = OPTIMIZER.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value
"""

HAIKU = """\
import haiku as hk
import optax

OPTIMIZER = optax.sgd(0.1, momentum=0.9)

@hk.transform_with_state
def forward(x):
    x = hk.BatchNorm(True, True, 0.9)(hk.Linear(16)(x), is_training=True)
    return hk.Linear(4)(jax.nn.relu(x))

def made():
    return forward.init(jax.random.PRNGKey(0), jnp.ones((32, 8)))

def loss(params, state, x, y):
    predicted, state = forward.apply(params, state, None, x)
    return jnp.mean((predicted - y) ** 2), state

@jax.jit
def step(params, state, moments, x, y):
    (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, x, y)
    updates, moments = OPTIMIZER.update(grads, moments)
    return optax.apply_updates(params, updates), state, moments, value
"""

FUNCTIONS = """\
def params():
    return {"w": jnp.ones((8, 4)), "b": jnp.zeros(4)}

def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) - y) ** 2)

def moved(params, grads, rate=0.1):
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)
"""

pytestmark = pytest.mark.slow

X, Y = "f32[32,8]", "f32[32,4]"


@dataclass(frozen=True)
class Step:
    """A step, and what makes the library's own compiled program of it."""

    name: str
    source: str
    function: str
    arguments: dict[str, str]
    compiled: str
    """An expression with `x` and `y` as arrays."""
    updates: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reference: str = ""
    """More source for it, such as the step as a pure function."""
    needs: str = "jax"


def nnx_step(name: str, compiled: str, source: str = "", kind: str = "Model") -> Step:
    arguments = {"model": f"= made({kind})[0]", "optimizer": f"= made({kind})[1]", "x": X, "y": Y}
    if kind == "Tied":
        arguments["y"] = X
    updates = ("model", "optimizer")
    return Step(name, NNX + source, "step", arguments, compiled, updates, needs="flax")


OWN = """\
@jax.jit
def pure(params, momentum, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return value, moved(params, momentum), momentum
"""

STEPS = [
    nnx_step("an nnx function", "nnx.jit(step).lower(*made(), x, y).compile().compiled"),
    nnx_step("nnx.jit", "step.lower(*made(), x, y).compile().compiled", "step = nnx.jit(step)\n"),
    nnx_step(
        "nnx.jit with donated state",
        "step.lower(*made(), x, y).compile().compiled",
        "step = nnx.jit(step, donate_argnums=(0, 1))\n",
    ),
    nnx_step(
        "an nnx model with tied weights",
        "nnx.jit(step).lower(*made(Tied), x, x).compile().compiled",
        kind="Tied",
    ),
    Step(
        "the counter of an nnx module",
        "from flax import nnx\n"
        "class C(nnx.Module):\n"
        "    def __init__(self): self.count = nnx.Variable(jnp.zeros(8))\n"
        "@nnx.jit\ndef bump(c, x):\n"
        "    c.count[...] = c.count[...] + jnp.sin(x)\n    return x.sum()\n",
        "bump",
        {"c": "= C()", "x": "f32[8]"},
        "bump.lower(C(), jnp.ones(8)).compile().compiled",
        ("c",),
        needs="flax",
    ),
    Step(
        "equinox",
        EQUINOX + "step = eqx.filter_jit(update)\n",
        "step",
        {"model": "= made()", "state": "= optimizing(made())", "x": X, "y": Y},
        "step.lower(made(), optimizing(made()), x, y).compile().compiled",
        needs="equinox",
    ),
    Step(
        "equinox with donated arguments",
        EQUINOX + "step = eqx.filter_jit(donate='all')(update)\n",
        "step",
        {"model": "= made()", "state": "= optimizing(made())", "x": X, "y": Y},
        "step.lower(made(), optimizing(made()), x, y).compile().compiled",
        needs="equinox",
    ),
    Step(
        "equinox with state",
        "import equinox as eqx\n"
        "def made(): return eqx.nn.make_with_state(eqx.nn.BatchNorm)(8, 'batch', mode='batch')\n"
        "@eqx.filter_jit\ndef step(model, state, x):\n"
        "    call = jax.vmap(model, axis_name='batch', in_axes=(0, None), out_axes=(0, None))\n"
        "    y, state = call(x, state)\n    return y.sum(), state\n",
        "step",
        {"model": "= made()[0]", "state": "= made()[1]", "x": X},
        "step.lower(*made(), x).compile().compiled",
        needs="equinox",
    ),
    Step(
        "optax",
        FUNCTIONS + "import optax\nOPTIMIZER = optax.adam(1e-3)\n"
        "@functools.partial(jax.jit, donate_argnums=(0, 1))\ndef step(params, state, x, y):\n"
        "    value, grads = jax.value_and_grad(loss)(params, x, y)\n"
        "    updates, state = OPTIMIZER.update(grads, state)\n"
        "    return optax.apply_updates(params, updates), state, value\n",
        "step",
        {"params": "= params()", "state": "= OPTIMIZER.init(params())", "x": X, "y": Y},
        "step.lower(params(), OPTIMIZER.init(params()), x, y).compile()",
        needs="optax",
    ),
    Step(
        "haiku with state",
        HAIKU,
        "step",
        {
            "params": "= made()[0]",
            "state": "= made()[1]",
            "moments": "= OPTIMIZER.init(made()[0])",
            "x": X,
            "y": Y,
        },
        "step.lower(*made(), OPTIMIZER.init(made()[0]), x, y).compile()",
        needs="haiku",
    ),
    Step(
        "references as arguments",
        FUNCTIONS + "def step(w, x, y):\n"
        "    value, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w[...])\n"
        "    w[...] -= 0.1 * slope\n    return value\n",
        "step",
        {"w": "= jax.new_ref(jnp.ones((8, 4)))", "x": X, "y": Y},
        "jax.jit(step).lower(jax.new_ref(jnp.ones((8, 4))), x, y).compile()",
        ("w",),
    ),
    Step(
        "a captured reference",
        "COUNT = jax.new_ref(jnp.zeros(8))\n"
        "def step(x):\n    COUNT[...] += x.sum(0)\n    return jnp.tanh(x).sum()\n",
        "step",
        {"x": X},
        "jax.jit(step).lower(x).compile()",
        ("COUNT",),
    ),
    Step(
        "a class that updates itself",
        FUNCTIONS + "class Trainer:\n"
        "    def __init__(self):\n"
        "        self.params = params()\n"
        "        self.momentum = jax.tree.map(jnp.zeros_like, self.params)\n"
        "    def step(self, x, y):\n"
        "        value, grads = jax.value_and_grad(loss)(self.params, x, y)\n"
        "        self.momentum = jax.tree.map(lambda m, g: 0.9 * m + g, self.momentum, grads)\n"
        "        self.params = moved(self.params, self.momentum)\n"
        "        return value\n",
        "Trainer.step",
        {"self": "= Trainer()", "x": X, "y": Y},
        "pure.lower(params(), jax.tree.map(jnp.zeros_like, params()), x, y).compile()",
        ("self.params", "self.momentum"),
        reference=OWN,
    ),
    Step(
        "a class with slots and a Python counter",
        FUNCTIONS + "@dataclasses.dataclass(slots=True)\nclass Trainer:\n"
        "    params: dict\n    steps: int = 0\n"
        "    def step(self, x, y):\n"
        "        value, grads = jax.value_and_grad(loss)(self.params, x, y)\n"
        "        self.params['w'] = self.params['w'] - 0.1 * grads['w']\n"
        "        self.steps += 1\n        return value\n",
        "Trainer.step",
        {"self": "= Trainer(params())", "x": X, "y": Y},
        "pure.lower(params(), x, y).compile()",
        ("self.steps", "self.params"),
        ("self.steps",),
        reference="@jax.jit\ndef pure(params, x, y):\n"
        "    value, grads = jax.value_and_grad(loss)(params, x, y)\n"
        "    return value, params['w'] - 0.1 * grads['w']\n",
    ),
    Step(
        "globals",
        FUNCTIONS + "PARAMS = params()\nSTEPS = jnp.zeros((), jnp.int32)\n"
        "def step(x, y):\n    global PARAMS, STEPS\n"
        "    value, grads = jax.value_and_grad(loss)(PARAMS, x, y)\n"
        "    PARAMS = moved(PARAMS, grads)\n    STEPS += 1\n    return value\n",
        "step",
        {"x": X, "y": Y},
        "pure.lower(PARAMS, STEPS, x, y).compile()",
        ("PARAMS", "STEPS"),
        reference="@jax.jit\ndef pure(params, steps, x, y):\n"
        "    value, grads = jax.value_and_grad(loss)(params, x, y)\n"
        "    return value, moved(params, grads), steps + 1\n",
    ),
    Step(
        "a dict with numbers",
        FUNCTIONS + "def step(state, x, y):\n"
        "    value, grads = jax.value_and_grad(loss)(state['params'], x, y)\n"
        "    state['params'] = moved(state['params'], grads, state['rate'])\n"
        "    state['step'] += 1\n    return value\n",
        "step",
        {"state": "= {'params': params(), 'rate': 0.1, 'step': 3}", "x": X, "y": Y},
        "pure.lower(params(), 0.1, 3, x, y).compile()",
        ("state",),
        reference="@jax.jit\ndef pure(params, rate, step, x, y):\n"
        "    value, grads = jax.value_and_grad(loss)(params, x, y)\n"
        "    return value, moved(params, grads, rate), step + 1\n",
    ),
    Step(
        "a closure",
        FUNCTIONS + "def stepper():\n"
        "    state = params()\n"
        "    def step(x, y):\n        nonlocal state\n"
        "        value, grads = jax.value_and_grad(loss)(state, x, y)\n"
        "        state = moved(state, grads)\n        return value\n"
        "    return step\nstep = stepper()\n",
        "step",
        {"x": X, "y": Y},
        "pure.lower(params(), x, y).compile()",
        ("state",),
        reference="@jax.jit\ndef pure(params, x, y):\n"
        "    value, grads = jax.value_and_grad(loss)(params, x, y)\n"
        "    return value, moved(params, grads)\n",
    ),
]


@dataclass(frozen=True)
class Figures:
    kernels: int
    kinds: tuple[str, ...]
    temporaries: int
    outputs: int
    aliased: int


def shown(traced: Traced, file: Any) -> Figures:
    """What jaxsight's compiler makes of a trace, on the CPU."""
    lowered = file.ask(Lower(0, traced.id, "cpu"))
    compiled = answer(replace(lowered.request, target="cpu"))
    assert isinstance(compiled, Compiled), compiled
    memory = compiled.memory
    kinds = sorted(kernel.kind for kernel in compiled.graph.kernels)
    return Figures(
        compiled.graph.kernel_count,
        tuple(kinds),
        memory.temporaries,
        memory.outputs,
        memory.aliased,
    )


def expected(compiled: Any) -> Figures:
    """The same of what a library compiled."""
    graph, memory = read(compiled.as_text()), compiled.memory_analysis()
    kinds = sorted(kernel.kind for kernel in graph.kernels)
    return Figures(
        graph.kernel_count,
        tuple(kinds),
        memory.temp_size_in_bytes,
        memory.output_size_in_bytes,
        memory.alias_size_in_bytes,
    )


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_has_the_figures_of_the_library(step: Step) -> None:
    if importlib.util.find_spec(step.needs) is None:
        pytest.skip(f"{step.needs} is not installed")
    file = lab(HEAD + textwrap.dedent(step.source))
    traced = file.trace(step.function, **step.arguments)
    assert traced.updates == step.updates
    assert traced.left_out == step.left_out
    exec(step.reference, file.namespace)
    exec("x, y = jnp.ones((32, 8)), jnp.ones((32, 4))", file.namespace)
    assert shown(traced, file) == expected(eval(step.compiled, file.namespace))
    again = file.trace(step.function, **step.arguments)
    assert again.jaxpr == traced.jaxpr
    assert equation_count(file.stored(again.id).jaxpr) == traced.equations
