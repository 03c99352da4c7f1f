"""Programs whose times are known: published measurements, and cases worked out by hand.

`python -m tests.compiler.estimate_cases TARGET… [CASE…]` compiles them where the compiler of a
target is installed and writes the optimized HLO into `estimates_hlo.zip`, which the tests read: CI
has no compiler for TPUs, and compiling all would take minutes.
"""

from __future__ import annotations

import base64
import re
import sys
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jaxsight.compiler.hlo import read
from jaxsight.wire.kernel_graph import Graph

ARCHIVE = Path(__file__).with_name("estimates_hlo.zip")
TRIPS = 1000
"""Of all loops of the cases."""
_DATE = (2026, 11, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Case:
    """A program by its name: a function and the types of its arguments."""

    function: Callable[..., Any]
    arguments: tuple[tuple[tuple[int, ...], str], ...]
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """A measurement by others. `seconds` of one run."""

    case: str
    target: str
    seconds: float
    source: str
    """A key of `SOURCES`."""


SOURCES = {
    "mamf": "[mag-/gpu_benchmark](https://github.com/mag-/gpu_benchmark), table of the best shapes",
    "chillee": "[H. He, H100 peak matmul FLOPS]"
    "(https://gist.github.com/Chillee/2ec89696db8b7ed1c24461159e325405)",
    "clpeak": "[clpeak](https://github.com/krrishnarraj/clpeak), results for a Tesla V100-SXM2-16GB",
    "pallas": "[JAX, Pallas TPU matrix multiplication]"
    "(https://docs.jax.dev/en/latest/pallas/tpu/matmul.html), the part on XLA",
}


def _matmul_seconds(m: int, n: int, k: int, tera: float) -> float:
    return 2 * m * n * k / (tera * 1e12)


PUBLISHED = (
    Published("matmul_6144_17920_2816", "cuda:h100", _matmul_seconds(6144, 17920, 2816, 821.2), "mamf"),
    Published("matmul_4224_2048_8192", "cuda:h100", _matmul_seconds(4224, 2048, 8192, 780.17), "chillee"),
    Published("matmul_6912_16384_2048", "cuda:a100", _matmul_seconds(6912, 16384, 2048, 267.9), "mamf"),
    Published("matmul_2048_17920_1216_f16", "cuda:v100", _matmul_seconds(2048, 17920, 1216, 96.1), "mamf"),
    Published("read", "cuda:v100", 4 * 2**28 / 843.06e9, "clpeak"),
    Published("matmul_1024_6016_1792", "cuda:l4", _matmul_seconds(1024, 6016, 1792, 91.4), "mamf"),
    Published("matmul_4096_4096_4096", "tpu:v5e", 827.3e-6, "pallas"),
    Published("matmul_8192_8192_8192", "tpu:v5e", 6.047e-3, "pallas"),
)  # fmt: skip


def matmul(precision: str | None, a: Any, b: Any) -> Any:
    """Multiply two matrices."""
    import jax.numpy as jnp

    return jnp.matmul(a, b, precision=precision)


def matmul_s8(a: Any, b: Any) -> Any:
    """Multiply integers, and add up in 32 bits."""
    import jax

    return jax.lax.dot(a, b, preferred_element_type="int32")


def gathered(table: Any, rows: Any) -> Any:
    """Take rows."""
    return table[rows]


def gathered_and_summed(table: Any, rows: Any) -> Any:
    """Take rows inside of a fusion."""
    import jax.numpy as jnp

    return jnp.tanh(table[rows]).sum(-1)


def sliced(table: Any, start: Any) -> Any:
    """Take a block of rows, and compute with it."""
    import jax

    return jax.lax.dynamic_slice_in_dim(table, start, 128) * 2 + 1


def scattered(table: Any, rows: Any, updates: Any) -> Any:
    """Add to rows."""
    return table.at[rows].add(updates)


def updated(table: Any, block: Any, start: Any) -> Any:
    """Write a block of rows."""
    import jax

    return jax.lax.dynamic_update_slice_in_dim(table, block, start, 0)


def row_by_row(table: Any, rows: Any) -> Any:
    """Read a row in each of 1000 iterations."""
    import jax
    import jax.numpy as jnp

    def step(carried: Any, row: Any) -> tuple[Any, None]:
        return carried * 0.5 + table[row], None

    return jax.lax.scan(step, jnp.zeros(128), rows)[0]


def written_row_by_row(x: Any) -> Any:
    """Stack a result in each of 1000 iterations."""
    import jax
    import jax.numpy as jnp

    def step(carried: Any, _: None) -> tuple[Any, Any]:
        new = jnp.sin(carried)
        return new, new

    return jax.lax.scan(step, x, None, length=1000)[1]


def convolved(x: Any, kernel: Any) -> Any:
    """Convolve, NHWC."""
    import jax

    letters = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=letters)


def convolved_gradient(x: Any, kernel: Any) -> Any:
    """Give both gradients of a convolution."""
    import jax
    import jax.numpy as jnp

    def loss(x: Any, kernel: Any) -> Any:
        return jnp.tanh(convolved(x, kernel)).sum()

    return jax.grad(loss, (0, 1))(x, kernel)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Attend, batch and heads in front of the products."""
    import jax

    return jax.nn.dot_product_attention(q, k, v)


def linear_algebra(name: str, *arguments: Any) -> Any:
    """Call a decomposition or a solver."""
    import jax

    if name == "solve_triangular":
        return jax.scipy.linalg.solve_triangular(*arguments)
    if name == "lu":
        return jax.scipy.linalg.lu_factor(*arguments)
    return getattr(jax.numpy.linalg, name)(*arguments)


def doubled(x: Any) -> Any:
    """Read and write all."""
    return x * 2


def added_up(x: Any) -> Any:
    """Read all, write next to nothing."""
    return x.sum()


def softmax(x: Any) -> Any:
    """Normalize rows: three kernels on a TPU."""
    import jax

    return jax.nn.softmax(x)


def transformed(x: Any) -> Any:
    """Transform two axes."""
    import jax

    return jax.numpy.fft.fft2(x)


def sorted_rows(x: Any) -> Any:
    """Sort rows of 4096."""
    import jax

    return jax.numpy.sort(x)


def summed(x: Any) -> Any:
    """Add up small arrays in a chain of kernels that stays in a TPU's vector memory."""
    import jax.numpy as jnp

    for _ in range(3):
        x = jnp.tanh(x) / x.sum(0)
    return x


_H100, _V100, _L4, _A100, _V5E = "cuda:h100", "cuda:v100", "cuda:l4", "cuda:a100", "tpu:v5e"
_SQUARE = (4096, 4096)
_TABLE = ((500_000, 128), "float32")
_ROWS = ((128,), "int32")
_SMALL = ((512, 512), "float32")
_IMAGE = (32, 56, 56, 256)
_KERNEL = (3, 3, 256, 256)
_HEADS = ((8, 1024, 16, 64), "bfloat16")


def _square(dtype: str, targets: tuple[str, ...], precision: str | None = None) -> Case:
    return Case(partial(matmul, precision), ((_SQUARE, dtype),) * 2, targets)


def _decomposed(name: str, count: int = 1, targets: tuple[str, ...] = (_H100,)) -> Case:
    return Case(partial(linear_algebra, name), (_SMALL,) * count, targets)


def _published() -> dict[str, Case]:
    cases = {}
    for each in PUBLISHED:
        if not each.case.startswith("matmul"):
            continue
        m, n, k = map(int, each.case.split("_")[1:4])
        dtype = "float16" if each.case.endswith("f16") else "bfloat16"
        cases[each.case] = Case(
            partial(matmul, None), (((m, k), dtype), ((k, n), dtype)), (each.target,)
        )
    return cases


CASES: dict[str, Case] = {
    **_published(),
    "f32": _square("float32", (_H100, _V100, _L4, _V5E)),
    "f32_high": _square("float32", (_H100, _V5E), "high"),
    "f32_highest": _square("float32", (_H100, _L4, _V5E), "highest"),
    "f16": _square("float16", (_V100,)),
    "f64": _square("float64", (_H100, _V100, _L4)),
    "c64": _square("complex64", (_H100, _V100)),
    "s8": Case(matmul_s8, ((_SQUARE, "int8"),) * 2, (_H100, _V100, _V5E)),
    "gathered": Case(gathered, (_TABLE, _ROWS), (_H100, _V5E)),
    "gathered_and_summed": Case(gathered_and_summed, (_TABLE, _ROWS), (_H100,)),
    "sliced": Case(sliced, (_TABLE, ((), "int32")), (_H100, _V5E)),
    "scattered": Case(scattered, (_TABLE, _ROWS, ((128, 128), "float32")), (_H100, _V5E)),
    "updated": Case(updated, (_TABLE, ((128, 128), "float32"), ((), "int32")), (_H100,)),
    "row_by_row": Case(row_by_row, (_TABLE, ((1000,), "int32")), (_H100, _V5E)),
    "written_row_by_row": Case(written_row_by_row, (((128,), "float32"),), (_H100, _V5E)),
    "convolved": Case(convolved, ((_IMAGE, "bfloat16"), (_KERNEL, "bfloat16")), (_H100, _V5E)),
    "convolved_f32": Case(convolved, ((_IMAGE, "float32"), (_KERNEL, "float32")), (_H100,)),
    "convolved_gradient": Case(
        convolved_gradient, ((_IMAGE, "bfloat16"), (_KERNEL, "bfloat16")), (_H100,)
    ),
    "attention": Case(attention, (_HEADS,) * 3, (_H100, _V5E)),
    "eigh": _decomposed("eigh"),
    "svd": _decomposed("svd"),
    "qr": _decomposed("qr"),
    "cholesky": _decomposed("cholesky", targets=(_H100, _V5E)),
    "lu": _decomposed("lu"),
    "solve_triangular": _decomposed("solve_triangular", 2),
    "doubled": Case(doubled, (((1 << 28,), "float32"),), (_H100, _A100, _V5E)),
    "read": Case(added_up, (((1 << 28,), "float32"),), (_V100,)),
    "softmax": Case(softmax, (((8192, 8192), "float32"),), (_H100, _V5E)),
    "transformed": Case(transformed, ((_SQUARE, "complex64"),), (_H100,)),
    "sorted_rows": Case(sorted_rows, ((_SQUARE, "float32"),), (_H100,)),
    "summed": Case(summed, (((1024, 128), "float32"),), (_V5E,)),
}  # fmt: skip


@cache
def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)


def text(target: str, case: str) -> str:
    """The optimized HLO of a case."""
    return _archive().read(f"{target.replace(':', '_')}/{case}.txt").decode()


def graph(target: str, case: str) -> Graph:
    """Read the kernels of a case. Loops on TPUs have the trips that the program says."""
    known = text(target, case)
    platform = target.partition(":")[0]
    loops = re.findall(r'op_name="jit\(\w+\)/eq\[(\d+)\]/while"', known)
    return read(known, platform=platform, trips=dict.fromkeys(loops, TRIPS))


def compile_case(case: Case, target: str) -> str:
    """Compile in this process, which has the target's plugin.

    Raises:
        RuntimeError: XLA refuses it.
    """
    import jax

    wide = any(dtype == "float64" for _, dtype in case.arguments)
    jax.config.update("jax_enable_x64", wide)
    arguments = (jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in case.arguments)
    return optimized(case.function, arguments, target)


def optimized(function: Callable[..., object], arguments: Iterable[object], target: str) -> str:
    """Return the HLO of a function, compiled in this process, which has the target's plugin.

    Raises:
        RuntimeError: XLA refuses it.
    """
    import jax

    from jaxsight.compiler.answer import answer
    from jaxsight.tracer.compat import lowering
    from jaxsight.wire.messages.compiling import Compile, NotCompiled

    traced = jax.jit(function).trace(*arguments)
    program = lowering.artifact(traced, target.partition(":")[0])
    reply = answer(Compile(1, target, base64.b64encode(program.bytes).decode()))
    match reply:
        case NotCompiled(message=message):
            raise RuntimeError(message)
        case _:
            return reply.hlo


def main(wanted: list[str]) -> None:
    """Compile the cases of some targets, all or those that are named, and keep the others."""
    named = set(wanted) & set(CASES) or set(CASES)
    kept = {}
    if ARCHIVE.exists():
        with zipfile.ZipFile(ARCHIVE) as archive:
            kept = {name: archive.read(name) for name in archive.namelist()}
    for name, case in CASES.items():
        for target in case.targets:
            if target in wanted and name in named:
                kept[f"{target.replace(':', '_')}/{name}.txt"] = compile_case(case, target).encode()
                print(target, name, flush=True)
    known = {
        f"{target.replace(':', '_')}/{name}.txt"
        for name, case in CASES.items()
        for target in case.targets
    }
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(known & set(kept)):
            archive.writestr(zipfile.ZipInfo(name, _DATE), kept[name], zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(sys.argv[1:])
