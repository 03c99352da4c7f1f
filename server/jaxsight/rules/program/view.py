"""What a rule sees of one traced function: its program, its text, and its kernels on a target."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.text.expressions import called
from jaxsight.rules.wording import short
from jaxsight.wire.messages.replies import Fold
from jaxsight.wire.observations import Warned
from jaxsight.wire.program import Step, TracedProgram

if TYPE_CHECKING:
    # `jaxsight explain` imports a rule without what compilers and targets need (0.1 s).
    from jaxsight.targets.target import Target
    from jaxsight.text.parsing import FunctionNode
    from jaxsight.wire.chunks import Span
    from jaxsight.wire.meshes import Chosen, Mesh
    from jaxsight.wire.messages.compiling import Compiled, Folding
    from jaxsight.wire.messages.replies import Call


@dataclass(frozen=True)
class ProgramView:
    """One traced function, and what it is on a target where that is known (`compiled`)."""

    name: str
    program: TracedProgram
    folds: Sequence[Fold]
    warnings: Sequence[Warned]
    quote: Callable[[str], str]
    """What the user wrote at an equation's place, on one line; empty where that is nothing."""
    around: Callable[[str], Sequence[ast.AST]]
    """The syntax around an equation's place in its function, the innermost first."""
    target: Target | None = None
    """What it is compiled for, or the first target that is asked for."""
    compiled: Compiled | None = None
    meshes: tuple[Mesh, ...] = ()
    """The meshes that the compiled program names, without duplicates."""
    folding: Folding | None = None
    """How long that compiles with constant folding and without, where it was measured."""
    slow_seconds: float | None = None
    """How long that compiles, at least, if it takes long."""
    exact: bool = True
    """Whether all ran that may have changed the values of what is captured."""
    numbers: frozenset[str] = frozenset()
    """Types of the Python numbers that the function was called with: `int`, `float`, `complex`."""
    differentiated: frozenset[str] = frozenset()
    """Its parameters that the module differentiates it by, outside of the program."""
    chosen: frozenset[str] = frozenset()
    """Those of them that `argnums` names, or the first one; not all that `jax.vjp` is given."""
    gradients: frozenset[str] = frozenset()
    """The module's names of functions that compute derivatives: `g` of `g = jax.grad(f)`."""
    syntax: Callable[[Span], Sequence[ast.AST]] = lambda span: ()
    """The syntax around a place, the innermost first."""
    functions: Callable[[str], Sequence[FunctionNode]] = lambda path: ()
    """The functions and lambdas around an equation's place, the innermost first."""
    calls: Sequence[Call] = ()
    """The calls of the user's functions that equations were created in (`Step.call`)."""
    assigned: Callable[[str], ast.expr | None] = lambda name: None
    """What the module's only statement that binds a name assigns to it."""

    is_staged: Callable[[str], bool] = lambda function: False
    """Whether the module has a function, by its qualified name, traced into a larger program."""

    @property
    def platform(self) -> str:
        """The target's: `cpu`, `cuda`, `rocm` or `tpu`; empty if there is none."""
        return self.target.platform if self.target is not None else ""

    def places(self, step: Step) -> Iterator[Span]:
        """Yield where an equation was created, then the calls around it, the innermost first."""
        if step.span is not None:
            yield step.span
        number = step.call
        while 0 <= number < len(self.calls):
            call = self.calls[number]
            if call.span is not None:
                yield call.span
            number = call.parent

    def quoted(self, path: str) -> str:
        """Return the user's expression at an equation in backticks, shortened.

        Return the primitive where the expression is unknown.
        """
        text = self.quote(path)
        if not text and (step := self.flow.steps.get(path)) is not None:
            return f"`{step.primitive}`"
        return f"`{short(text)}`" if text else "this"

    def wrote(self, path: str, *names: str) -> bool:
        """Return whether the user's expression there calls one of these functions itself.

        Calls inside of libraries do not count: they are not the user's to change.
        """
        text = self.quote(path)
        return any(re.search(rf"\b{name}\(", text) for name in names)

    def called(self, step: Step) -> str:
        """Return the last part of the name of the function that the user's expression calls."""
        return called(self.quote(step.path))

    @property
    def on_target(self) -> Compiled:
        """The compiled program, which rules have that find in kernels."""
        assert self.compiled is not None
        return self.compiled

    @cached_property
    def shardings(self) -> Mapping[str, Chosen]:
        """By equation the sharding that the compiler chose for it."""
        return {chosen.equation: chosen for chosen in self.on_target.shardings}

    @cached_property
    def flow(self) -> Flow:
        """Who makes and who uses what."""
        return Flow(self.program)
