"""Functions with a finding, and what a fix makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"


@dataclass(frozen=True)
class Case:
    """`before` has a finding of `code`; `after` is it fixed, `title` what the fix is called, but
    for seconds.
    """

    code: str
    before: str
    after: str
    title: str
    safe: bool = True


def case(code: str, before: str, after: str, title: str, *, safe: bool = True) -> Case:
    """A case from indented texts."""
    return Case(code, _module(before), _module(after), title, safe)


def _module(text: str) -> str:
    return f"{HEAD}\n\n{dedent(text).lstrip()}"


CASES = [
    case(
        "JX101",
        '''
        def grown(x):
            """
            Example inputs:
                x: f32[1024, 512]
            """
            rank = np.arange(x.size).reshape(x.shape)
            return x + rank**2
        ''',
        '''
        def grown(x):
            """
            Example inputs:
                x: f32[1024, 512]
            """
            rank = jnp.arange(x.size).reshape(x.shape)
            return x + rank**2
        ''',
        "Compute it with `jnp` instead of `np` (constants 2 MiB → 0 B)",
    ),
    case(
        "JX101",
        '''
        TABLE = np.random.default_rng(0).normal(size=(1024, 512)).astype("float32")


        def scaled(x, y):
            """
            Example inputs:
                x: f32[1024, 512]
                y: f32[512]
            """
            return x * TABLE + y
        ''',
        '''
        TABLE = np.random.default_rng(0).normal(size=(1024, 512)).astype("float32")


        def scaled(x, y, table):
            """
            Example inputs:
                x: f32[1024, 512]
                y: f32[512]
                table: f32[1024, 512]
            """
            return x * table + y
        ''',
        "Make `TABLE` an argument (constants 2 MiB → 0 B)",
        safe=False,
    ),
    case(
        "JX102",
        '''
        SAMPLES = np.random.default_rng(0).normal(size=200_000).astype("float32")


        def ranked(x):
            """
            Example inputs:
                x: f32[200000]
            """
            return x - jnp.sort(SAMPLES)
        ''',
        '''
        SAMPLES = np.random.default_rng(0).normal(size=200_000).astype("float32")


        SORT_OF_SAMPLES = jnp.sort(SAMPLES)


        def ranked(x):
            """
            Example inputs:
                x: f32[200000]
            """
            return x - SORT_OF_SAMPLES
        ''',
        "Compute it once as `SORT_OF_SAMPLES` (equations 3 → 1)",
    ),
    case(
        "JX104",
        '''
        RANK = np.arange(4, 5004, dtype="int32")


        def weighted(x):
            """
            Example inputs:
                x: f32[5000]
            """
            return x * RANK  # heavier
        ''',
        '''
        RANK = np.arange(4, 5004, dtype="int32")


        def weighted(x):
            """
            Example inputs:
                x: f32[5000]
            """
            return x * (jnp.arange(4, 5004, dtype=jnp.int32))  # heavier
        ''',
        "Generate `RANK` with `jnp.arange(4, 5004, dtype=jnp.int32)` (constants 19.5 KiB → 0 B)",
    ),
    case(
        "JX209",
        '''
        def iterated(x, y):
            """
            Example inputs:
                x, y: f32[100]
            """
            for i in range(3, 40):
                half = y / 2  # the step
                x = jnp.sort(jnp.cumsum(jnp.sort(x))) * i
                y += x + half
            return x, y
        ''',
        '''
        def iterated(x, y):
            """
            Example inputs:
                x, y: f32[100]
            """
            def body(i, carry):
                x, y = carry
                half = y / 2  # the step
                x = jnp.sort(jnp.cumsum(jnp.sort(x))) * i
                y += x + half
                return x, y

            x, y = jax.lax.fori_loop(3, 40, body, (x, y))
            return x, y
        ''',
        "Loop over `i` with `jax.lax.fori_loop` (equations 370 → 13)",
    ),
    case(
        "JX301",
        '''
        def step(x):
            """
            Example inputs:
                x: f32[]
            """
            return jnp.where(x > 0, 1.0, 2.0)
        ''',
        '''
        def step(x):
            """
            Example inputs:
                x: f32[]
            """
            return jnp.where(x > 0, 1.0, 2.0).astype(jnp.float32)
        ''',
        "Specify the dtype `float32`",
    ),
    case(
        "JX302",
        '''
        pooled = jax.jit(lambda x, axes: x.mean(axes), static_argnums=1)


        def total(x):
            """
            Example inputs:
                x: f32[4, 3]
            """
            return pooled(x, [0])
        ''',
        '''
        pooled = jax.jit(lambda x, axes: x.mean(axes), static_argnums=1)


        def total(x):
            """
            Example inputs:
                x: f32[4, 3]
            """
            return pooled(x, (0,))
        ''',
        "Pass a tuple instead of the list (can be traced)",
        safe=False,
    ),
    case(
        "JX303",
        '''
        def doubled(x):
            """
            Example inputs:
                x: f32[3]
            """
            return jax.jit(lambda v: v * 2)(x)
        ''',
        '''
        _doubled_jitted = jax.jit(lambda v: v * 2)


        def doubled(x):
            """
            Example inputs:
                x: f32[3]
            """
            return _doubled_jitted(x)
        ''',
        "Jit it once, as `_doubled_jitted`",
    ),
    case(
        "JX304",
        '''
        def precise(x):
            """
            Example inputs:
                x: f32[3]
            """
            return x.astype(jnp.float64) + jnp.zeros(3, dtype="float64")
        ''',
        '''
        def precise(x):
            """
            Example inputs:
                x: f32[3]
            """
            return x.astype(jnp.float32) + jnp.zeros(3, dtype="float32")
        ''',
        "Use `float32`",
    ),
    case(
        "JX401",
        '''
        def clip(x):
            """
            Example inputs:
                x: f32[]
            """
            if x > 1 and not x > 5:
                return jnp.ones(())
            elif x < -1:
                return -x
            return x
        ''',
        '''
        def clip(x):
            """
            Example inputs:
                x: f32[]
            """
            return jnp.where((x > 1) & (jnp.logical_not(x > 5)), jnp.ones(()), jnp.where(x < -1, -x, x))
        ''',
        "Select with `jnp.where` (can be traced)",
    ),
    case(
        "JX401",
        '''
        def flipped(x):
            """
            Example inputs:
                x: f32[]
            """
            y = x + 1
            if x > 0:
                y = x * 2
            return y
        ''',
        '''
        def flipped(x):
            """
            Example inputs:
                x: f32[]
            """
            y = x + 1
            y = jnp.where(x > 0, x * 2, y)
            return y
        ''',
        "Select with `jnp.where` (can be traced)",
    ),
    case(
        "JX401",
        '''
        def wave(x):
            """
            Example inputs:
                x: f32[8]
            """
            return np.sin(x) * 2
        ''',
        '''
        def wave(x):
            """
            Example inputs:
                x: f32[8]
            """
            return jnp.sin(x) * 2
        ''',
        "Compute it with `jnp` instead of `np` (can be traced)",
    ),
    case(
        "JX401",
        '''
        def sized(x):
            """
            Example inputs:
                x: f32[]
            """
            if x > 1:  # large
                return {"size": x}
            if x > 0:
                return {"size": x * 2}
            else:
                return {"size": -x}
        ''',
        '''
        def sized(x):
            """
            Example inputs:
                x: f32[]
            """
            return jax.lax.cond(x > 1, lambda: {"size": x}, lambda: jax.lax.cond(x > 0, lambda: {"size": x * 2}, lambda: {"size": -x}))
        ''',
        "Branch with `jax.lax.cond` (can be traced)",
        safe=False,
    ),
    case(
        "JX401",
        '''
        def sizes(x):
            """
            Example inputs:
                x: f32[]
            """
            return [v if v > 0 else -v for v in (x, x + 1)]
        ''',
        '''
        def sizes(x):
            """
            Example inputs:
                x: f32[]
            """
            return [jnp.where(v > 0, v, -v) for v in (x, x + 1)]
        ''',
        "Select with `jnp.where` (can be traced)",
    ),
    case(
        "JX405",
        '''
        def root(x):
            """
            Example inputs:
                x: f32[8]
            """
            return jnp.where(x > 0, jnp.sqrt(x), x)
        ''',
        '''
        def root(x):
            """
            Example inputs:
                x: f32[8]
            """
            safe = jnp.where(x > 0, x, 1.0)
            return jnp.where(x > 0, jnp.sqrt(safe), x)
        ''',
        "Guard `x` with a second `where` (NaN or infinite gradients 6 → 0)",
    ),
    case(
        "JX405",
        '''
        def sinc(x):
            """
            Example inputs:
                x: f32[8]
            """
            small = jnp.abs(x) < 1e-3
            return jax.lax.select(small, 1 - x**2 / 6, jnp.sin(x) / x)
        ''',
        '''
        def sinc(x):
            """
            Example inputs:
                x: f32[8]
            """
            small = jnp.abs(x) < 1e-3
            safe = jnp.where(small, 1.0, x)
            return jax.lax.select(small, 1 - x**2 / 6, jnp.sin(safe) / safe)
        ''',
        "Guard `x` with a second `where` (NaN or infinite gradients 2 → 0)",
    ),
    case(
        "JX407",
        '''
        from functools import partial


        @partial(jax.jit, donate_argnums=(0, 1))
        def total(x, y):
            """
            Example inputs:
                x: f32[8]
                y: f32[]
            """
            return x.sum() + y
        ''',
        '''
        from functools import partial


        @partial(jax.jit, donate_argnums=(1,))
        def total(x, y):
            """
            Example inputs:
                x: f32[8]
                y: f32[]
            """
            return x.sum() + y
        ''',
        "Do not donate `x`",
    ),
    case(
        "JX412",
        '''
        def idle(x):
            """
            Example inputs:
                x: f32[8]
            """
            y = jnp.cos(
                x
            )
            return x * 2
        ''',
        '''
        def idle(x):
            """
            Example inputs:
                x: f32[8]
            """
            return x * 2
        ''',
        "Delete `y = jnp.cos( x )` (equations 2 → 1)",
    ),
]

LEFT = {
    "a decorator would make it anew under any name": (
        "JX303",
        '''
        import functools


        def sloped(x):
            """
            Example inputs:
                x: f32[3]
            """

            @functools.partial(jax.jit, static_argnums=1)
            def loss(v, power):
                return jnp.sum(v**power)

            return jax.grad(loss)(x, 2)
        ''',
    ),
    "in 32 bits the numbers would be others": (
        "JX101",
        '''
        def grown(x):
            """
            Example inputs:
                x: f32[1024, 512]
            """
            return x + np.arange(x.size).reshape(x.shape) ** 2.3 % 1.0
        ''',
    ),
    "the loop may end early": (
        "JX209",
        '''
        def iterated(x, early=False):
            """
            Example inputs:
                x: f32[8]
            """
            for i in range(20):
                x = jnp.cumsum(x) / 2
                if early:
                    break
            return x
        ''',
    ),
    "the branches have different shapes": (
        "JX401",
        '''
        def clip(x):
            """
            Example inputs:
                x: f32[]
            """
            if x > 1:
                return jnp.ones(2)
            return x
        ''',
    ),
    "another function of the file would fail": (
        "JX101",
        '''
        TABLE = np.random.default_rng(0).normal(size=(1024, 512)).astype("float32")


        def scaled(x):
            """
            Example inputs:
                x: f32[1024, 512]
            """
            return x * TABLE


        def twice(x):
            """
            Example inputs:
                x: f32[1024, 512]
            """
            return scaled(x) * 2
        ''',
    ),
}
"""Functions with a finding that no fix is offered for, by the reason."""
LEFT = {reason: (code, _module(text)) for reason, (code, text) in LEFT.items()}

ON_A_CPU = {
    "JX208": "Compute the frequencies from `arange` (kernels 2 → 1, temp 256 B → 0 B on cpu)",
}
ON_AN_H100 = {
    "JX103": "Put an `optimization_barrier` around `WINDOW` (memory traffic 12 MiB → 8.1 MiB, constants 4 MiB → 64 KiB on h100)",
    "JX201": "Write out `sum` over the axis of size 2 (kernels 2 → 1, temp 512 KiB → 0 B on h100)",
    "JX204": "Compute `i, j, weight` inside the loop (kernels 6 → 5, launches 43 → 42, temp 2 MiB → 513 B on h100)",
    "JX207": "Unroll the loop (kernels 5 → 1, launches 10 → 1, temp 513 B → 0 B on h100)",
}
"""What fixes the example on a code's page, and what that is good for."""
