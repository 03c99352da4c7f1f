"""JX414: code that runs while JAX traces a function, and not each time that the function runs.

Found in the text of the module: in functions that a transformation certainly traces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.exceptions import quoted
from jaxsight.rules.jx414_impure_call.printing import debug_print
from jaxsight.rules.noticed import InModule, InText
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.functions import Event, looked_for
from jaxsight.rules.text.scopes import NOTHING, Scope
from jaxsight.rules.text.statements import Statement, written
from jaxsight.rules.text.traced import Known, seen
from jaxsight.rules.text.transformations import BATCHED, STAGED

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
def find(statements: Sequence[Statement]) -> Iterator[InModule]:
    """Yield prints of traced values, random draws, clocks, inputs and files in traced functions.

    What is printed of sizes and types is known while tracing, so it is not reported, nor is code
    that asks whether it is traced.
    """
    for known, event, module in seen(statements):
        impure = event.data
        if not isinstance(impure, Impure) or not known.kinds:
            continue
        if event.sources and not module.is_live(event.sources):
            continue
        found = _worded(impure, event, known)
        if found is not None:
            yield InModule(known.statement, found)


@looked_for
def look(scope: Scope, node: ast.AST) -> Iterator[Event]:
    """Yield the call, if it has effects or depends on more than its arguments."""
    if not isinstance(node, ast.Call):
        return
    full, text = scope.full(node.func), written(node)
    arguments = [*node.args, *(each.value for each in node.keywords if each.arg != "file")]
    if full in _PRINTS:
        yield from _printed(scope, node, arguments, text)
    elif _is_log(scope, node, full):
        traced = [each for each in arguments if scope.sources(each)]
        if traced and not _is_about_tracing(arguments):
            sources = frozenset(source for each in traced for source in scope.sources(each))
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
    traced = [each for each in arguments if scope.sources(each)]
    if traced:
        sources = frozenset(source for each in traced for source in scope.sources(each))
        instead = debug_print(node, written, "jax.debug.print") or ""
        yield Event(node, sources, Impure("print", text, _name(scope, traced), instead))
    elif all(isinstance(each, ast.Constant) for each in arguments):
        yield Event(node, NOTHING, Impure("text", text))


def _name(scope: Scope, nodes: Sequence[ast.expr]) -> str:
    """Return the first name with a value that may be traced in what is printed."""
    names = (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
    return next((each.id for each in names if scope.sources(each)), "x")


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
    made: ast.expr | None = None
    if isinstance(function.value, ast.Name):
        holder = scope.holder(function.value.id)
        if holder is None or holder is scope:
            return False
        made = holder.aliases.get(function.value.id)
        if made is None and holder.node is None:
            name = function.value.id
            return name not in scope.imports and _GENERATOR.fullmatch(name) is not None
    return isinstance(made, ast.Call) and _GENERATORS.fullmatch(scope.full(made.func)) is not None


def _writes(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else None
    mode = next((each.value for each in call.keywords if each.arg == "mode"), mode)
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and any(letter in mode.value for letter in "wax+")
    )


def _worded(impure: Impure, event: Event, known: Known) -> InText | None:
    """Return the finding, in words that fit the transformation."""
    staged = STAGED in known.kinds
    name = known.function.name.rpartition(".")[2]
    function = "this lambda" if name.startswith("<") else f"`{name}`"
    caller = known.caller.rpartition(".")[2]
    by = f"`{known.by}` traces {function}"
    if caller:
        by = f"`{known.by}` traces `{caller}`, which calls {function}"
    call = quoted(impure.call)
    name = impure.name
    debug = impure.instead
    if not debug or len(debug) > _HELP:
        debug = f'jax.debug.print("{{{name}}}", {name}={name})'
    callback = f"jax.debug.callback(lambda {name}: {impure.call}, {name})"
    if len(callback) > _HELP:
        callback = f"jax.debug.callback(log, {name})"
    notes: tuple[str, ...] = (by,)
    severity = ""
    match impure.kind:
        case "print" if staged:
            message = f"{call} prints a tracer once, while tracing"
            help = f"print values when the function runs: `{debug}`"
        case "print":
            message = f"{call} prints a tracer instead of its value"
            help = f"print the value: `{debug}`"
        case "text" if staged:
            message = f"{call} runs once, while tracing"
            help = "print each time that the function runs with `jax.debug.print`"
            severity = "information"
        case "log":
            message = f"{call} logs a tracer" + (" once, while tracing" if staged else "")
            help = f"log values from a callback: `{callback}`"
        case "random" if staged:
            message = f"{call} draws once, while tracing"
            help = "pass a key as an argument and draw with `jax.random`"
            notes = ("each later call of the compiled function uses the same numbers", by)
        case "random" if BATCHED in known.kinds:
            message = f"{call} draws once for the whole batch"
            help = "map over keys and draw with `jax.random`"
        case "random":
            message = f"{call} makes a function impure that JAX traces"
            help = "pass a key as an argument and draw with `jax.random`"
            notes = ("once jitted, each call uses the same numbers", by)
        case "clock" if staged:
            message = f"{call} reads the clock once, while tracing"
            help = "measure outside of the function, after `jax.block_until_ready(result)`"
        case "id" if staged:
            message = f"{call} is called once, while tracing"
            help = "call it outside of the function, and pass the result as an argument"
        case "sleep" if staged:
            message = f"{call} runs once, while tracing"
            help = "wait outside of the function"
        case "input":
            message = f"{call} asks while tracing"
            help = "ask outside of the function, and pass the answer as an argument"
        case "write" if staged:
            message = f"{call} writes once, while tracing"
            help = "write from a callback: `jax.experimental.io_callback`, or what is returned"
        case _:
            return None
    return InText(event.at, message, help=help, notes=notes, data=impure, severity=severity)
