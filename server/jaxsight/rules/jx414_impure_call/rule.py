"""JX414: code that runs while JAX traces a function, and not each time that the function runs.

Found in the text of the module: in functions that a transformation certainly traces.
"""

# Longer than most rules: eight kinds of calls are found, each in its own way, and said in words
# that fit how the function is transformed.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx414_impure_call.printing import debug_print
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule
from jaxsight.rules.text.expressions import argument_of, strings_in
from jaxsight.rules.text.functions import GENERATORS, Event, looked_for
from jaxsight.rules.text.scopes import NOTHING, NameScope
from jaxsight.rules.text.statements import Statement, written
from jaxsight.rules.text.traced import TracedFunction, traced_events
from jaxsight.rules.text.transformations import BATCHED, STAGED
from jaxsight.rules.wording import quoted

RULE = Rule(
    __name__,
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
Kind = Literal["print", "text", "log", "random", "clock", "write", "next", "environ"]
_CALLS: dict[Kind, re.Pattern[str]] = {
    "random": re.compile(
        r"numpy\.random\.(?!default_rng|RandomState|Generator|SeedSequence|seed|get_state|"
        r"set_state|PCG64|Philox|MT19937|SFC64|BitGenerator|mtrand|bit_generator)[a-z]\w*|"
        r"random\.(random|uniform|randint|randrange|choice|choices|sample|shuffle|gauss|"
        r"normalvariate|betavariate|expovariate|gammavariate|lognormvariate|triangular|"
        r"getrandbits|randbytes|vonmisesvariate|paretovariate|weibullvariate|binomialvariate)|"
        r"secrets\.\w+|os\.urandom"
    ),
    "clock": re.compile(
        r"time\.(time|perf_counter|monotonic|process_time|thread_time|clock_gettime)(_ns)?|"
        r"time\.(localtime|gmtime|ctime|strftime|asctime)|timeit\.default_timer|"
        r"datetime\.(datetime\.)?(now|utcnow|today)|datetime\.date\.today"
    ),
    "write": re.compile(r"(io\.)?open"),
    "environ": re.compile(r"os\.(getenv|environ\.get)"),
}
"""By kind the functions, with the names that they are imported from."""
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
"""Characters of code in a help, which has few other words."""
_COUNTER = re.compile(r"(^|_)(counter|count|uids?|ids?|names?|serial)(_|$)", re.IGNORECASE)
"""Names of iterators that number what is made while tracing, on purpose."""
_ABOUT_TRACING = re.compile(r"trac|compil|\bjit", re.IGNORECASE)
"""Texts of those who know when a print runs."""


@dataclass(frozen=True, slots=True)
class Impure:
    """A call that has effects, or depends on more than its arguments."""

    kind: Kind
    call: str
    name: str = ""
    """An argument that may be traced; of `next`, the function that the iterator is of."""
    instead: str = ""
    """What prints when the function runs."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield prints of traced values, random draws, clocks, iterators and files in traced functions.

    What is printed of sizes and types is known while tracing, so it is not reported, nor is code
    that asks whether it is traced.
    """
    for function, event, module in traced_events(statements):
        impure = event.data
        if not isinstance(impure, Impure) or (event.sources and not module.is_live(event.sources)):
            continue
        holder = module.functions.get(impure.name) if impure.kind == "next" else None
        if holder is not None and holder.kinds and not function.is_root:
            continue  # the trace makes the iterator itself
        violation = _worded(impure, event, function)
        if violation is not None:
            yield ModuleViolation(function.statement, violation)


@looked_for
def look(scope: NameScope, node: ast.AST) -> Iterator[Event]:
    """Yield the call, if it has effects or depends on more than its arguments."""
    if not isinstance(node, ast.Call):
        return
    full, text = scope.full(node.func), written(node)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg != "file")]
    prints = full in _PRINTS
    if prints or _is_log(node, full):
        if any(_ABOUT_TRACING.search(said) for each in arguments for said in strings_in(each)):
            return
        traced = [argument for argument in arguments if scope.sources(argument)]
        if traced:
            instead = (debug_print(node, written, "jax.debug.print") or "") if prints else ""
            parts = (part for argument in traced for part in ast.walk(argument))
            names = (p.id for p in parts if isinstance(p, ast.Name) and scope.sources(p))
            impure = Impure("print" if prints else "log", text, next(names, "x"), instead)
            yield Event(node, NOTHING.union(*map(scope.sources, traced)), impure)
        elif prints and all(isinstance(argument, ast.Constant) for argument in arguments):
            yield Event(node, NOTHING, Impure("text", text))
    elif full == "next" and node.args and isinstance(node.args[0], ast.Name):
        name, holder = node.args[0].id, scope.holder(node.args[0].id)
        if holder is not scope and not _COUNTER.search(name):
            yield Event(node, NOTHING, Impure("next", text, holder.name))
    elif _is_draw(scope, node.func) or (GENERATORS.fullmatch(full) and not arguments):
        yield Event(node, NOTHING, Impure("random", text))
    else:
        for kind, functions in _CALLS.items():
            if functions.fullmatch(full) and (kind != "write" or _writes(node)):
                yield Event(node, NOTHING, Impure(kind, text))


def _is_log(call: ast.Call, full: str) -> bool:
    """Whether a call is `logging.info(…)`, or that of a logger."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGS:
        return False
    base = call.func.value
    last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    is_module = full.startswith(("logging.", "absl.logging.", "loguru."))
    return is_module or _LOGGERS.fullmatch(last) is not None


def _is_draw(scope: NameScope, function: ast.expr) -> bool:
    """Whether a method of a generator is called that was made outside of the function."""
    match function:
        case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _METHODS:
            holder = scope.holder(name)
        case _:
            return False
    generator = holder.aliases.get(name)
    if holder is scope or generator is not None:
        made = scope.full(generator.func) if isinstance(generator, ast.Call) else ""
        return holder is not scope and GENERATORS.fullmatch(made) is not None
    is_module = holder.node is None and name not in scope.imports
    return is_module and _GENERATOR.fullmatch(name) is not None


def _writes(call: ast.Call) -> bool:
    match argument_of(call, 1, "mode"):
        case ast.Constant(value=str(mode)):
            return any(letter in mode for letter in "wax+")
        case _:
            return False


def _worded(impure: Impure, event: Event, function: TracedFunction) -> NodeViolation | None:
    """Return the violation, in words that fit the transformation."""
    how = next((kind for kind in (STAGED, BATCHED) if kind in function.kinds), "other")
    words = _WORDS.get((impure.kind, how)) or _WORDS.get((impure.kind, ""))
    if words is None:
        return None
    by = function.note("this lambda")
    notes: tuple[str, ...] = (by,)
    if impure.kind == "next":
        notes = ("each later call, and each iteration of a loop, has the same item", by)
    if impure.kind == "random" and how != "batched":
        each = "once jitted, each call"
        if how == STAGED:
            each = "each later call of the compiled function"
        notes = (f"{each} uses the same numbers", by)
    message, help = words
    name, instead = impure.name, impure.instead
    if impure.kind == "log":
        instead = f"jax.debug.callback(lambda {name}: {impure.call}, {name})"
        instead = instead if len(instead) <= _HELP else f"jax.debug.callback(log, {name})"
    elif not instead or len(instead) > _HELP:
        instead = f'jax.debug.print("{{{name}}}", {name}={name})'
    return NodeViolation(
        event.at,
        f"{quoted(impure.call)} {message}",
        help=help.format(instead),
        notes=notes,
        data=impure,
        severity="information" if impure.kind in ("text", "environ") else "",
    )


_WITH_A_KEY = "pass a key as an argument and draw with `jax.random`"
_WORDS: dict[tuple[Kind, str], tuple[str, str]] = {
    ("print", "staged"): (
        "prints a tracer once, while tracing",
        "print values when the function runs: `{}`",
    ),
    ("print", ""): ("prints a tracer instead of its value", "print the value: `{}`"),
    ("text", "staged"): (
        "runs once, while tracing",
        "print each time that the function runs with `jax.debug.print`",
    ),
    ("log", "staged"): ("logs a tracer once, while tracing", "log values from a callback: `{}`"),
    ("log", ""): ("logs a tracer", "log values from a callback: `{}`"),
    ("write", "staged"): (
        "writes once, while tracing",
        "write from a callback: `jax.experimental.io_callback`, or what is returned",
    ),
    ("random", "staged"): ("draws once, while tracing", _WITH_A_KEY),
    ("random", "batched"): (
        "draws once for the whole batch",
        "map over keys and draw with `jax.random`",
    ),
    ("random", ""): ("makes a function impure that JAX traces", _WITH_A_KEY),
    ("clock", "staged"): (
        "reads the clock once, while tracing",
        "measure outside of the function, after `jax.block_until_ready(result)`",
    ),
    ("next", "staged"): (
        "advances an iterator once, while tracing",
        "call `next` outside of the function, and pass what it returns as an argument",
    ),
    ("environ", "staged"): (
        "reads the environment once, while tracing",
        "read it when the module is imported, or pass the setting as a static argument",
    ),
}
"""By kind and by how the function is transformed (in any way, if that is empty): what the call
does, and the help.
"""


# The fix: print values when the function runs.


@RULE.corrects("`jax.debug.print` instead of `print` (unsafe)")
def candidates(context: FixContext, impure: Impure) -> Iterator[Candidate]:
    """Yield `jax.debug.print` in place of a `print`."""
    call = context.node.value if isinstance(context.node, ast.Expr) else context.node
    if impure.kind not in ("print", "text"):
        return
    if not isinstance(call, ast.Call) or context.called(call.func) != "print":
        return
    jax = context.imports.get("jax", "jax")
    text = debug_print(call, context.text, f"{jax}.debug.print")
    if text is not None:
        title = f"Print each time with `{jax}.debug.print`"
        edits = (*context.jax_import(), context.replace(call, text))
        yield Candidate(title, edits, safe=False, same=False)
