"""Compare a repro's results with those of its dump, which XLA compiles as it is, and runs.

XLA for CPUs aborts on some fusions that were made for GPUs, and takes no bitcasts before it makes its
own: in the form `calls`, the dump's fusions are calls of the same computations, and bitcasts, which
keep default layouts here, are reshapes. Buffers of arguments are not donated.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxlib import xla_client

from jaxsight_source.compat.lowered import hlo_modules

_FUSION = re.compile(r"fusion\((.*)\), kind=\w+, calls=(%?[\w.-]+)(?:, backend_config=\{.*\})?")

_ALIASES = re.compile(r", input_output_alias=\{ .*? \}(?=[,\n])")


def main() -> None:
    dump, repro, form = sys.argv[1:]
    module = runpy.run_path(repro)
    arguments = module["inputs"]()
    text = Path(dump).read_text()
    if form == "calls":
        text = _FUSION.sub(r"call(\1), to_apply=\2", _ALIASES.sub("", text))
        text = text.replace(" bitcast(", " reshape(")
    expected = executed(text, arguments)
    results = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(module["main"])(*arguments))]
    print(compared(results, expected))


def executed(text: str, arguments: Sequence[Any]) -> list[np.ndarray]:
    """Compile and run an HLO or StableHLO text as it is."""
    if "HloModule" in text:
        proto = hlo_modules.proto_of_text(text[text.index("HloModule") :])
        program = hlo_modules.stablehlo_of_proto(proto)
    else:
        program = hlo_modules.stablehlo_module(text)
    client: Any = jax.devices()[0].client
    devices: Any = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    loaded = client.compile_and_load(program, devices, xla_client.CompileOptions())
    results = loaded.execute_sharded([jax.device_put(argument) for argument in arguments])
    return [np.asarray(part[0]) for part in results.disassemble_into_single_device_arrays()]


def compared(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    if [each.shape for each in results] != [each.shape for each in expected]:
        return "other shapes"
    pairs = list(zip(results, expected, strict=True))
    if all(one.dtype == other.dtype and one.tobytes() == other.tobytes() for one, other in pairs):
        return "equal bits"
    wide = [(one.astype(np.complex128), other.astype(np.complex128)) for one, other in pairs]
    close = all(np.allclose(one, other, 1e-3, 1e-3, equal_nan=True) for one, other in wide)
    return "equal up to rounding" if close else "different"


if __name__ == "__main__":
    main()
