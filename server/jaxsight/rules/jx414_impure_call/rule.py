"""JX414: code that runs while JAX traces a function, and not each time that the function runs.

Found in the text of the module: in functions that a transformation certainly traces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.jx414_impure_call.printing import debug_print
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.functions import Event, looked_for
from jaxsight.rules.text.scopes import NOTHING, Scope
from jaxsight.rules.text.statements import Statement, written
from jaxsight.rules.text.traced import TracedFunction, traced_events
from jaxsight.rules.text.transformations import BATCHED, STAGED
from jaxsight.rules.violation import ModuleViolation, NodeViolation
from jaxsight.rules.wording import quoted

RULE = Rule(
    "JX414",
    "impure-call",
    "Call runs while tracing instead of each time that the function runs.",
    severity="warning",
)

_PRINTS = frozenset(
    {
        "print", "pprint.pprint", "pprint.pp", "rich.print", "sys.stdout.write", "sys.stderr.write",
        "tqdm.tqdm.write", "builtins.print", "icecream.ic", "wandb.log", "mlflow.log_metric",
        "mlflow.log_metrics", "click.echo",
    }
)  # fmt: skip
_LOGS = frozenset(
    {"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "fatal"}
)
_LOGGERS = re.compile(r"_*(log|logger|logging)", re.IGNORECASE)
_CLOCKS = re.compile(
    r"time\.(time|perf_counter|monotonic|process_time|thread_time|clock_gettime)(_ns)?|"
    r"time\.(localtime|gmtime|ctime|strftime|asctime)|timeit\.default_timer|"
    r"datetime\.(datetime\.)?(now|utcnow|today)|datetime\.date\.today"
)
_DRAWS = re.compile(
    r"numpy\.random\.(?!default_rng|RandomState|Generator|SeedSequence|seed|get_state|set_state|"
    r"PCG64|Philox|MT19937|SFC64|BitGenerator|mtrand|bit_generator)[a-z]\w*|"
    r"random\.(random|uniform|randint|randrange|choice|choices|sample|shuffle|gauss|"
    r"normalvariate|betavariate|expovariate|gammavariate|lognormvariate|triangular|getrandbits|"
    r"randbytes|vonmisesvariate|paretovariate|weibullvariate|binomialvariate)|"
    r"secrets\.\w+|os\.urandom"
)
_IDS = re.compile(r"uuid\.uuid[14]")
_GENERATORS = re.compile(r"numpy\.random\.(default_rng|RandomState)|random\.(Random|SystemRandom)")
_GENERATOR = re.compile(
    r"_*((np|numpy|py|host|global)_?)?(rng|random_state|generator)\d*", re.IGNORECASE
)
"""What modules call a generator of random numbers."""
_METHODS = frozenset(
    {
        "random", "normal", "uniform", "integers", "randint", "choice", "choices", "permutation",
        "permuted", "shuffle", "standard_normal", "exponential", "poisson", "binomial", "gamma",
        "beta", "rand", "randn", "sample", "random_sample", "multivariate_normal", "laplace",
        "bytes", "gauss", "randrange", "dirichlet", "geometric", "lognormal", "categorical",
    }
)  # fmt: skip
"""Methods of random number generators of NumPy and Python."""
_HELP = 70
"""Characters of code in a help."""
_ABOUT_TRACING = re.compile(r"trac|compil|\bjit", re.IGNORECASE)
"""Texts of those who know when a print runs."""


@dataclass(frozen=True, slots=True)
class Impure:
    """A call that has effects, or depends on more than its arguments."""

    kind: str
    """`print`, `text`, `log`, `random`, `id`, `clock`, `sleep`, `input` or `write`."""
    call: str
    name: str = ""
    """An argument that may be traced."""
    instead: str = ""
    """What prints when the function runs."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield prints of traced values, random draws, clocks, inputs and files in traced functions.

    What is printed of sizes and types is known while tracing, so it is not reported, nor is code
    that asks whether it is traced.
    """
    for function, event, module in traced_events(statements):
        impure = event.data
        if not isinstance(impure, Impure) or not function.kinds:
            continue
        if event.sources and not module.is_live(event.sources):
            continue
        violation = _worded(impure, event, function)
        if violation is not None:
            yield ModuleViolation(function.statement, violation)


@looked_for
def look(scope: Scope, node: ast.AST) -> Iterator[Event]:
    """Yield the call, if it has effects or depends on more than its arguments."""
    if not isinstance(node, ast.Call):
        return
    full, text = scope.full(node.func), written(node)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg != "file")]
    if full in _PRINTS:
        yield from _printed(scope, node, arguments, text)
    elif _is_log(scope, node, full):
        traced = [argument for argument in arguments if scope.sources(argument)]
        if traced and not _is_about_tracing(arguments):
            sources = frozenset(source for argument in traced for source in scope.sources(argument))
            yield Event(node, sources, Impure("log", text, _name(scope, traced)))
    elif (
        _DRAWS.fullmatch(full)
        or _is_draw(scope, node.func)
        or (_GENERATORS.fullmatch(full) and not arguments)
    ):
        yield Event(node, NOTHING, Impure("random", text))
    elif _IDS.fullmatch(full):
        yield Event(node, NOTHING, Impure("id", text))
    elif _CLOCKS.fullmatch(full):
        yield Event(node, NOTHING, Impure("clock", text))
    elif full == "time.sleep":
        yield Event(node, NOTHING, Impure("sleep", text))
    elif full == "input":
        yield Event(node, NOTHING, Impure("input", text))
    elif full in ("open", "io.open") and _writes(node):
        yield Event(node, NOTHING, Impure("write", text))


def _printed(
    scope: Scope, node: ast.Call, arguments: Sequence[ast.expr], text: str
) -> Iterator[Event]:
    if _is_about_tracing(arguments):
        return
    traced = [argument for argument in arguments if scope.sources(argument)]
    if traced:
        sources = frozenset(source for argument in traced for source in scope.sources(argument))
        instead = debug_print(node, written, "jax.debug.print") or ""
        yield Event(node, sources, Impure("print", text, _name(scope, traced), instead))
    elif all(isinstance(argument, ast.Constant) for argument in arguments):
        yield Event(node, NOTHING, Impure("text", text))


def _name(scope: Scope, nodes: Sequence[ast.expr]) -> str:
    """Return the first name with a value that may be traced in what is printed."""
    names = (part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name))
    return next((name.id for name in names if scope.sources(name)), "x")


def _is_about_tracing(arguments: Sequence[ast.expr]) -> bool:
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _ABOUT_TRACING.search(node.value)
        for argument in arguments
        for node in ast.walk(argument)
    )


def _is_log(scope: Scope, call: ast.Call, full: str) -> bool:
    """Whether a call is `logging.info(…)`, or that of a logger."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGS:
        return False
    base = call.func.value
    last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    if full.startswith(("logging.", "absl.logging.", "loguru.")):
        return True
    return _LOGGERS.fullmatch(last) is not None


def _is_draw(scope: Scope, function: ast.expr) -> bool:
    """Whether a method of a generator is called that was made outside of the function."""
    if not isinstance(function, ast.Attribute) or function.attr not in _METHODS:
        return False
    generator: ast.expr | None = None
    if isinstance(function.value, ast.Name):
        holder = scope.holder(function.value.id)
        if holder is None or holder is scope:
            return False
        generator = holder.aliases.get(function.value.id)
        if generator is None and holder.node is None:
            name = function.value.id
            return name not in scope.imports and _GENERATOR.fullmatch(name) is not None
    return (
        isinstance(generator, ast.Call)
        and _GENERATORS.fullmatch(scope.full(generator.func)) is not None
    )


def _writes(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else None
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), mode)
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and any(letter in mode.value for letter in "wax+")
    )


def _worded(impure: Impure, event: Event, function: TracedFunction) -> NodeViolation | None:
    """Return the violation, in words that fit the transformation."""
    words = _of_output(impure, function) or _of_value(impure, function)
    if words is None:
        return None
    message, help = words
    by = _traced_by(function)
    notes: tuple[str, ...] = (by,)
    if impure.kind == "random" and STAGED in function.kinds:
        notes = ("each later call of the compiled function uses the same numbers", by)
    elif impure.kind == "random" and BATCHED not in function.kinds:
        notes = ("once jitted, each call uses the same numbers", by)
    severity = "information" if impure.kind == "text" else ""
    return NodeViolation(
        event.at,
        f"{quoted(impure.call)} {message}",
        help=help,
        notes=notes,
        data=impure,
        severity=severity,
    )


def _traced_by(function: TracedFunction) -> str:
    """Return the note on what traces a function, perhaps by way of its caller."""
    name = function.function.name.rpartition(".")[2]
    name = "this lambda" if name.startswith("<") else f"`{name}`"
    caller = function.caller.rpartition(".")[2]
    if caller:
        return f"`{function.by}` traces `{caller}`, which calls {name}"
    return f"`{function.by}` traces {name}"


def _of_output(impure: Impure, function: TracedFunction) -> tuple[str, str] | None:
    """Return the message after the call, and the help, for what is printed, logged or written."""
    staged, name = STAGED in function.kinds, impure.name
    match impure.kind:
        case "print":
            debug = impure.instead
            if not debug or len(debug) > _HELP:
                debug = f'jax.debug.print("{{{name}}}", {name}={name})'
            if staged:
                return (
                    "prints a tracer once, while tracing",
                    f"print values when the function runs: `{debug}`",
                )
            return "prints a tracer instead of its value", f"print the value: `{debug}`"
        case "text" if staged:
            return (
                "runs once, while tracing",
                "print each time that the function runs with `jax.debug.print`",
            )
        case "log":
            callback = f"jax.debug.callback(lambda {name}: {impure.call}, {name})"
            if len(callback) > _HELP:
                callback = f"jax.debug.callback(log, {name})"
            once = " once, while tracing" if staged else ""
            return f"logs a tracer{once}", f"log values from a callback: `{callback}`"
        case "write" if staged:
            return (
                "writes once, while tracing",
                "write from a callback: `jax.experimental.io_callback`, or what is returned",
            )
        case _:
            return None


def _of_value(impure: Impure, function: TracedFunction) -> tuple[str, str] | None:
    """Return the message after the call, and the help, for values that differ from call to call."""
    staged = STAGED in function.kinds
    match impure.kind:
        case "random" if staged:
            return (
                "draws once, while tracing",
                "pass a key as an argument and draw with `jax.random`",
            )
        case "random" if BATCHED in function.kinds:
            return (
                "draws once for the whole batch",
                "map over keys and draw with `jax.random`",
            )
        case "random":
            return (
                "makes a function impure that JAX traces",
                "pass a key as an argument and draw with `jax.random`",
            )
        case "clock" if staged:
            return (
                "reads the clock once, while tracing",
                "measure outside of the function, after `jax.block_until_ready(result)`",
            )
        case "id" if staged:
            return (
                "is called once, while tracing",
                "call it outside of the function, and pass the result as an argument",
            )
        case "sleep" if staged:
            return "runs once, while tracing", "wait outside of the function"
        case "input":
            return (
                "asks while tracing",
                "ask outside of the function, and pass the answer as an argument",
            )
        case _:
            return None
