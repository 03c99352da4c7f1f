"""List target devices, and install or remove their compilers: `jaxsight targets`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxsight.cli.errors import CommandError, of_python_option
from jaxsight.cli.given import given
from jaxsight.cli.printing import Printer, Table, Text, cells, print_json, styled
from jaxsight.projects.projects import SETTINGS_FILE, Projects
from jaxsight.targets.target import names, parse
from jaxsight.text.inert import one_line
from jaxsight.workers import compiler_environments as environments

_ASK = "import importlib.metadata as m; print(m.version('jax'))"


@dataclass(frozen=True, slots=True)
class State:
    """A target and its state: `ready`, `needs` (to be installed) or `cannot`, with details."""

    target: str
    title: str
    state: str
    detail: str


def listed(python: str | None, *, as_json: bool) -> int:
    """Print all targets and return the exit status."""
    interpreter = _interpreter(python)
    jax = _jax(interpreter)
    states = [_state(name, jax) for name in names()]
    if as_json:
        print_json([asdict(state) for state in states])
        return 0
    printer = Printer(wrap=True)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("target", "device", "", ""):
        table.add_column(title, no_wrap=title == "target")
    colours = {"ready": "green", "needs": "yellow", "cannot": "dim"}
    for state in states:
        ready = (state.state, colours[state.state])
        table.add_row(*cells(state.target, state.title, ready, state.detail))
    printer.print(table)
    used = f"JAX {one_line(jax)} in {one_line(interpreter)}."
    more = "Use ssh://HOST or ssh://HOST/TARGET to compile on another machine."
    printer.print(styled((f"\n{used} {more}", "dim")))
    return 0


def install(platform: str, python: str | None) -> int:
    """Install the compiler of a platform and return the exit status.

    Raises:
        CommandError: the installation failed.
    """
    interpreter = _interpreter(python)
    jax = _jax(interpreter)
    errors = Printer(stderr=True)
    with errors.status("") as status:

        def progress(step: str, megabytes: int) -> None:
            if megabytes:
                status.update(Text(f"{megabytes} MB on disk"))
            else:
                errors.print(styled((one_line(step), "dim")))

        try:
            made = environments.install(platform.partition(":")[0], jax, interpreter, progress)
        except environments.InstallError as error:
            raise CommandError(str(error)) from error
    ready = f"{platform}: ready, JAX {made.jax} in {made.folder}"
    Printer().print(one_line(ready))
    return 0


def remove(platform: str) -> int:
    """Remove the environments of a platform and return the exit status."""
    found = environments.installed(platform)
    for each in found:
        environments.remove(each)
        Printer().print(one_line(f"removed {each.folder}"))
    return 0


def _state(name: str, jax: str) -> State:
    target = parse(name)
    if target.chip is None:
        if target.platform == "cpu":
            return State(name, target.title, "ready", "compiled by your own jaxlib")
        if target.platform == "rocm":
            if Path("/dev/kfd").exists():
                return State(
                    name, target.title, "ready", "requires the ROCm plugin in your environment"
                )
            return State(name, target.title, "cannot", "no AMD GPU found; use ssh://HOST/rocm")
        if Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi"):
            return State(
                name, target.title, "ready", "requires the CUDA plugin in your environment"
            )
        return State(name, target.title, "cannot", "no NVIDIA GPU found")
    if sys.platform != "linux":
        return State(
            name,
            target.title,
            "cannot",
            f"compiler requires Linux; use ssh://HOST/{name}, a container or WSL2",
        )
    found = environments.suiting(target.platform, jax)
    if found is not None:
        return State(name, target.title, "ready", f"compiled ahead of time by JAX {found.jax}")
    size = environments.MEGABYTES[target.platform]
    return State(
        name,
        target.title,
        "needs",
        f"`jaxsight targets install {target.platform}`, about {size} MB",
    )


def _interpreter(python: str | None) -> str:
    """Return the interpreter that traces the project's functions."""
    named = given([Path.cwd()])
    projects = Projects(named.trust)
    projects.configure(
        named.roots,
        {"python": python} if python else {},
        trusted=None,
        editor_python={},
        editor_by_root={},
    )
    project = projects.of(str(Path.cwd() / SETTINGS_FILE))
    if project.interpreter is None or project.held_back:
        problem = of_python_option(project.problem) if python else project.problem
        raise CommandError(problem or project.held_back)
    return project.interpreter.path


def _jax(python: str) -> str:
    done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"{python} has no JAX; choose another interpreter with --python")
    return done.stdout.strip()
