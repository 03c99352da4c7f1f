"""How many kernels say neither which lines they compute nor what they feed.

`python -m tests.compiler.lines [cpu | cuda:h100] [--own] [NAME…]` compiles functions of libraries
(`tests/jaxsight_source/libraries.py`) and programs (`tests/compiler/counting/programs.py`), prints each
kernel that says nothing, and their share. For a GPU its compiler is looked for as the product does.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import collections
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jaxlib

from jaxsight.targets.target import Target, parse
from jaxsight.tracer.compat import lowering
from jaxsight.tracer.handlers.lower import facts
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.compiling import Compile, Compiled
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Compilers
from jaxsight.workers.compilation.environments import CompilerEnvironment

Made = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def functions(own: bool) -> Iterator[tuple[str, Callable[[], Made]]]:
    """What is compiled, by name."""
    from tests.compiler.counting.programs import programs
    from tests.corpora.jaxsight_source import libraries

    if own:
        for program in programs():
            if not program.callback:
                yield program.name, lambda p=program: (p.function, p.arguments, {})
        return
    for name, each in libraries.FUNCTIONS.items():
        if each.time is not libraries.Time.LONG:
            yield name, lambda e=each: _of(e.make())


def _of(call: Any) -> Made:
    return call.function, call.args, call.kwargs


def silent(graph: Graph) -> list[Kernel]:
    """The kernels that name nothing that a user knows."""
    return [kernel for kernel in graph.kernels if not kernel.equations and not kernel.feeds]


async def graphs(
    target: Target, chosen: list[tuple[str, Callable[[], Made]]]
) -> list[tuple[str, Graph]]:
    """Compile all; what cannot be traced or compiled is printed and left out."""
    environment = CompilerEnvironment("here", sys.executable, jaxlib.__version__)
    if target.chip is not None:
        suiting = environments.suiting(target.platform, jax.__version__)
        assert suiting is not None, "the target's compiler is not installed"
        environment = suiting
    compilers = Compilers(memory=6 * 2**30, deadline=120)
    found = []
    try:
        for name, make in chosen:
            try:
                function, args, kwargs = make()
                traced = jax.jit(function).trace(*args, **kwargs)
                program = lowering.artifact(traced, target.platform).bytes
            except Exception as error:  # noqa: BLE001 - libraries raise what they like
                print(f"{name}: not lowered: {type(error).__name__}: {str(error)[:120]}")
                continue
            encoded = base64.b64encode(program).decode()
            request = Compile(0, target.name, encoded, **facts(traced.jaxpr, is_distributed=False))
            outcome = await compilers.compile(target, environment, request)
            if isinstance(outcome, Compiled):
                found.append((name, outcome.graph))
            else:
                print(f"{name}: {str(outcome)[:160]}")
    finally:
        await compilers.aclose()
    return found


def main() -> None:
    """Print what says nothing, and the share of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.compiler.lines")
    parser.add_argument("target", nargs="?", default="cpu")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--limit", type=int, default=1000)
    asked = parser.parse_args()
    chosen = [
        (name, make)
        for name, make in functions(asked.own)
        if not asked.names or name in asked.names
    ]
    target = parse(asked.target)
    found = asyncio.run(graphs(target, chosen[: asked.limit]))
    kinds: collections.Counter[tuple[str, str]] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    raw: collections.Counter[str] = collections.Counter()
    lost = total = 0
    for name, graph in found:
        quiet = silent(graph)
        lost += len(quiet)
        total += graph.kernel_count
        for kernel in quiet:
            kinds[kernel.kind, kernel.title.split(" of ")[0]] += 1
            print(f"{name}: {kernel.name}: {kernel.title} ({kernel.ends_because})")
        for kernel in graph.kernels:
            reasons[kernel.ends_because] += 1
            raw[kernel.title] += "$" in kernel.title or "_" in kernel.title
    print(*kinds.most_common(20), sep="\n")
    print("reasons", reasons.most_common())
    print("raw names", [name for name, count in raw.items() if count])
    share = f"{100 * lost / max(total, 1):.1f} %"
    print(
        f"{target.name}: {lost} of {total} kernels ({share}) of {len(found)} functions say nothing"
    )


if __name__ == "__main__":
    main()
