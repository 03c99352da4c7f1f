"""`python -m tests.measuring`: how true measurements on this machine's CPU are, which must be idle.

For each of 40 programs: the time of its kernels against the wall time without the host's part, the
medians of two measurements against each other, and against loops that are written by hand. Exits
with status 1 if a program is beyond the limits. Also printed, but not limited: the second loop by
hand against the first, which is how steady this machine is; a profiled run by one without the
profiler; and the sum of kernels by the time in which at least one runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxsight
from jaxsight.library.measuring import Timings

KERNELS, AGAIN, BY_HAND = 0.10, 0.05, 0.05
"""How far the sum of kernels, the second median, and the loop by hand may be off."""
LOOP_SECONDS = 1.0
"""How long a loop by hand runs."""

Shape = tuple[int, ...]


def f32(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), "float32")


def i32(most: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).integers(0, most, size=shape), "int32")


def _attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def _mlp(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    return jax.nn.gelu(x @ a) @ b


def _loss(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    return (_mlp(x, a, b) ** 2).mean()


def _conv(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _rnn(x: jax.Array, h: jax.Array, w: jax.Array) -> jax.Array:
    return lax.scan(lambda h, x: (jnp.tanh(x + h @ w), None), h, x)[0]


def _layer_norm(x: jax.Array) -> jax.Array:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6)


def _adam(p: jax.Array, g: jax.Array, m: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


PROGRAMS: dict[str, tuple[Callable[..., object], tuple[jax.Array, ...]]] = {
    "add": (lambda x: x + 1, (f32(1 << 20),)),
    "add_large": (lambda x: x + 1, (f32(1 << 24),)),
    "tanh": (jnp.tanh, (f32(1 << 20),)),
    "exp_chain": (lambda x: jnp.exp(-jnp.exp(-jnp.exp(-x * x))), (f32(1 << 20),)),
    "erf": (lax.erf, (f32(1 << 20),)),
    "sin_cos": (lambda x: jnp.sin(x) + jnp.cos(x), (f32(1 << 20),)),
    "sum": (jnp.sum, (f32(1 << 22),)),
    "sum_rows": (lambda x: x.sum(1), (f32(2048, 2048),)),
    "sum_columns": (lambda x: x.sum(0), (f32(2048, 2048),)),
    "argmax": (lambda x: x.argmax(1), (f32(1024, 1024),)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (f32(512, 1024),)),
    "softmax": (jax.nn.softmax, (f32(1024, 1024),)),
    "log_softmax": (jax.nn.log_softmax, (f32(1024, 1024),)),
    "layer_norm": (_layer_norm, (f32(2048, 512),)),
    "transpose": (lambda x: x.T + 0, (f32(2048, 1024),)),
    "matmul_256": (jnp.matmul, (f32(256, 256), f32(256, 256))),
    "matmul_1024": (jnp.matmul, (f32(1024, 1024), f32(1024, 1024))),
    "matmul_thin": (jnp.matmul, (f32(16, 2048), f32(2048, 2048))),
    "matmul_batched": (jnp.matmul, (f32(32, 128, 128), f32(32, 128, 128))),
    "matvec": (jnp.matmul, (f32(2048, 2048), f32(2048))),
    "mlp": (_mlp, (f32(256, 256), f32(256, 1024), f32(1024, 256))),
    "mlp_gradient": (
        jax.grad(_loss, (1, 2)),
        (f32(256, 256), f32(256, 1024), f32(1024, 256)),
    ),
    "attention": (_attention, (f32(2, 128, 8, 64), f32(2, 128, 8, 64), f32(2, 128, 8, 64))),
    "convolution": (_conv, (f32(4, 32, 32, 16), f32(3, 3, 16, 32))),
    "convolution_1x1": (_conv, (f32(4, 32, 32, 64), f32(1, 1, 64, 64))),
    "rnn": (_rnn, (f32(64, 32, 128), f32(32, 128), f32(128, 128))),
    "fori_loop": (
        lambda x: lax.fori_loop(0, 50, lambda i, x: jnp.tanh(x @ x.T) @ x, x),
        (f32(128, 128),),
    ),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: c[1] < 40, lambda c: (jnp.sort(c[0]), c[1] + 1), (x, 0)),
        (f32(16384),),
    ),
    "cond": (lambda x: lax.cond(x[0] > 9, jnp.sin, jnp.sort, x), (f32(1 << 16),)),
    "gather": (lambda t, i: t[i], (f32(50_000, 64), i32(50_000, 4096))),
    "scatter_add": (
        lambda t, i, v: t.at[i].add(v),
        (f32(5000, 64), i32(5000, 4096), f32(4096, 64)),
    ),
    "segment_sum": (lambda v, i: jax.ops.segment_sum(v, i, 100), (f32(1 << 16), i32(100, 1 << 16))),
    "sort": (jnp.sort, (f32(1 << 17),)),
    "argsort": (jnp.argsort, (f32(1 << 16),)),
    "top_k": (lambda x: lax.top_k(x, 8), (f32(256, 4096),)),
    "fft": (lambda x: jnp.fft.rfft(x), (f32(256, 1024),)),
    "random": (lambda x: jax.random.normal(jax.random.key(0), (1 << 20,)) + x, (f32(1),)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 512 * jnp.eye(256)), (f32(256, 256),)),
    "adam": (_adam, (f32(1 << 20), f32(1 << 20), f32(1 << 20), f32(1 << 20) ** 2)),
    "many_small": (lambda x: [jnp.sort(x + i) for i in range(20)], (f32(4096),)),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A program's two measurements, and the seconds of a run in two loops by hand between them."""

    name: str
    first: Timings
    second: Timings
    by_hand: tuple[float, float]

    @property
    def kernels(self) -> float:
        """The time of kernels by that of a run without what the host needs around them.

        Kernels that run at the same time, in several threads, count once.
        """
        times = self.first.times
        return times.device_seconds / (times.device_seconds + times.between_seconds)

    @property
    def parallel(self) -> float:
        """The sum of kernels by the time in which at least one runs."""
        return sum(row.seconds for row in self.first.kernels) / self.first.device_seconds

    @property
    def profiled(self) -> float:
        """The time of a profiled run by that of one without the profiler."""
        times = self.first.times
        whole = times.device_seconds + times.between_seconds + times.host_seconds
        return whole / times.wall.median

    @property
    def again(self) -> float:
        """The second median by the first."""
        return self.second.wall_seconds / self.first.wall_seconds

    @property
    def hand(self) -> float:
        """The medians by those of the loops by hand."""
        both = self.first.wall_seconds + self.second.wall_seconds
        return both / sum(self.by_hand)

    @property
    def hand_again(self) -> float:
        """The median of the second loop by hand by that of the first."""
        return self.by_hand[1] / self.by_hand[0]

    @property
    def beyond(self) -> str:
        """Marks of the limits that it is beyond."""
        limits = ((self.kernels, KERNELS), (self.again, AGAIN), (self.hand, BY_HAND))
        return "".join("!" if abs(ratio - 1) > limit else "." for ratio, limit in limits)


def _by_hand(function: Callable[..., object], arguments: tuple[jax.Array, ...]) -> float:
    """Return the median seconds of a run, as a user would time it."""
    jitted = jax.jit(function)
    jax.block_until_ready(jitted(*arguments))
    times, end = [], time.perf_counter() + LOOP_SECONDS
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        jax.block_until_ready(jitted(*arguments))
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.measuring", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs; by default all of them")
    parser.add_argument("--seconds", type=float, default=2.0, help="time of a measurement's runs")
    options = parser.parse_args()
    found = []
    print(
        f"{'program':<16}{'wall µs':>10}{'kernels':>9}{'again':>7}{'by hand':>9}{'hand again':>12}{'profiled':>10}{'parallel':>10}"
    )
    for name, (function, arguments) in PROGRAMS.items():
        if options.names and name not in options.names:
            continue
        measure = jaxsight.measure(function, seconds=options.seconds)
        first = measure(*arguments)
        by_hand = _by_hand(function, arguments), _by_hand(function, arguments)
        checked = Checked(name, first, measure(*arguments), by_hand)
        found.append(checked)
        print(
            f"{name:<16}{first.wall_seconds * 1e6:>10.1f}{checked.kernels:>9.2f}"
            f"{checked.again:>7.2f}{checked.hand:>9.2f}{checked.hand_again:>12.2f}{checked.profiled:>10.2f}{checked.parallel:>10.2f}  {checked.beyond}",
            flush=True,
        )
    for index, words in enumerate(
        ("kernels within 10 %", "again within 5 %", "by hand within 5 %")
    ):
        held = sum(each.beyond[index] == "." for each in found)
        print(f"{words}: {held} of {len(found)}")
    steady = sum(abs(each.hand_again - 1) <= AGAIN for each in found)
    print(f"a loop by hand again within 5 %: {steady} of {len(found)}")
    busy = max((each.first.conditions.others for each in found), default=0.0)
    print(f"other processes kept up to {busy:.1f} cores busy")
    return 1 if any("!" in each.beyond for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())
