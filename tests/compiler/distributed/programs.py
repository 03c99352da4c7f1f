"""Programs for 8 devices.

Run as a program, it compiles them for 8 CPU devices and writes to a folder what XLA made of each:
`NAME.hlo`, `NAME.before` (before it was partitioned), `NAME.log`, and `NAME.places` (where JAX says
that the parts of arrays are).
The texts in `hlo.zip` are those of the same programs for 8 H100 and 16 TPU v5e.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

AXES = {
    "mesh": (("dp", 2), ("tp", 4)),
    "cube": (("a", 2), ("b", 2), ("c", 2)),
    "line": (("x", 8),),
}
MESH_OF = {
    "mlp": "mesh", "reshard": "mesh", "while_loop": "mesh", "partly_manual": "mesh", "take": "mesh",
    "mlp_cube": "cube", "reshape": "cube", "involuntary": "cube", "in_loop": "cube",
    "fsdp": "line", "scan_fsdp": "line", "collectives": "line", "ring": "line", "pipeline": "line",
    "moe": "line", "halo": "line", "sort": "line", "scatter": "line",
}  # fmt: skip
"""The mesh of each program."""

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def programs(meshes: dict[str, Any]) -> Iterator[tuple[str, Program]]:
    """Yield the programs, each with its arguments."""
    yield from _partitioned(meshes["mesh"], meshes["cube"])
    yield from _resharded(meshes["mesh"], meshes["cube"])
    yield from _along_a_line(meshes["line"])
    yield from _manual(meshes["mesh"], meshes["line"])


def _argument(mesh: Any, shape: tuple[int, ...], *spec: Any, dtype: str = "float32") -> Any:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))


def _to(x: Any, mesh: Any, *spec: Any) -> Any:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*spec)))


def _gradients() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def loss(x: Any, w1: Any, w2: Any) -> Any:
        return jnp.mean((jax.nn.gelu(x @ w1) @ w2 - x) ** 2)

    return jax.value_and_grad(loss, argnums=(1, 2))


def _partitioned(mesh: Any, cube: Any) -> Iterator[tuple[str, Program]]:
    import jax
    import jax.numpy as jnp

    of, shapes = _argument, ((256, 128), (128, 512), (512, 128))
    yield (
        "mlp",
        (
            _gradients(),
            (
                of(mesh, shapes[0], "dp", None),
                of(mesh, shapes[1], None, "tp"),
                of(mesh, shapes[2], "tp", None),
            ),
        ),
    )
    yield (
        "mlp_cube",
        (
            _gradients(),
            (
                of(cube, shapes[0], ("a", "c"), None),
                of(cube, shapes[1], None, "b"),
                of(cube, shapes[2], "b", "c"),
            ),
        ),
    )

    def take(x: Any, index: Any) -> Any:
        taken = _to(jnp.take(x, index, axis=0), mesh, None, "dp", "tp")
        return _to(taken.transpose(1, 0, 2), mesh, "tp", "dp", None) * 2

    yield (
        "take",
        (
            take,
            (of(mesh, (1024, 512), "tp", "dp"), of(mesh, (16, 32), "dp", "tp", dtype="int32")),
        ),
    )

    def while_loop(x: Any) -> Any:
        def body(carry: Any) -> Any:
            return carry[0] + 1, jnp.sin(carry[1] @ carry[1].T @ carry[1])

        return jax.lax.while_loop(
            lambda carry: (jnp.sum(carry[1]) < 100) & (carry[0] < 10), body, (0, x)
        )

    yield "while_loop", (while_loop, (of(mesh, (256, 256), "dp", "tp"),))


def _resharded(mesh: Any, cube: Any) -> Iterator[tuple[str, Program]]:
    import jax
    import jax.numpy as jnp

    of = _argument

    def reshard(x: Any) -> Any:
        return _to(jnp.sin(_to(x, mesh, "dp", "tp")), mesh, "tp", "dp")

    yield "reshard", (reshard, (of(mesh, (256, 512), "dp", "tp"),))

    def reshape(x: Any) -> Any:
        y = _to(jnp.sin(x), cube, "a", "b", "c")
        return _to(jnp.cos(jnp.reshape(y, (48, 64))), cube, "c", ("a", "b"))

    yield "reshape", (reshape, (of(cube, (8, 12, 32), "a", None, None),))

    def involuntary(x: Any) -> Any:
        return _to(jnp.sin(_to(x, cube, None, "a", "b")), cube, ("a", "b", "c"), None, None)

    yield "involuntary", (involuntary, (of(cube, (64, 16, 16), None, "a", "b"),))

    def in_loop(x: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (involuntary(carry), None), x, None, length=3)[0]

    yield "in_loop", (in_loop, (of(cube, (64, 16, 16), None, "a", "b"),))


def _along_a_line(line: Any) -> Iterator[tuple[str, Program]]:
    import jax
    import jax.numpy as jnp

    of = _argument
    yield (
        "fsdp",
        (
            _gradients(),
            (
                of(line, (256, 128), "x", None),
                of(line, (128, 512), "x", None),
                of(line, (512, 128), "x", None),
            ),
        ),
    )

    def layers(x: Any, weights: Any) -> Any:
        last, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)
        return jnp.sum(last)

    yield (
        "scan_fsdp",
        (
            jax.grad(layers, argnums=1),
            (of(line, (64, 128), "x", None), of(line, (6, 128, 128), None, "x", None)),
        ),
    )

    def moe(x: Any, router: Any, experts: Any) -> Any:
        gates = jax.nn.one_hot(jnp.argmax(x @ router, -1), 8, dtype=x.dtype)
        sent = _to(jnp.einsum("te,td->etd", gates, x), line, "x", None, None)
        back = _to(jnp.tanh(jnp.einsum("etd,edf->etf", sent, experts)), line, None, "x", None)
        return jnp.einsum("etf,te->tf", back, gates)

    yield (
        "moe",
        (
            moe,
            (
                of(line, (512, 128), "x", None),
                of(line, (128, 8)),
                of(line, (8, 128, 256), "x", None, None),
            ),
        ),
    )

    def halo(x: Any) -> Any:
        kernel = jnp.ones((3, 3, 8, 8), x.dtype)
        numbers = ("NHWC", "HWIO", "NHWC")
        convolved = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=numbers
        )
        return convolved + jnp.roll(x, 1, 1)

    yield "halo", (halo, (of(line, (4, 128, 32, 8), None, "x", None, None),))
    yield (
        "sort",
        (
            lambda x: (jnp.sort(x, axis=0), jnp.cumsum(x, axis=0)),
            (of(line, (1024, 64), "x", None),),
        ),
    )
    yield (
        "scatter",
        (
            lambda x, w: _to(jnp.tanh(x @ w), line, "x", None),
            (of(line, (512, 512), None, "x"), of(line, (512, 512), "x", None)),
        ),
    )


def _manual(mesh: Any, line: Any) -> Iterator[tuple[str, Program]]:
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    of, lax = _argument, jax.lax
    manual = functools.partial(jax.shard_map, mesh=line)
    around = [(device, (device + 1) % 8) for device in range(8)]

    def collectives(x: Any) -> Any:
        gathered = lax.all_gather(x, "x", tiled=True)
        swapped = lax.all_to_all(x, "x", 0, 1, tiled=True)
        scattered = lax.psum_scatter(gathered, "x", tiled=True)
        results = (
            lax.psum(x, "x"), jnp.tanh(gathered), jnp.sin(swapped), scattered,
            lax.ppermute(x, "x", around), lax.pmax(x, "x"),
        )  # fmt: skip
        return sum(result.sum() for result in results)[None]

    yield (
        "collectives",
        (
            manual(collectives, in_specs=P("x"), out_specs=P("x"), check_vma=False),
            (of(line, (512, 128), "x", None),),
        ),
    )

    def ring(q: Any, k: Any, v: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            out, k, v = carry
            out = out + jax.nn.softmax(q @ k.T) @ v
            return (out, lax.ppermute(k, "x", around), lax.ppermute(v, "x", around)), None

        return lax.scan(body, (jnp.zeros_like(q), k, v), None, length=8)[0][0]

    yield (
        "ring",
        (
            manual(ring, in_specs=(P("x"),) * 3, out_specs=P("x")),
            (of(line, (1024, 128), "x", None),) * 3,
        ),
    )

    def pipeline(x: Any, w: Any) -> Any:
        def body(h: Any, _: Any) -> Any:
            h = lax.ppermute(jnp.tanh(h @ w[0]), "x", around)
            return h, h.sum()

        h, sums = lax.scan(body, x, jnp.arange(5))
        return h, lax.psum(sums, "x")

    yield (
        "pipeline",
        (
            manual(pipeline, in_specs=(P("x"), P("x")), out_specs=(P("x"), P(None))),
            (of(line, (512, 64), "x", None), of(line, (8, 64, 64), "x")),
        ),
    )

    def partly_manual(x: Any, w: Any) -> Any:
        inner = jax.shard_map(
            lambda x: lax.psum(x @ jnp.ones((x.shape[1], 64), x.dtype), "tp"),
            mesh=mesh, in_specs=P(None, "tp"), out_specs=P(None, None), axis_names={"tp"},
        )  # fmt: skip
        return jnp.sin(inner(x)) @ w

    yield (
        "partly_manual",
        (
            partly_manual,
            (of(mesh, (256, 512), "dp", "tp"), of(mesh, (64, 64), None, "tp")),
        ),
    )


def compile_all(folder: Path, partitioner: str) -> None:
    """Compile all programs for 8 CPU devices."""
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh

    from jaxsight.tracer.compat import lowering  # It names operations after equations.

    jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
    devices = np.array(jax.devices())
    meshes = {
        name: Mesh(
            devices.reshape([size for _, size in axes]),
            tuple(axis for axis, _ in axes),
            axis_types=(AxisType.Auto,) * len(axes),
        )
        for name, axes in AXES.items()
    }
    dump = folder / "dump"
    options: Any = {
        "xla_dump_to": str(dump),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_pass_re": "^(shardy-xla|sharding-propagation)$",
    }
    for name, (function, arguments) in programs(meshes):
        lowered = lowering.located(jax.jit(function).trace(*arguments)).lower()
        with logged(folder / f"{name}.log"):
            compiled = lowered.compile(options)
        (folder / f"{name}.hlo").write_text(compiled.as_text())
        places = {"parameter": starts(arguments, compiled.input_shardings[0])}
        places["output"] = starts(jax.eval_shape(function, *arguments), compiled.output_shardings)
        (folder / f"{name}.places").write_text(json.dumps(places))
        before = sorted(dump.glob("*.before_spmd-partitioning.txt"))
        (folder / f"{name}.before").write_text(before[-1].read_text())
        shutil.rmtree(dump)


def starts(arrays: Any, shardings: Any) -> list[list[list[int]]]:
    """Where the part of each device begins in each array, according to JAX."""
    import jax

    places = []
    for array, sharding in zip(jax.tree.leaves(arrays), jax.tree.leaves(shardings), strict=True):
        slices = sharding.devices_indices_map(array.shape)
        places.append([[part.start or 0 for part in slices[device]] for device in jax.devices()])
    return places


@contextlib.contextmanager
def logged(path: Path) -> Iterator[None]:
    """Write what is written to standard error to a file instead."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


if __name__ == "__main__":
    os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8", "TF_CPP_MIN_LOG_LEVEL": "1"}
    compile_all(Path(sys.argv[1]), sys.argv[2])
