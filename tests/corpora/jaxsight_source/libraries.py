"""Functions of libraries that people have written down as source: optimizers, losses, layers,
solvers, samplers.

Each is made anew under the setting that it is checked under; libraries are imported by those that
need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp

from tests.corpora.jaxsight_source.programs.registry import Call, called, floats, integers


class Time(Enum):
    """What it takes to write, to compile and to compare a function."""

    LITTLE = "about a second"
    SOME = "some seconds"
    LONG = "so long that it is held in one way of writing and setting of types alone"


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """`imports` are packages that the text may import: types of results, and primitives, of the
    library's own.
    """

    name: str
    make: Callable[[], Call]
    imports: frozenset[str]
    time: Time


FUNCTIONS: dict[str, LibraryFunction] = {}


def function(
    *imports: str, time: Time = Time.LITTLE
) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Registers what makes a function and its arguments."""

    def register(make: Callable[[], Call]) -> Callable[[], Call]:
        name = make.__name__
        FUNCTIONS[name] = LibraryFunction(name, make, frozenset(imports), time)
        return make

    return register


def _parameters() -> dict[str, Any]:
    return {"w": jnp.array(floats(8, 4)), "b": jnp.array(floats(4))}


def _gradients() -> dict[str, Any]:
    return {"w": jnp.array(floats(8, 4, high=2.0)), "b": jnp.ones(4, jnp.float32)}


def _updated(optimizer: Any) -> Call:
    parameters = _parameters()
    return called(optimizer.update, _gradients(), optimizer.init(parameters), parameters)


@function("optax")
def optax_adam() -> Call:
    import optax

    return _updated(optax.adam(1e-3))


@function("optax")
def optax_adamw_with_clipping_and_a_schedule() -> Call:
    import optax

    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)
    return _updated(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)))


@function("optax")
def optax_lamb() -> Call:
    import optax

    return _updated(optax.lamb(1e-3, weight_decay=1e-2))


@function("optax")
def optax_adafactor() -> Call:
    import optax

    return _updated(optax.adafactor(1e-3, min_dim_size_to_factor=4))


@function("optax")
def optax_momentum_step() -> Call:
    import optax

    optimizer = optax.sgd(1e-2, momentum=0.9, nesterov=True)
    parameters = _parameters()

    def step(parameters: Any, state: Any, gradients: Any) -> Any:
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    return called(step, parameters, optimizer.init(parameters), _gradients())


@function("optax", time=Time.SOME)
def optax_lbfgs_step() -> Call:
    import optax

    optimizer = optax.lbfgs(memory_size=4)

    def loss(x: Any) -> Any:
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def step(x: Any, state: Any) -> Any:
        value, gradient = optax.value_and_grad_from_state(loss)(x, state=state)
        updates, state = optimizer.update(
            gradient, state, x, value=value, grad=gradient, value_fn=loss
        )
        return optax.apply_updates(x, updates), state

    x = jnp.array(floats(4))
    return called(step, x, optimizer.init(x))


@function("optax")
def optax_cross_entropy() -> Call:
    import optax

    logits, labels = jnp.array(floats(4, 8)), jnp.array(integers(4, modulus=8))
    return called(optax.softmax_cross_entropy_with_integer_labels, logits, labels)


@function()
def optax_ctc_loss() -> Call:
    import optax

    logits = jnp.array(floats(2, 6, 5))
    labels = jnp.array(integers(2, 3, modulus=4) + 1)
    return called(optax.ctc_loss, logits, jnp.zeros((2, 6)), labels, jnp.zeros((2, 3)))


@function()
def optax_focal_loss() -> Call:
    import optax

    labels = (jnp.array(floats(4, 8)) > 0).astype(jnp.float32)
    return called(optax.sigmoid_focal_loss, jnp.array(floats(4, 8)), labels, alpha=0.25)


@function()
def optax_projection_on_the_simplex() -> Call:
    import optax

    return called(optax.projections.projection_simplex, jnp.array(floats(16)))


@function("optax", time=Time.SOME)
def optax_muon() -> Call:
    import optax

    return _updated(optax.contrib.muon(1e-3))


@function("optax", time=Time.SOME)
def optax_steps_that_gather_gradients() -> Call:
    import optax

    optimizer, parameters = optax.MultiSteps(optax.adam(1e-3), 3), _parameters()
    return called(optimizer.update, _gradients(), optimizer.init(parameters), parameters)


@function("optax", time=Time.SOME)
def optax_hyperparameters_in_the_state() -> Call:
    import optax

    schedule = optax.exponential_decay(1e-2, 10, 0.9)
    return _updated(optax.inject_hyperparams(optax.adam)(learning_rate=schedule))


@function(time=Time.SOME)
def optax_losses() -> Call:
    import optax

    def losses(a: Any, b: Any) -> Any:
        divergence = optax.kl_divergence(jax.nn.log_softmax(a), jax.nn.softmax(b))
        return optax.huber_loss(a, b), optax.cosine_distance(a, b), divergence

    return called(losses, jnp.array(floats(4, 5)), jnp.array(floats(4, 5)))


@function("equinox")
def equinox_mlp() -> Call:
    import equinox as eqx

    model = eqx.nn.MLP(8, 4, 16, 2, key=jax.random.key(0))
    return called(jax.vmap(model), jnp.array(floats(4, 8)))


@function("equinox", time=Time.SOME)
def equinox_attention_with_mask_and_dropout() -> Call:
    import equinox as eqx

    model = eqx.nn.MultiheadAttention(2, 8, dropout_p=0.1, key=jax.random.key(0))
    x, mask = jnp.array(floats(6, 8)), jnp.tril(jnp.ones((6, 6), bool))

    def attend(x: Any, mask: Any, key: Any) -> Any:
        return model(x, x, x, mask, key=key)

    return called(attend, x, mask, jax.random.key(1))


@function(time=Time.SOME)
def equinox_convolutions() -> Call:
    import equinox as eqx

    one, two = jax.random.split(jax.random.key(0))
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(3, 4, 3, padding=1, key=one),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.ConvTranspose2d(4, 2, 2, stride=2, key=two),
            eqx.nn.AvgPool2d(2, 2),
        ]
    )
    return called(model, jnp.array(floats(3, 8, 8), float))


@function("equinox", time=Time.SOME)
def equinox_lstm_over_a_sequence() -> Call:
    import equinox as eqx

    cell = eqx.nn.LSTMCell(4, 8, key=jax.random.key(0))

    def run(cell: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = cell(x, state)
            return state, state[0]

        zeros = jnp.zeros(8, xs.dtype), jnp.zeros(8, xs.dtype)
        return jax.lax.scan(step, zeros, xs)

    return called(run, cell, jnp.array(floats(5, 4), float))


@function(time=Time.SOME)
def equinox_gru_cell() -> Call:
    import equinox as eqx

    cell = eqx.nn.GRUCell(4, 8, key=jax.random.key(0))
    return called(cell, jnp.array(floats(4)), jnp.array(floats(8)))


@function("equinox")
def equinox_batch_norm_at_inference() -> Call:
    import equinox as eqx

    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, "batch", mode="batch")
    norm = eqx.nn.inference_mode(norm)

    def normalize(x: Any) -> Any:
        return jax.vmap(lambda row: norm(row, state)[0], axis_name="batch")(x)

    return called(normalize, jnp.array(floats(6, 4)))


@function(time=Time.SOME)
def equinox_rotary_embedding_and_norms() -> Call:
    import equinox as eqx

    rotary = eqx.nn.RotaryPositionalEmbedding(8)
    group, rms = eqx.nn.GroupNorm(2, 8), eqx.nn.RMSNorm(8)

    def embed(x: Any) -> Any:
        return jax.vmap(rms)(jax.vmap(group)(rotary(x)))

    return called(embed, jnp.array(floats(6, 8)))


@function("equinox", "optax", time=Time.SOME)
def equinox_training_step() -> Call:
    import equinox as eqx
    import optax

    model = eqx.nn.MLP(4, 3, 8, 2, key=jax.random.key(0))
    optimizer = optax.adam(1e-3)

    def loss(model: Any, x: Any, labels: Any) -> Any:
        logits = jax.vmap(model)(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(model: Any, state: Any, x: Any, labels: Any) -> Any:
        value, gradients = eqx.filter_value_and_grad(loss)(model, x, labels)
        updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
        return eqx.filter(eqx.apply_updates(model, updates), eqx.is_array), state, value

    state = optimizer.init(eqx.filter(model, eqx.is_array))
    return called(step, model, state, jnp.array(floats(5, 4)), jnp.array(integers(5, modulus=3)))


@function("equinox", time=Time.SOME)
def equinox_layers_by_a_scan() -> Call:
    import equinox as eqx

    keys = jax.random.split(jax.random.key(0), 3)
    layers = eqx.filter_vmap(lambda key: eqx.nn.Linear(4, 4, key=key))(keys)
    arrays, static = eqx.partition(layers, eqx.is_array)

    def run(x: Any, arrays: Any) -> Any:
        def step(x: Any, layer: Any) -> Any:
            return jax.nn.relu(eqx.combine(layer, static)(x)), None

        return jax.lax.scan(step, x, arrays)[0]

    return called(run, jnp.array(floats(4), float), arrays)


@function("equinox", time=Time.SOME)
def equinox_parametric_activation() -> Call:
    import equinox as eqx

    pool = eqx.nn.AdaptiveAvgPool2d(2)
    activation = eqx.nn.PReLU()
    return called(lambda x: pool(activation(x)), jnp.array(floats(3, 6, 6)))


@function("equinox", time=Time.SOME)
def equinox_checkpointed_loop() -> Call:
    from equinox.internal import while_loop

    def run(x: Any) -> Any:
        def loss(x: Any) -> Any:
            init = (jnp.zeros((), jnp.int32), x)
            _, y = while_loop(
                lambda state: state[0] < 3,
                lambda state: (state[0] + 1, jnp.sin(state[1]) * 2),
                init,
                max_steps=8,
                kind="checkpointed",
            )
            return y.sum()

        return jax.value_and_grad(loss)(x)

    return called(run, jnp.array(floats(4)))


@function()
def flax_attention() -> Call:
    import flax.linen as nn

    module = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8)
    x = jnp.array(floats(2, 6, 8))
    mask = nn.make_causal_mask(x[..., 0])
    variables = module.init(jax.random.key(0), x, x, mask=mask)
    return called(lambda variables, x: module.apply(variables, x, x, mask=mask), variables, x)


@function()
def flax_batch_norm_at_inference() -> Call:
    import flax.linen as nn

    module = nn.BatchNorm(use_running_average=True)
    x = jnp.array(floats(6, 4))
    return called(module.apply, module.init(jax.random.key(0), x), x)


@function()
def flax_batch_norm_in_training() -> Call:
    import flax.linen as nn

    module = nn.BatchNorm(use_running_average=False)
    x = jnp.array(floats(6, 4))
    variables = module.init(jax.random.key(0), x)
    return called(lambda v, x: module.apply(v, x, mutable=["batch_stats"]), variables, x)


@function(time=Time.SOME)
def flax_lstm() -> Call:
    import flax.linen as nn

    module = nn.RNN(nn.OptimizedLSTMCell(8))
    x = jnp.array(floats(2, 5, 4))
    return called(module.apply, module.init(jax.random.key(0), x), x)


@function(time=Time.SOME)
def flax_convolutional_network() -> Call:
    import flax.linen as nn

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.relu(nn.Conv(4, (3, 3))(x))
            x = nn.avg_pool(x, (2, 2), strides=(2, 2))
            x = nn.GroupNorm(2)(x)
            return nn.Dense(3)(x.reshape(x.shape[0], -1))

    x = jnp.array(floats(2, 8, 8, 3))
    return called(Network().apply, Network().init(jax.random.key(0), x), x)


@function(time=Time.SOME)
def flax_embedding_and_layer_norm() -> Call:
    import flax.linen as nn

    class Network(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            embed = nn.Embed(16, 8)
            return embed.attend(nn.LayerNorm()(embed(tokens)))

    tokens = jnp.array(integers(2, 6))
    return called(Network().apply, Network().init(jax.random.key(0), tokens), tokens)


@function(time=Time.SOME)
def flax_transformer_block_in_training() -> Call:
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            y = nn.LayerNorm()(x)
            x = x + nn.SelfAttention(2, dropout_rate=0.1, deterministic=False)(y)
            y = nn.gelu(nn.Dense(16)(nn.LayerNorm()(x)))
            y = nn.Dropout(0.1, deterministic=False)(y)
            return x + nn.Dense(x.shape[-1])(y)

    block, x = Block(), jnp.array(floats(2, 5, 8))
    variables = block.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x)

    def apply(variables: Any, x: Any, key: Any) -> Any:
        return block.apply(variables, x, rngs={"dropout": key})

    return called(apply, variables, x, jax.random.key(2))


@function(time=Time.SOME)
def flax_checkpointed_layers_by_a_scan() -> Call:
    import flax.linen as nn

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x: Any, _: Any) -> Any:
            return nn.relu(nn.Dense(4)(x)), None

    layers = nn.scan(
        nn.remat(Layer), variable_axes={"params": 0}, split_rngs={"params": True}, length=3
    )()
    x = jnp.array(floats(2, 4))
    variables = layers.init(jax.random.key(0), x, None)

    def loss(variables: Any, x: Any) -> Any:
        return layers.apply(variables, x, None)[0].sum()

    return called(jax.grad(loss), variables, x)


@function(time=Time.SOME)
def flax_recurrence_in_both_directions() -> Call:
    import flax.linen as nn

    module = nn.Bidirectional(nn.RNN(nn.GRUCell(4)), nn.RNN(nn.SimpleCell(4)))
    x = jnp.array(floats(2, 5, 3))
    return called(module.apply, module.init(jax.random.key(0), x), x)


@function("flax", time=Time.SOME)
def flax_nnx_state_in_and_out() -> Call:
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.conv = nnx.Conv(2, 3, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(3, rngs=rngs)
            self.dropout = nnx.Dropout(0.2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.dropout(nnx.relu(self.norm(self.conv(x))))

    graph, state = nnx.split(Network(nnx.Rngs(0)))

    def apply(state: Any, x: Any) -> Any:
        module = nnx.merge(graph, state)
        return module(x), nnx.split(module)[1]

    return called(apply, state, jnp.array(floats(2, 5, 5, 2)))


@function()
def flax_nnx_network() -> Call:
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.inside = nnx.Linear(4, 8, rngs=rngs)
            self.outside = nnx.Linear(8, 2, rngs=rngs)
            self.norm = nnx.LayerNorm(8, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.outside(nnx.gelu(self.norm(self.inside(x))))

    graph, state = nnx.split(Network(nnx.Rngs(0)))
    pure = nnx.to_pure_dict(state)

    def apply(state: Any, x: Any) -> Any:
        return nnx.merge(graph, nnx.State(state))(x)

    return called(apply, pure, jnp.array(floats(3, 4)))


def _field(t: Any, y: Any, args: Any) -> Any:
    return jnp.stack([y[1], -args * y[0] - 0.1 * y[1]])


@function("equinox", "diffrax", time=Time.LONG)
def diffrax_tsit5() -> Call:
    import diffrax

    def solve(y0: Any, stiffness: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=2.0,
            dt0=0.1,
            y0=y0,
            args=stiffness,
            saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 2.0, 5)),
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
        ).ys

    return called(solve, jnp.array(floats(2)), jnp.asarray(2.0))


@function("equinox", "diffrax", time=Time.LONG)
def diffrax_gradient_of_a_solution() -> Call:
    import diffrax

    def loss(y0: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(_field),
            diffrax.Heun(),
            t0=0.0,
            t1=1.0,
            dt0=0.25,
            y0=y0,
            args=jnp.asarray(2.0),
            max_steps=8,
        )
        return jnp.sum(solution.ys**2)

    return called(jax.value_and_grad(loss), jnp.array(floats(2)))


@function("equinox", "diffrax", time=Time.LONG)
def diffrax_implicit_solver() -> Call:
    import diffrax

    def solve(y0: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_field),
            diffrax.Kvaerno3(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=y0,
            args=jnp.asarray(50.0),
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
        ).ys

    return called(solve, jnp.array(floats(2)))


@function("equinox", "diffrax", time=Time.LONG)
def diffrax_stochastic_equation() -> Call:
    import diffrax

    def solve(y0: Any, key: Any) -> Any:
        noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y),
            diffrax.ControlTerm(lambda t, y, args: 0.1 * y, noise),
        )
        return diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.1, y0).ys

    return called(solve, jnp.asarray(1.0), jax.random.key(0))


@function("equinox", "diffrax", time=Time.SOME)
def diffrax_interpolation() -> Call:
    import diffrax

    def interpolate(ts: Any, ys: Any, t: Any) -> Any:
        coefficients = diffrax.backward_hermite_coefficients(ts, ys)
        cubic = diffrax.CubicInterpolation(ts, coefficients)
        return (
            cubic.evaluate(t),
            cubic.derivative(t),
            diffrax.LinearInterpolation(ts, ys).evaluate(t),
        )

    ts = jnp.array(floats(6, low=0.0).cumsum())
    return called(interpolate, ts, jnp.array(floats(6, 3)), jnp.asarray(0.7))


def _matrix(size: int) -> Any:
    return jnp.array(floats(size, size)) + 3 * jnp.eye(size, dtype=jnp.float32)


@function("lineax", "equinox", time=Time.SOME)
def lineax_lu() -> Call:
    import lineax

    def solve(matrix: Any, vector: Any) -> Any:
        operator = lineax.MatrixLinearOperator(matrix)
        return lineax.linear_solve(operator, vector, lineax.LU()).value

    return called(solve, _matrix(4), jnp.array(floats(4)))


@function("lineax", "equinox", time=Time.SOME)
def lineax_least_squares() -> Call:
    import lineax

    def solve(matrix: Any, vector: Any) -> Any:
        operator = lineax.MatrixLinearOperator(matrix)
        return lineax.linear_solve(operator, vector, lineax.QR()).value

    return called(solve, jnp.array(floats(6, 3)), jnp.array(floats(6)))


@function("lineax", "equinox", time=Time.SOME)
def lineax_conjugate_gradients() -> Call:
    import lineax

    def solve(matrix: Any, vector: Any) -> Any:
        operator = lineax.MatrixLinearOperator(matrix @ matrix.T, lineax.positive_semidefinite_tag)
        return lineax.linear_solve(operator, vector, lineax.CG(rtol=1e-4, atol=1e-4)).value

    return called(solve, _matrix(4), jnp.array(floats(4)))


@function("lineax", "equinox", time=Time.SOME)
def lineax_tridiagonal() -> Call:
    import lineax

    def solve(diagonal: Any, lower: Any, upper: Any, vector: Any) -> Any:
        operator = lineax.TridiagonalLinearOperator(diagonal, lower, upper)
        return lineax.linear_solve(operator, vector).value

    near = jnp.array(floats(3))
    return called(solve, jnp.array(floats(4, low=3.0, high=4.0)), near, near, jnp.array(floats(4)))


@function("lineax", "equinox", time=Time.LONG)
def lineax_gmres_of_a_function() -> Call:
    import lineax

    def solve(diagonal: Any, vector: Any) -> Any:
        operator = lineax.FunctionLinearOperator(
            lambda x: diagonal * x + 0.1 * jnp.roll(x, 1), jax.eval_shape(lambda: vector)
        )
        solver = lineax.GMRES(rtol=1e-4, atol=1e-4, restart=3)
        return lineax.linear_solve(operator, vector, solver).value

    return called(solve, jnp.array(floats(4, low=1.0, high=2.0)), jnp.array(floats(4)))


@function("lineax", "equinox", "optimistix", time=Time.LONG)
def optimistix_newton() -> Call:
    import optimistix as optx

    def solve(x: Any, y: Any) -> Any:
        solver = optx.Newton(rtol=1e-4, atol=1e-4)
        return optx.root_find(lambda x, y: x**3 + x - y, solver, x, y).value

    return called(solve, jnp.array(floats(3)), jnp.array(floats(3)))


@function("lineax", "equinox", "optimistix", time=Time.SOME)
def optimistix_levenberg_marquardt() -> Call:
    import optimistix as optx

    def fit(parameters: Any, x: Any, y: Any) -> Any:
        def residuals(parameters: Any, data: Any) -> Any:
            x, y = data
            return parameters[0] * jnp.exp(parameters[1] * x) - y

        solver = optx.LevenbergMarquardt(rtol=1e-3, atol=1e-3)
        # Without `throw`: the callback that raises holds bytes that equinox draws for each trace.
        return optx.least_squares(
            residuals, solver, parameters, (x, y), max_steps=16, throw=False
        ).value

    x = jnp.array(floats(8, low=0.0))
    return called(fit, jnp.array([1.0, -0.5]), x, 2 * jnp.exp(-x))


@function("lineax", "equinox", "optimistix", time=Time.LONG)
def optimistix_bfgs() -> Call:
    import optimistix as optx

    def minimum(x: Any) -> Any:
        solver = optx.BFGS(rtol=1e-3, atol=1e-3)
        return optx.minimise(lambda x, _: jnp.sum((x - 1) ** 4), solver, x, max_steps=64).value

    return called(minimum, jnp.array(floats(3)))


@function("equinox", "optimistix", time=Time.LONG)
def optimistix_fixed_point() -> Call:
    import optimistix as optx

    def solve(x: Any) -> Any:
        solver = optx.FixedPointIteration(rtol=1e-4, atol=1e-4)
        return optx.fixed_point(lambda x, _: jnp.cos(x), solver, x).value

    return called(solve, jnp.array(floats(3), float))


def _regression(x: Any, y: Any = None) -> None:
    import numpyro
    import numpyro.distributions as dist

    weights = numpyro.sample("weights", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ weights, scale), obs=y)


@function()
def numpyro_log_density() -> Call:
    from numpyro.infer.util import log_density

    def density(parameters: Any, x: Any, y: Any) -> Any:
        return log_density(_regression, (x, y), {}, parameters)[0]

    parameters = {"weights": jnp.array(floats(3)), "scale": jnp.asarray(0.5)}
    return called(density, parameters, jnp.array(floats(6, 3)), jnp.array(floats(6)))


@function()
def numpyro_mixture() -> Call:
    import numpyro.distributions as dist

    def sample(logits: Any, means: Any, key: Any) -> Any:
        mixture = dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(means, 1.0))
        drawn = mixture.sample(key, (4,))
        return drawn, mixture.log_prob(drawn)

    return called(sample, jnp.array(floats(3)), jnp.array(floats(3, high=4.0)), jax.random.key(0))


@function(time=Time.SOME)
def numpyro_log_probabilities() -> Call:
    import numpyro.distributions as dist

    def densities(x: Any, key: Any) -> Any:
        return (
            dist.Beta(2.0, 3.0).log_prob(jax.nn.sigmoid(x)),
            dist.StudentT(3.0, 0.0, 1.0).log_prob(x),
            dist.VonMises(0.0, 2.0).log_prob(x),
            dist.Dirichlet(jnp.ones(3)).log_prob(jax.nn.softmax(x)),
            dist.LKJCholesky(3, 1.0).sample(key),
        )

    return called(densities, jnp.array(floats(3)), jax.random.key(0))


@function(time=Time.SOME)
def numpyro_counts() -> Call:
    import numpyro.distributions as dist

    def counts(p: Any, key: Any) -> Any:
        one, two = jax.random.split(key)
        drawn = dist.Binomial(10, p).sample(one)
        return (
            drawn,
            dist.Binomial(10, p).log_prob(drawn),
            dist.NegativeBinomial2(3.0, 2.0).sample(two),
        )

    return called(counts, jnp.float32(0.3), jax.random.key(0))


@function("numpyro")
def numpyro_leapfrog() -> Call:
    from numpyro.infer.hmc_util import velocity_verlet

    def potential(z: Any) -> Any:
        return jnp.sum(z["x"] ** 2) / 2 + jnp.log1p(jnp.sum(z["x"] ** 4))

    def kinetic(inverse_mass: Any, r: Any) -> Any:
        return 0.5 * jnp.sum(inverse_mass["x"] * r["x"] ** 2)

    init, update = velocity_verlet(potential, kinetic)

    def trajectory(z: Any, r: Any, inverse_mass: Any) -> Any:
        state = init({"x": z}, {"x": r})
        return jax.lax.fori_loop(
            0, 5, lambda _, state: update(0.1, {"x": inverse_mass}, state), state
        )

    return called(trajectory, jnp.array(floats(3)), jnp.array(floats(3)), jnp.ones(3))


@function("numpyro", time=Time.SOME)
def numpyro_nuts_step() -> Call:
    from numpyro.infer import NUTS

    kernel = NUTS(potential_fn=lambda z: jnp.sum(z**2) / 2, max_tree_depth=3)
    z = jnp.array(floats(3), float)
    state = kernel.init(jax.random.PRNGKey(0), 5, z, (), {})
    return called(lambda state: kernel.sample(state, (), {}), state)


@function("numpyro", "optax", time=Time.SOME)
def numpyro_variational_step() -> Call:
    import numpyro
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    x, y = jnp.array(floats(6, 3)), jnp.array(floats(6))
    svi = SVI(_regression, AutoNormal(_regression), numpyro.optim.Adam(1e-2), Trace_ELBO())
    state = svi.init(jax.random.PRNGKey(0), x, y)
    return called(svi.update, state, x, y)


@function()
def a_function_with_types_of_jaxtyping() -> Call:
    from jaxtyping import Array, Float, jaxtyped

    @jaxtyped(typechecker=None)
    def attention(
        q: Float[Array, "time dim"], k: Float[Array, "other dim"], v: Float[Array, "other dim"]
    ) -> Float[Array, "time dim"]:
        scores: Float[Array, "time other"] = q @ k.T / jnp.sqrt(q.shape[-1])
        return jax.nn.softmax(scores) @ v

    return called(attention, *(jnp.array(floats(n, 4)) for n in (3, 5, 5)))
