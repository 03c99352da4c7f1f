"""The baseline: plain `jax.make_jaxpr`, in processes that have nothing of jaxsight."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Self

from jaxsight.compiler import stand_ins
from jaxsight.targets.chips import Gpu
from jaxsight.targets.target import parse
from jaxsight.workers.compilation.environments import CompilerEnvironment, variables
from tools.perf.editor import ENVIRONMENT
from tools.perf.programs import Program

_ENVIRONMENT = {**ENVIRONMENT, "JAX_PLATFORMS": "cpu"}
"""The platform is what the server sets for tracers."""

_ONCE = """
import sys
exec(sys.argv[1])
print(jax.make_jaxpr(globals()[sys.argv[2]])(*ARGUMENTS), flush=True)
"""

_WARM = """
import json, sys, time
import jax
space = {}
exec(sys.argv[1], space)
for line in sys.stdin:
    code, stage = json.loads(line)
    begin = time.perf_counter()
    exec(code, space)
    function, arguments = space[sys.argv[2]], space["ARGUMENTS"]
    if stage == "trace":
        jaxpr = jax.make_jaxpr(function)(*arguments)
    else:
        compiled = jax.jit(function).lower(*arguments).compile()
    print((time.perf_counter() - begin) * 1000, flush=True)
"""


_WARM_AHEAD = """
import json, sys, time
import jax
import numpy as np
from jax.experimental import topologies
specification, stand_ins, count = sys.argv[3:]
devices = topologies.get_topology_desc(
    platform="cuda", topology=f"1x1x{count}", target_config=specification
).devices
space = {}
exec(sys.argv[1], space)
sharding = jax.sharding.SingleDeviceSharding(devices[0])
if count != "1":
    mesh = space["mesh"]
    absent = np.array(devices).reshape(mesh.devices.shape)
    space["mesh"] = jax.sharding.Mesh(absent, mesh.axis_names, axis_types=mesh.axis_types)
    sharding = jax.sharding.NamedSharding(space["mesh"], jax.sharding.PartitionSpec())
for line in sys.stdin:
    code, _ = json.loads(line)
    arguments = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), space["ARGUMENTS"]
    )
    begin = time.perf_counter()
    exec(code, space)
    lowered = jax.jit(space[sys.argv[2]]).lower(*arguments)
    compiled = lowered.compile({"xla_gpu_cuda_data_dir": stand_ins})
    print((time.perf_counter() - begin) * 1000, flush=True)
"""


def start_and_trace(program: Program) -> subprocess.Popen[str]:
    """A process that imports JAX, runs the program, prints the function's jaxpr and ends."""
    return subprocess.Popen(
        [sys.executable, "-c", _ONCE, program.text, program.function],
        stdout=subprocess.PIPE,
        text=True,
        env=_ENVIRONMENT,
    )


class WarmJax:
    """A process that has the program and executes and traces its function again when told; to be
    used in a `with` block.
    """

    def __init__(
        self, program: Program, ahead: CompilerEnvironment | None = None, devices: int = 1
    ) -> None:
        """Start it, with a compiler's environment to compile for H100s that are not here."""
        command = [sys.executable, "-c", _WARM, program.text, program.function]
        environment = _ENVIRONMENT
        if ahead is not None:
            chip = parse("cuda:h100").chip
            assert isinstance(chip, Gpu)
            command = [ahead.python, "-c", _WARM_AHEAD, program.text, program.function]
            command += [chip.specification(), stand_ins.folder(), str(devices)]
            added = {**variables(ahead.platform), "JAX_NUM_CPU_DEVICES": str(devices)}
            environment = {**ENVIRONMENT, **added}
            environment.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.communicate()

    def trace(self, definition: str) -> float:
        """Milliseconds, as the process sees them, to execute the function's definition and to trace
        it.
        """
        return self._do(definition, "trace")

    def compile(self, definition: str) -> float:
        """Milliseconds to execute the definition, to trace, to lower and to compile it."""
        return self._do(definition, "compile")

    def _do(self, definition: str, stage: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([definition, stage]) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())
