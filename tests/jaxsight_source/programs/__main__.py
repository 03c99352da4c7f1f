"""Checks programs in a process of its own: `python -m tests.jaxsight_source.programs [--style pretty]
[--plain] [--json] [NAME...]`.

`--plain` only runs them, to see that they are programs of this JAX.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--style", default="lax")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--devices", type=int, help="only those that need so many")
    parser.add_argument("--module", help="those of one module")
    parser.add_argument("--one-in", type=int, default=1, help="only one in so many")
    parser.add_argument("--x64", choices=("both", "on", "off"), default="both")
    parser.add_argument("-v", action="store_true", help="show why they fail")
    parser.add_argument("names", nargs="*", help="parts of names")
    options = parser.parse_args()

    import jax

    from tests.corpora.jaxsight_source.programs.registry import Call, all_programs
    from tests.jaxsight_source import gate
    from tests.jaxsight_source.programs.checking import check

    def run_plainly(call: Call) -> None:
        with gate.recursion(call.recursion), gate.on(call.mesh):
            function, args = gate.arrays_only(call.function, call)
            jax.make_jaxpr(function)(*args)
            if call.bits and not any(isinstance(a, jax.ShapeDtypeStruct) for a in args):
                jax.jit(function)(*args)

    chosen = [
        program
        for program in all_programs()
        if not options.names or any(name in program.name for name in options.names)
        if not options.module or program.make.__module__.endswith(f".{options.module}")
        if options.devices is None or program.devices == options.devices
    ]
    failed: dict[str, str] = {}
    count = equations = bound = refused = 0
    for program in chosen[:: options.one_in]:
        for setting in program.x64:
            if options.x64 != "both" and setting != (options.x64 == "on"):
                continue
            label = f"{program.name}{'-x64' if setting else ''}"
            count += 1
            started = time.perf_counter()
            try:
                if options.plain:
                    with gate.x64(setting):
                        run_plainly(program.make())
                elif (passed := check(program, setting, style=options.style)) is None:
                    refused += 1
                else:
                    equations += passed.equations
                    bound += passed.bound
            except Exception as error:  # noqa: BLE001  a report of what fails
                failed[label] = "".join(traceback.format_exception(error))
            taken = time.perf_counter() - started
            if not options.json:
                why = failed.get(label)
                brief = (
                    f"FAIL {why.strip().splitlines()[-1] if not options.v else why}"
                    if why
                    else "ok"
                )
                if why and not options.v:
                    error_lines = [
                        ln
                        for ln in why.splitlines()
                        if ln and not ln.startswith((" ", "Traceback"))
                    ]
                    brief = (
                        "FAIL "
                        + next((ln for ln in error_lines if ": " in ln), error_lines[-1])[:300]
                    )
                print(f"{label}: {brief} ({taken:.1f} s)", flush=True)
    if options.json:
        json.dump({"count": count, "failed": failed}, sys.stdout)
    else:
        print(
            f"JAX {jax.__version__}: {count - len(failed)} of {count} pass; {refused} of them by their refusal; {equations} equations, {bound} bound"
        )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
