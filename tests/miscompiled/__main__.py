"""Run every pattern of JX413, and its neighbours, in processes of their own: `python -m
tests.miscompiled`.

Prints how each ends in this environment beside what JX413 reports of it, and exits with 1 where
JX413 reports what is right.
"""

from __future__ import annotations

import subprocess
import sys

from tests.miscompiled.patterns import PATTERNS, Pattern, findings

_RUN = """
import sys
import jax, jax.numpy as jnp, numpy as np
rng = np.random.default_rng(0)
shapes = eval(sys.argv[2])
types = sys.argv[3].split(",")
if "float64" in types:
    jax.config.update("jax_enable_x64", True)
args = [jnp.asarray(rng.normal(size=shape), kind) for shape, kind in zip(shapes, types)]
f = eval(sys.argv[1])
options = {"xla_disable_hlo_passes": "dot-library-rewriter"}
usual = np.asarray(jax.jit(f)(*args))
right = np.asarray(jax.jit(f, compiler_options=options)(*args))
scale = float(np.sqrt(np.mean(right**2)))
sys.exit(0 if float(np.max(np.abs(usual - right))) <= 1e-2 * scale else 3)
"""
_ENDS = {0: "right", 3: "wrong"}


def end(pattern: Pattern) -> str:
    """Return how a pattern ends: `right`, `wrong`, `crash`, `hang`."""
    shapes = repr([shape for shape, _ in pattern.inputs])
    kinds = ",".join(kind for _, kind in pattern.inputs)
    command = [sys.executable, "-c", _RUN, pattern.function, shapes, kinds]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        return "hang"
    if done.returncode == 1:
        raise RuntimeError(done.stderr)
    return _ENDS.get(done.returncode, "crash")


def main() -> int:
    """Run all; return the exit status."""
    false = 0
    for pattern in PATTERNS:
        reported = bool(findings(pattern))
        ended = end(pattern)
        false += reported and ended == "right"
        print(f"{ended:6} {'JX413' if reported else '-':6} {pattern.name}", flush=True)
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
