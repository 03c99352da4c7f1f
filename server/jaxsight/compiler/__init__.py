"""The third process: compiles StableHLO for a target and reads kernels from the optimized HLO.

It must never see user code: a program arrives as StableHLO.

* `hlo/` converts optimized HLO text to a graph (`jaxsight.wire.kernel_graph`). It uses the standard
  library alone and does not import JAX.
* `start`, `serve`, `attempts` and `devices` run in the compiler's own Python environment, which has
  jaxlib and may have plugins; private API is in `compat/`.

Its messages are `jaxsight.wire.messages.compiling`; targets and the figures of their chips are in
`jaxsight.targets`, and `jaxsight.workers.compilation` installs its environments and starts it.
"""
