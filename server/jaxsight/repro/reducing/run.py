"""`reduce`: makes a repro smaller while its check holds."""

from __future__ import annotations

import ast
import builtins
import hashlib
import time
from dataclasses import replace
from pathlib import Path

import jax

from jaxsight.repro.checks import parsing
from jaxsight.repro.checks.base import Check, InvalidCheck
from jaxsight.repro.compat import configuration
from jaxsight.repro.emit.repro_file import CannotEmit
from jaxsight.repro.environment import current
from jaxsight.repro.failures import EXCEPTION, FINISHED, Failure
from jaxsight.repro.reducing import journal, loading
from jaxsight.repro.reducing.children import Limits
from jaxsight.repro.reducing.equations import reduction as equations
from jaxsight.repro.reducing.loading import Loaded, Unloadable
from jaxsight.repro.reducing.options import CannotReduce, NotReproduced, Options, Reduced, Report
from jaxsight.repro.reducing.statements import reduction as statements
from jaxsight.repro.reducing.task import Task, fails


def reduce(file: Path, out: Path, options: Options, report: Report) -> Reduced:
    """Reduce a repro, and write the smallest program that fails in the same way.

    Progress goes to `report`. Ctrl+C ends the reduction and keeps the smallest program so far.

    Raises:
        CannotReduce: the file does not fail, or cannot be reduced.
    """
    start = time.monotonic()
    baseline = configuration.at_start()
    try:
        check = parsing.parse(options.check)
        loaded = loading.read(file)
    except (InvalidCheck, Unloadable) as error:
        raise CannotReduce(str(error)) from error
    limits = Limits(check.seconds or options.timeout, options.memory)
    report({"event": "progress", "stage": "run"})
    original: Failure | None = None
    if not check.text:
        original = fails(file, limits)
        if original.kind == FINISHED:
            help = "name the failure with --check, such as --check nan"
            raise CannotReduce(f"{file.name} does not fail", help)
        check = _own(check, loaded, original)
    loading.configure(loaded)
    environment = current(configuration.changed(baseline))
    title = repr((loaded.text, check.text, jax.__version__, environment.python))
    log = journal.opened(options.state, hashlib.sha256(title.encode()).hexdigest())
    task = Task(loaded, out, check, limits, options, report, environment, original, log, start)
    if check.level == "program" and loading.is_repro(loaded):
        try:
            return equations.reduce(task)
        except (CannotEmit, NotReproduced, Unloadable) as error:
            report({"event": "progress", "stage": "statements", "reason": str(error)})
    return statements.reduce(task)


def _own(check: Check, loaded: Loaded, failure: Failure) -> Check:
    """Return the check of a file's own failure.

    An assertion is of the file's demonstration, which is then part of the check.
    """
    lines = loaded.demonstration
    if failure.kind != EXCEPTION or failure.name != "AssertionError" or not lines:
        return check
    if failure.message.startswith("NaN in "):
        check = parsing.parse("nan")  # whose programs have finite arguments
    tree = ast.parse("\n".join(lines))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    assigned |= {node.asname or node.name for node in ast.walk(tree) if isinstance(node, ast.alias)}
    assigned |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assigned |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    known = {"main", "inputs", "jax", "jnp", "np", *dir(builtins), *assigned}
    return replace(check, demonstration=lines) if {n.id for n in names} <= known else check
