"""`python -m tools.device`: compares what jaxsight knows of programs with what a device does.

Programs are compiled ahead of time for the chip of this machine's GPU or TPU, and by JAX for the
device itself, where they are run and profiled. Without a device, `--against` compares with stored
measurements, and `--target cpu` compares with this machine's CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxsight.targets.own.devices import PLATFORMS, own_device
from jaxsight.targets.target import CPU, parse, recognized
from tools.device.cases import LARGE, Case, cases
from tools.device.comparison import Compared, Record, table, totals

ROOT = Path(__file__).parents[2]

COMPILERS = ROOT / ".venvs" / "compilers"
"""The compilers for absent devices that `make` installs; without them, the Python's plugin compiles.
"""

NO_DEVICE = 2
"""The exit status on a machine without a device."""

_FLAGS = "--xla_gpu_enable_command_buffer="
"""No kernels are recorded into command buffers: each is an event of its own."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.device", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="programs; by default 54 of our own")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these functions")
    parser.add_argument("--target", default="", help="this machine's device: cuda, rocm, tpu, cpu")
    parser.add_argument("--chip", default="", help="the target ahead of time, such as cuda:h100")
    parser.add_argument("--against", type=Path, help="compare with the measurements in this file")
    parser.add_argument("--python", default=sys.executable, help="Python with JAX and its plugin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compiles at a time")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    if COMPILERS.is_dir():
        os.environ.setdefault("JAXSIGHT_COMPILERS", str(COMPILERS))
    begin = time.monotonic()
    stored: dict[str, Record] = {}
    if options.against is not None:
        measured = json.loads(options.against.read_text(encoding="utf-8"))
        stored = {name: record["device"] for name, record in measured.items()}
    chosen = [
        case
        for case in cases(options.files or [LARGE], options.only)
        if not stored or case.name in stored
    ]
    if not chosen:
        print("no such programs", file=sys.stderr)
        return 1
    if stored:
        device = next(iter(stored.values()))
        on_device, kind = stored, device.get("kind", "NVIDIA H100 80GB HBM3")
        platform = "cuda"
    else:
        platform = options.target or _own_platform()
        if not platform:
            print("no GPU or TPU found here: use --target cpu, or --against FILE", file=sys.stderr)
            return NO_DEVICE
        on_device = _on_device(chosen, platform, options.python, begin + options.limit)
        kind = next((each["kind"] for each in on_device.values() if "kind" in each), "")
    target = options.chip or _chip(platform, kind)
    if not target:
        print(f"{kind} is not a chip with known figures: use --chip", file=sys.stderr)
        return NO_DEVICE
    left = begin + options.limit
    ahead = _ahead(chosen, target, options.python, options.jobs, left)
    missing = {"refused": "not within the time limit"}
    compared = [
        Compared(case.name, ahead.get(case.name, missing), on_device.get(case.name, missing))
        for case in chosen
    ]
    if options.json is not None:
        written = {
            each.name: {"device": each.device, "ahead_of_time": each.ahead} for each in compared
        }
        options.json.write_text(json.dumps(written, indent=1), encoding="utf-8")
    print(table(compared))
    print(f"\n{target} ahead of time, {kind} measured, {time.monotonic() - begin:.0f} s")
    print(totals(compared))
    return 1 if all(each.refused for each in compared) else 0


def _own_platform() -> str:
    """Return the platform of this machine's device; empty without one."""
    found = [(platform, own_device(platform, os.environ)) for platform in PLATFORMS]
    visible = [name for name, device in found if device is not None and not device.hidden]
    return visible[0] if visible else ""


def _chip(platform: str, kind: str) -> str:
    """Return the target of the same chip without the device; empty if it has no known figures."""
    own = recognized(parse(platform), kind)
    return CPU if platform == CPU else own.instead if own.chip is not None else ""


def _on_device(chosen: Sequence[Case], platform: str, python: str, end: float) -> dict[str, Record]:
    """Return what the device does, by program."""
    variables = {
        "JAX_PLATFORMS": platform if platform == CPU else f"{platform},cpu",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}".strip(),
    }
    return _figures(["tools.device.here"], chosen, 1, python, variables, end)


def _ahead(
    chosen: Sequence[Case], target: str, python: str, jobs: int, end: float
) -> dict[str, Record]:
    """Return the figures ahead of time, by program."""
    variables = {"JAX_PLATFORMS": "cpu"}
    return _figures(["tools.device.ahead", target], chosen, jobs, python, variables, end)


def _figures(
    command: Sequence[str],
    chosen: Sequence[Case],
    jobs: int,
    python: str,
    variables: Mapping[str, str],
    end: float,
) -> dict[str, Record]:
    """Return what processes find of programs, by program, as far as they come until `end`.

    If a process dies, its first program without figures is tried alone, and is to blame if that
    dies, too.
    """
    found: dict[str, Record] = {}

    def run(shares: Sequence[Sequence[Case]]) -> list[str]:
        ends = []
        for records, ended in _run(command, shares, python, variables, end):
            about: Record = {}
            for record in records:
                if name := record.pop("name", ""):
                    found[name] = {**about, **record}
                else:
                    about = record
            ends.append(ended)
        return ends

    while (waiting := [each for each in chosen if each.name not in found]) and _is_before(end):
        run([waiting[start::jobs] for start in range(min(jobs, len(waiting)))])
        if (first := next((each for each in waiting if each.name not in found), None)) is not None:
            [ended] = run([[first]])
            if ended and first.name not in found and _is_before(end):
                found[first.name] = {"refused": ended}
    return found


def _is_before(end: float) -> bool:
    return time.monotonic() < end


def _run(
    command: Sequence[str],
    shares: Sequence[Sequence[Case]],
    python: str,
    variables: Mapping[str, str],
    end: float,
) -> list[tuple[list[Record], str]]:
    """Run processes at a time; return what each wrote, and how it failed; empty if it did not.

    Args:
        command: a module with its first arguments.
        shares: the programs of each process.
        python: the Python that runs them.
        variables: environment variables.
        end: when they are ended.
    """
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH", ""))))
    environ = {**os.environ, **variables, "PYTHONPATH": path}
    with tempfile.TemporaryDirectory(prefix="jaxsight-device-") as folder:
        running = []
        for number, share in enumerate(shares):
            results = Path(folder, f"{number}.jsonl")
            results.touch()
            files = os.pathsep.join(dict.fromkeys(case.trace.file for case in share))
            names = ",".join(case.name for case in share)
            arguments = [*command, str(results), files, names]
            output = Path(folder, f"{number}.log").open("w", encoding="utf-8")  # noqa: SIM115
            process = subprocess.Popen(
                [python, "-m", *arguments],
                cwd=ROOT,
                env=environ,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            running.append((process, results, output))
        found = []
        for process, results, output in running:
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            output.close()
            lines = results.read_text(encoding="utf-8").splitlines()
            last = Path(output.name).read_text(encoding="utf-8", errors="replace").strip()
            words = f": {last.splitlines()[-1][:200]}" if last else ""
            ended = f"the process exited with status {process.returncode}{words}"
            found.append(
                ([json.loads(line) for line in lines], ended if process.returncode else "")
            )
        return found


if __name__ == "__main__":
    sys.exit(main())
