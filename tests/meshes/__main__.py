"""`python -m tests.meshes [cpu:8 | cuda:h100x8 | tpu:v5e:4x4] [NAME…]`: compare all programs."""

from __future__ import annotations

import argparse
import os
import tempfile

import jax

from tests.corpora.meshes.corpus import PROGRAMS
from tests.meshes.acceptance import compare, table


def main() -> None:
    """Print the comparison, and exit with 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.meshes")
    parser.add_argument("target", nargs="?", default="cpu:8")
    parser.add_argument("names", nargs="*", help="parts of names of programs")
    asked = parser.parse_args()
    chosen = [p for p in PROGRAMS if not asked.names or any(n in p.name for n in asked.names)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # nothing that an earlier version compiled
        results = compare(chosen, asked.target)
    print(f"{asked.target}, JAX {jax.__version__}")
    print(table(results))
    raise SystemExit(any(result.problem for result in results))


if __name__ == "__main__":
    main()
