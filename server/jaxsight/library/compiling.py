"""The default target of a user's own process, and compiles for a target."""

from __future__ import annotations

import os
import sys

from jaxsight.targets.own import busy
from jaxsight.targets.own.plugins import plugins
from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled


class CannotCompile(Exception):
    """The function cannot be lowered or compiled for the target.

    The message has the reason, with a remedy if there is one.
    """


def default() -> Target:
    """Return the default target, for the platforms that JAX is configured to use here."""
    import jax

    from jaxsight.workers.compilation.default_target import default_target

    chosen = jax.config.values["jax_platforms"]
    environ = {**os.environ, **({"JAX_PLATFORMS": chosen} if chosen else {})}
    return default_target(jax.__version__, plugins(), environ)


def compiled(name: str, target: Target, request: Compile) -> Compiled:
    """Compile the program of a request.

    Args:
        name: the function's.
        target: the target.
        request: the program.

    Raises:
        CannotCompile: the compiler is missing, or rejects the program.
    """
    answer = _compile(target, request)
    if isinstance(answer, NotCompiled):
        message = answer.message
        if answer.kind == "busy":
            message = busy.explained(message, target)
        raise CannotCompile(f"{name} cannot be compiled for {target.name}: {message}")
    return answer


def _compile(target: Target, request: Compile) -> Compiled | NotCompiled:
    if target.is_here:
        from jaxsight.compiler.answer import answer

        return answer(request)
    import jax

    from jaxsight.workers.compilation import environments
    from jaxsight.workers.compilation.direct import DirectCompiler, NoCompiler

    platform, version = target.platform, jax.__version__
    environment = environments.suiting(platform, version)
    if environment is None and platform in plugins():  # then the running Python compiles
        environment = environments.CompilerEnvironment(platform, sys.executable, version)
    if environment is None:
        raise CannotCompile(
            f"the compiler for {target.name} is not installed: run `jaxsight targets install "
            f"{platform}`"
        )
    try:
        with DirectCompiler(environment) as compiler:
            return compiler.compile(request)
    except NoCompiler as error:
        raise CannotCompile(f"{target.name}: {error}") from error
