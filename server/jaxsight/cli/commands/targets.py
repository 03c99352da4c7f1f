"""List target devices, and install or remove their compilers: `jaxsight targets`."""

from __future__ import annotations

import os
from typing import Annotated

import rich_click as click

from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, Table, Text, cells, print_json, styled
from jaxsight.cli.parameters import AsJson, Group, Python
from jaxsight.cli.user_python import user_interpreter
from jaxsight.targets.target import Target, counted, names, parse
from jaxsight.text.inert import one_line
from jaxsight.workers.compilation import environments, installation
from jaxsight.workers.compilation.default_target import default_target, own_target, target_state

_SEVERAL = 8
"""The number of devices of the examples in JSON: the GPUs of one DGX or HGX server."""


Platform = Annotated[str, "(cuda|tpu):"]


@click.group(cls=Group, invoke_without_command=True)
def app(*, python: Python = None, as_json: AsJson = False) -> None:
    """List target devices, and install or remove their compilers.

    Without a command, list the target devices: ready, installable (with the
    download size), or unavailable.
    """
    context = click.get_current_context()
    if context is not None and context.invoked_subcommand is None:
        command(_list_targets)(python, as_json)


def _list_targets(python: str | None, as_json: bool) -> int:
    """Print all targets and return the exit status."""
    interpreter = user_interpreter(python)
    jax, plugins = _jax(interpreter)
    default = default_target(jax, plugins, os.environ)
    states = [_target_state(name, jax, plugins, default) for name in names()]
    if as_json:
        print_json(states)
        return 0
    printer = Printer(wrap=True)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("target", "device", "", ""):
        table.add_column(title, no_wrap=title == "target")
    colours = {"ready": "green", "needs": "yellow", "cannot": "dim"}
    for state in states:
        ready = (state["state"], colours[state["state"]])
        table.add_row(*cells(state["target"], state["title"], ready, state["detail"]))
    printer.print(table)
    environment = f"JAX {one_line(jax)} in {one_line(interpreter)}."
    chosen = f"Default target: {default.name} ({one_line(default.why_default)})."
    remote = "Use ssh://HOST or ssh://HOST/TARGET to compile on another machine."
    several = (
        "For several devices, a program's mesh decides how many; to fix their number, use e.g. "
        "cpu:8, cuda:h100x8 or tpu:v5e:4x4."
    )
    printer.print(styled((f"\n{environment} {chosen}\n{remote}\n{several}", "dim")))
    return 0


@app.command("install")
@command
def install(platform: Platform, *, python: Python = None) -> int:
    """Install a compiler for GPUs or TPUs that are not present, separate from your environment."""
    interpreter = user_interpreter(python)
    jax, _ = _jax(interpreter)
    errors = Printer(stderr=True)
    with errors.status("") as status:
        last = ""

        def progress(step: str, megabytes: int) -> None:
            nonlocal last
            if step != last:
                errors.print_line(step, "dim")
                last = step
            if megabytes:
                status.update(Text(f"{megabytes} MB on disk"))

        with failing_on(installation.InstallError):
            environment = installation.install(
                platform.partition(":")[0], jax, interpreter, progress
            )
    Printer().print(one_line(f"{platform}: ready, JAX {environment.jax} in {environment.folder}"))
    return 0


@app.command("remove")
@command
def remove(platform: Platform) -> int:
    """Remove an installed compiler."""
    for environment in environments.installed(platform):
        installation.remove(environment)
        Printer().print(one_line(f"removed {environment.folder}"))
    return 0


def _target_state(name: str, jax: str, plugins: tuple[str, ...], default: Target) -> dict[str, str]:
    """Return the state of a target for programs lowered by a version of JAX with its plugins.

    It is `ready`, `needs` (to be installed) or `cannot`. `several` is the name of the target for 8
    devices. `default` says why it is the default target; it is empty for all others.
    """
    target = own_target(parse(name), os.environ)
    known = target_state(target, jax, plugins)
    why = default.why_default if target == default else ""
    return {
        "target": name,
        "several": counted(target, _SEVERAL),
        "title": target.title,
        "state": known.state,
        "detail": known.detail,
        "default": why,
    }


def _jax(python: str) -> tuple[str, tuple[str, ...]]:
    try:
        return installation.installed_jax(python)
    except installation.InstallError as error:
        raise CommandError(
            f"{python} has no JAX; choose another interpreter with --python"
        ) from error
