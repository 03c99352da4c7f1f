"""Compare all counts: `python -m tests.compiler.counting [cpu | cuda:h100] [NAME…] [--record
FILE]`.

For a GPU, run it in the environment of its compiler. `--record` keeps HLO and thunks in a zip file,
the material of `tests/compiler/test_counting.py`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from jaxsight.compiler import stand_ins
from jaxsight.compiler.hlo import read
from jaxsight.targets.target import parse
from tests.compiler.counting import compare
from tests.compiler.counting.programs import Program, programs


def main() -> None:
    """Count, print the differences, and exit with 1 when there are some."""
    parser = argparse.ArgumentParser(prog="python -m tests.compiler.counting")
    parser.add_argument("target", nargs="?", default="cpu")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    chosen = [each for each in programs() if not asked.names or each.name in asked.names]
    compile_: Callable[[Program], list[str]] = _on_cpu
    kept: dict[str, str] = {}
    if asked.target != "cpu":
        chosen = [each for each in chosen if not each.callback]
        compile_ = _on_gpu(asked.target, kept)
    bad = 0
    for program in chosen:
        begin = time.perf_counter()
        try:
            problems = compile_(program)
        except Exception as error:  # noqa: BLE001 - a program that XLA refuses is a result too
            problems = [f"{type(error).__name__}: {error}"[:300]]
        bad += bool(problems)
        print(
            f"{program.name}: {time.perf_counter() - begin:.1f} s",
            *problems,
            sep="\n    ",
            flush=True,
        )
    if asked.record:
        with zipfile.ZipFile(asked.record, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, text in kept.items():
                archive.writestr(name, text)
    print(f"{len(chosen)} programs on {asked.target}, jax {jax.__version__}: {bad} differ")
    raise SystemExit(bool(bad))


def _on_cpu(program: Program) -> list[str]:
    compiled = jax.jit(program.function, **program.options).lower(*program.arguments).compile()
    text = compiled.as_text()
    problems = compare.with_own_count(text, read(text), "cpu")
    with tempfile.TemporaryDirectory() as folder:
        profile = profiled(compiled, program, Path(folder))
    return [*problems, *compare.with_profile(text, read(text), profile)]


def profiled(compiled: Any, program: Program, folder: Path) -> Counter[str]:
    """How often one run ran each instruction."""
    copies = [jax.tree.map(jax.numpy.array, program.arguments) for _ in range(2)]
    jax.block_until_ready(compiled(*copies[0]))
    with jax.profiler.trace(str(folder), create_perfetto_trace=True):
        jax.block_until_ready(compiled(*copies[1]))
    (file,) = folder.glob("**/perfetto_trace.json.gz")
    with gzip.open(file) as opened:
        events = json.load(opened)["traceEvents"]
    ran = [event["args"] for event in events if "hlo_op" in event.get("args", {})]
    module = compiled.as_text().split(",")[0].split()[1]
    ran = [each for each in ran if each.get("hlo_module") == module]
    last = max((int(each["run_id"]) for each in ran), default=0)
    return Counter(each["hlo_op"] for each in ran if int(each["run_id"]) == last)


def _on_gpu(target: str, kept: dict[str, str]) -> Callable[[Program], list[str]]:
    from jax.experimental import topologies

    gpu = parse(target)
    assert gpu.chip is not None
    make: Any = topologies.get_topology_desc
    device = make(
        platform="cuda",
        topology="1x1x1",
        target_config=gpu.chip.specification,  # type: ignore[union-attr]
    ).devices[0]
    sharding = jax.sharding.SingleDeviceSharding(device)

    def described(leaf: Any) -> jax.ShapeDtypeStruct:
        array = jax.numpy.asarray(leaf)
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

    def on_gpu(program: Program) -> list[str]:
        arguments = jax.tree.map(described, program.arguments)
        options = dict(program.options)
        if not arguments:
            options["out_shardings"] = sharding
        with tempfile.TemporaryDirectory() as folder:
            jax.jit(program.function, **options).lower(*arguments).compile(
                compiler_options={
                    "xla_dump_to": folder,
                    "xla_dump_hlo_as_text": True,
                    "xla_gpu_autotune_level": 0,
                    "xla_gpu_cuda_data_dir": stand_ins.folder(),
                }
            )
            (hlo,) = (f for f in Path(folder).glob("*gpu_after_optimizations.txt"))
            (thunks,) = Path(folder).glob("*.thunk_sequence.txt")
            texts = hlo.read_text(), thunks.read_text()
        for kind, text in zip(("hlo", "thunks"), texts, strict=True):
            kept[f"{program.name}.{kind}.txt"] = text
        return compare.with_thunks(*texts, gpu.platform)

    return on_gpu


if __name__ == "__main__":
    main()
