"""The third process: StableHLO and a target go in, optimized HLO and its kernels come out. It never
sees user code.

* `protocol` is what the server and a compiler say to each other; `graph` is the kernel graph, plain
  data for everyone.
* `hlo/` reads optimized HLO text into a graph. It uses the standard library alone and imports no
  JAX.
* `targets` names what can be compiled for, and why not where it cannot; `chips/` has the figures of
  each chip.
* `boot`, `serve` and `backends/` run in the compiler's own interpreter, which has jaxlib and may
  have plugins; private API is in `compat/`.
* `environments` makes such interpreters; `cache` keeps what was compiled, by content, on disk.
"""
