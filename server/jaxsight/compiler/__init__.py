"""The third process: compiles StableHLO for a target and reads kernels from the optimized HLO.

It never sees user code.

* `protocol` has the messages between the server and a compiler; `graph` is the kernel graph, plain
  data for all packages.
* `hlo/` converts optimized HLO text to a graph. It uses the standard library alone and does not
  import JAX.
* `targets` has the names of targets, and the reasons why others are not available; `chips/` has the
  figures of each chip.
* `start`, `serve`, `attempts` and `devices` run in the compiler's own Python environment, which has
  jaxlib and may have plugins; private API is in `compat/`.
* `environments` creates such environments; `cache` stores compiled programs on disk by content.
"""
