"""The magics of `%load_ext jaxsight`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any

from jaxsight.library.live_places import expression, file_title, places_of
from jaxsight.text.inert import clause, one_line
from jaxsight.text.layout import aligned, cut

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from jaxsight_source.compat.locations import Location


# The types of a function's expressions, line by line: what `%shapes` prints.

_LONGEST = 60
"""Characters of an expression, a choice: beside its type it fits a cell."""


def shapes_of(jaxpr: object) -> Iterator[str]:
    """Yield a line for each expression: where it is, its source, and its type.

    The last equation of an expression computes its result.
    """
    from jaxsight_source.compat import avals
    from jaxsight_source.compat.inner import walk

    places = dict(places_of(jaxpr))
    found: dict[Location, tuple[str, str]] = {}
    for path, equation in walk(jaxpr):
        at = places.get(path)
        if at is None or not (text := expression(at)):
            continue
        types = ", ".join(avals.text(var.aval) for var in equation.outvars)
        found[at] = (cut(one_line(text), _LONGEST), types)
    rows = [(f"{file_title(at.file)}:{at.line}", *found[at]) for at in sorted(found, key=astuple)]
    if rows:
        yield from aligned(rows, "lll")
    else:
        yield "no expression creates an equation"


# What is written behind a magic: options, then a call, which is evaluated but not made.

Converter = Callable[[str], object] | None
"""Makes the value of an option; `None` for one without a value."""

_TOKEN = re.compile(r"\s*(-\w|--[\w-]+)(?:=(\S+))?(?=\s|$)")
_VALUE = re.compile(r"\s*(\S+)")


class BadLine(Exception):
    """A magic was used in another way than its help says; the message is one clause."""


def parse_options(
    line: str, known: Mapping[str, Converter], short: Mapping[str, str]
) -> tuple[dict[str, object], str]:
    """Return the options at the beginning of a line by name, and the rest.

    Args:
        line: behind the name of a magic.
        known: the options of the magic without `--`.
        short: the names of options with one letter.

    Raises:
        BadLine: there is no such option, or it has no valid value.
    """
    options: dict[str, object] = {}
    while (token := _TOKEN.match(line)) is not None:
        name = short.get(token[1], token[1].removeprefix("--"))
        line, value = line[token.end() :], token[2]
        if name not in known:
            raise BadLine(f"unknown option {token[1]}; known: {' '.join(f'--{n}' for n in known)}")
        convert = known[name]
        if convert is None:
            options[name.replace("-", "_")] = True
            continue
        if value is None:
            found = _VALUE.match(line)
            if found is None:
                raise BadLine(f"option --{name} needs a value")
            line, value = line[found.end() :], found[1]
        try:
            options[name.replace("-", "_")] = convert(value)
        except ValueError:
            raise BadLine(f"invalid value of option --{name}: {clause(value, 40)}") from None
    return options, line.strip()


@dataclass(frozen=True, slots=True)
class MagicCall:
    """A function with its arguments, or a value that is no call: then `is_call` is false."""

    function: object
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    is_call: bool = True


def evaluate_call(text: str, names: dict[str, object]) -> MagicCall:
    """Return the function and the arguments of a call, which are evaluated; the call is not made.

    Args:
        text: an expression, such as `jax.jit(f)(x, n=3)`.
        names: the user's.

    Raises:
        BadLine: it is no expression, or a name is not defined.
        Exception: any that an argument raises.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise BadLine(f"expected a call such as f(x), got {clause(text, 60)!r}") from error

    def value(node: ast.expr) -> Any:
        expression = ast.fix_missing_locations(ast.Expression(node))
        return eval(compile(expression, "<magic>", "eval"), names)

    try:
        if not isinstance(tree, ast.Call) or _is_staged(tree):
            return MagicCall(value(tree), is_call=False)
        function = value(tree.func)
        args: list[object] = []
        for each in tree.args:
            args += value(ast.List([each], ast.Load()))
        kwargs: dict[str, object] = {}
        for keyword in tree.keywords:
            given = value(keyword.value)
            kwargs |= {keyword.arg: given} if keyword.arg else given
    except NameError as error:
        raise BadLine(clause(str(error), 80)) from None
    return MagicCall(function, tuple(args), kwargs)


def _is_staged(call: ast.Call) -> bool:
    """Return whether a call is one of `lower`, `compile` or `trace`, whose result is shown."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("lower", "compile", "trace")


_SHORT = {"-t": "target", "-w": "width", "-m": "measure"}
_PICTURE: dict[str, Converter] = {
    "target": str,
    "width": float,
    "height": float,
    "measure": None,
    "still": None,
}
_MOST = 12
"""Functions of a cell that are shown, a choice: each is a picture, and some may take a minute."""


MAGICS = ("kernels", "jaxpr", "shapes", "sourcerize", "measure", "sweep")
"""The methods of `Magics` that are magics; `kernels` is also one of cells."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magics to a shell: what `%load_ext jaxsight` does."""
    magics = Magics(shell)
    for name in MAGICS:
        for kind in ("line", "cell") if name == "kernels" else ("line",):
            shell.register_magic_function(getattr(magics, name), kind, name)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics: what `%unload_ext jaxsight` does."""
    for name in MAGICS:
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(name, None)


class Magics:
    """The magics of one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def kernels(self, line: str, cell: str | None = None) -> None:
        """Show the kernels of a function as a graph, with memory, source, jaxpr and HLO.

        `%kernels [-t TARGET] [-w PIXELS] [--height PIXELS] [-m] [--still] f(x)`

        The call is compiled, not made. Instead of a call, a traced, lowered or compiled function
        may be given.

        `%%kernels` runs the cell and shows the jitted and compiled functions that its text calls,
        and those that it compiles.

        Options:
            -t, --target: a name listed by `jaxsight targets`; by default this machine's GPU or TPU.
            -w, --width, --height: pixels of the picture.
            -m, --measure: run the function, too, on the device that JAX uses here.
            --still: a drawing without scripts, which is small.
        """
        with _usage_errors():
            options, rest = parse_options(line, _PICTURE, _SHORT)
            if "still" in options:
                options["interactive"] = not options.pop("still")
            if cell is None:
                _show(_call(self._shell, rest, "%kernels"), options)
                return
            if rest:
                raise BadLine(f"%%kernels takes options alone, got {rest[:40]!r}")
        _run_and_show(self._shell, cell, options)

    def jaxpr(self, line: str) -> None:
        """Print the jaxpr of a function.

        `%jaxpr f(x)`: the call is traced, not made.
        """
        from jaxsight.tracer.programs import jaxpr_text

        with _usage_errors():
            traced = _traced(_call(self._shell, line, "%jaxpr"))
        print(jaxpr_text.whole(0, traced.jaxpr).text)

    def shapes(self, line: str) -> None:
        """Print the types of all expressions of a function that create equations.

        `%shapes f(x)`: the call is traced, not made. Functions that it calls are included.
        """

        with _usage_errors():
            traced = _traced(_call(self._shell, line, "%shapes"))
        print("\n".join(shapes_of(traced.jaxpr)))

    def sourcerize(self, line: str) -> None:
        """Print a function's jaxpr as JAX source, which is verified to be the same program.

        `%sourcerize [--style STYLE] [--inline] [--scopes] f(x)`

        Options:
            --style: `lax`, which is the same program, or `pretty`, which is easier to read.
            --inline: without functions of their own for calls.
            --scopes: with named scopes.
        """
        import jaxsight_source

        known: dict[str, Converter] = {"style": str, "inline": None, "scopes": None}
        with _usage_errors():
            options, rest = parse_options(line, known, {"-s": "style"})
            call = _call(self._shell, rest, "%sourcerize")
            write: Any = jaxsight_source.sourcerize
            made = write(call.function, **options)
            print(made(*call.args, **call.kwargs) if call.is_call else made)

    def measure(self, line: str) -> object:
        """Measure what a function takes on the device that JAX uses here, and its kernels.

        `%measure [--repeat N] [--seconds S] f(x)`

        Options:
            --repeat: timed runs; by default as many as the median needs to be known to 1 %.
            --seconds: time of all runs after which they end.
        """
        from jaxsight.library.measuring import measure as measured

        known: dict[str, Converter] = {"repeat": int, "seconds": float, "target": str}
        with _usage_errors():
            options, rest = parse_options(line, known, _SHORT | {"-n": "repeat"})
            call = _function(_call(self._shell, rest, "%measure"))
            return measured(call.function, **options)(*call.args, **call.kwargs)  # type: ignore[arg-type]

    def sweep(self, line: str) -> object:
        """Show how a function's figures grow with its sizes.

        `%sweep [-t TARGET] [--memory SIZE] [-m] n=1..64 [m=8,16] f(x)`

        An argument with a swept dimension is a function of the size:
        `%sweep B=1..64 loss(params, lambda B: jax.ShapeDtypeStruct((B, 128), 'float32'))`

        Options:
            -t, --target: as for `%kernels`.
            --memory: what the largest size must fit in, such as 60GiB.
            -m, --measure: run the function with each size, too.
        """
        from jaxsight.library.sweeps import sweep as swept
        from jaxsight.sweeps.points import BadSizes, parse

        known: dict[str, Converter] = {"target": str, "memory": str, "measure": None}
        with _usage_errors():
            options, rest = parse_options(line, known, _SHORT)
            sizes = {}
            while rest:
                word, _, after = rest.partition(" ")
                if "(" in word or (size := parse(word)) is None:
                    break
                sizes[size.name], rest = size.values, after.strip()
            if not sizes:
                raise BadSizes("no sizes to sweep; write e.g. %sweep n=1..64 f(x)")
            call = _function(_call(self._shell, rest, "%sweep"))
            return swept(call.function, **options, **sizes)(*call.args, **call.kwargs)  # type: ignore[arg-type]


def _show(call: MagicCall, options: dict[str, Any]) -> None:
    from jaxsight.notebooks.display import show

    if {*call.kwargs} & {*options}:
        raise BadLine(f"{', '.join({*call.kwargs} & {*options})} is an argument and an option")
    show(call.function, *call.args, **options, **call.kwargs)  # type: ignore[arg-type]


def _run_and_show(shell: InteractiveShell, cell: str, options: dict[str, Any]) -> None:
    """Run a cell as it is, then show what it called and compiled; after an error only that."""
    from jaxsight.notebooks.cells import SEEN, CellCalls, WrapCalls

    calls, wrap = CellCalls(), WrapCalls()
    shell.ast_transformers.append(wrap)
    shell.user_ns[SEEN] = calls.recording
    try:
        result = shell.run_cell(cell)
    finally:
        shell.ast_transformers.remove(wrap)
        shell.user_ns.pop(SEEN, None)
    if result.error_before_exec or result.error_in_exec:
        return
    found = list(calls.found.values())
    with _usage_errors():
        if not found:
            raise BadLine("the cell calls no jitted function, and compiles none")
        for function, args, kwargs in found[:_MOST]:
            _show(MagicCall(function, args, kwargs), options)
    if len(found) > _MOST:
        print(f"{len(found) - _MOST} more functions are not shown")


def _call(shell: InteractiveShell, text: str, magic: str) -> MagicCall:
    if not text.strip():
        raise BadLine(f"{magic} needs a call such as f(x); {magic}? is its help")
    return evaluate_call(text, shell.user_ns)


def _function(call: MagicCall) -> MagicCall:
    if not call.is_call or not callable(call.function):
        raise BadLine("expected a call such as f(x)")
    return call


def _traced(call: MagicCall) -> Any:
    import jax

    if isinstance(call.function, jax.stages.Traced):
        return call.function
    function: Any = _function(call).function
    traceable = function if hasattr(function, "trace") else jax.jit(function)
    return traceable.trace(*call.args, **call.kwargs)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Have IPython print the message of what users can mend, without a traceback."""
    try:
        yield
    except _mendable() as error:
        from IPython.core.error import UsageError

        raise UsageError(str(error)) from None


def _mendable() -> tuple[type[Exception], ...]:
    """Return the errors whose message is all that a user needs."""
    from jaxsight.library.compiling import CannotCompile
    from jaxsight.library.measuring import NotHere
    from jaxsight.measuring.programs import CannotMeasure
    from jaxsight.notebooks.display import CannotShow
    from jaxsight.sweeps.points import BadSizes
    from jaxsight.targets.target import UnknownTarget

    return (BadLine, BadSizes, CannotCompile, CannotMeasure, CannotShow, NotHere, UnknownTarget)
