"""Calls functions with the example inputs of their docstrings, annotations and projects."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxsight.meshes.compat import meshes
from jaxsight.tracer.calls.inputs import Evaluator
from jaxsight.tracer.calls.user_function import find
from jaxsight.tracer.execution.device_demand import MoreDevices
from jaxsight.tracer.failures import UserError
from jaxsight.wire.messages.requests import Trace
from jaxsight_dataset.mining.calls import SEVERAL_DEVICES, Mined, NoProgram, needs_devices
from jaxsight_dataset.mining.modules import origin_of, silence
from jaxsight_source.jaxprs.arguments import with_numbers


def mine(trace: Trace, project: Mapping[str, str], labels: Sequence[str] = ()) -> Mined:
    """Return the program of a function called with its example inputs.

    Args:
        trace: the function and its inputs; its slice is not used, as the whole module is imported.
        project: as `origin_of` takes it.
        labels: those of the program.
    """
    mined = Mined()
    try:
        with silence():
            namespace = vars(importlib.import_module(trace.module))
    except BaseException as error:  # noqa: BLE001 - modules that need what is not installed, or exit
        cause = SEVERAL_DEVICES if needs_devices(error) else "module cannot be imported"
        mined.rejected[cause] += 1
        return mined
    try:
        with silence():
            function = find(namespace, trace.function)
            evaluator = Evaluator(concrete=True)
            mesh = evaluator.mesh(trace, namespace)
            with meshes.entered(mesh):
                inputs = evaluator.inputs(trace, function, namespace, mesh)
                args, kwargs = with_numbers((inputs.args, inputs.kwargs))
    except MoreDevices:
        mined.rejected[SEVERAL_DEVICES] += 1
        return mined
    except UserError as error:
        cause = SEVERAL_DEVICES if needs_devices(error) else "example inputs cannot be evaluated"
        mined.rejected[cause] += 1
        return mined
    if not hasattr(inspect.unwrap(function.call), "__code__"):
        mined.rejected["not a function of Python"] += 1
        return mined
    try:
        origin = origin_of(function.call, project)
    except NoProgram as reason:
        mined.rejected[reason.cause] += 1
        return mined
    with silence(), meshes.entered(mesh):
        mined.add(function.call, args, kwargs, origin, labels)
    return mined


def make_importable(project: Mapping[str, Any]) -> None:
    """Make the modules of a project importable, as a tracer does."""
    for folder in (project["root"], str(Path(project["root"], "src")), project["imports"]):
        if folder not in sys.path:
            sys.path.insert(0, folder)
