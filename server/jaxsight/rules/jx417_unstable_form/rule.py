"""JX417: an expression that overflows, underflows or cancels has a stable equivalent."""

# Longer than most rules: a table of forty forms, with the guards of those that may be meant.

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.jx417_unstable_form.look import DENSITIES, LIMITS, Look, words_of
from jaxsight.rules.patterns.programs import ProgramPatterns
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.program.bounds import ValueBounds
from jaxsight.rules.program.guards import has_rule, is_in_branch, is_written
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, SeverityName, Violation
from jaxsight.rules.wording import quoted

# The unstable forms: how each is written, what to write instead, and where it goes wrong.
#
# A form is a pattern of `rules/patterns`, in which a capital letter stands for exponentials,
# perhaps with weights or masked: `log(sum(X))` is `log(sum(exp(x)))`. The first form of an
# expression counts.

_FEW = 4
"""Products of fewer factors are not reported."""


@dataclass(frozen=True, slots=True)
class Instability:
    """What is wrong with a form, in templates for the limits of its type."""

    message: str
    note: str = ""
    may_occur: Callable[[Look], bool] = lambda look: True
    under: str = ""
    """The message where exponentials underflow and do not overflow."""
    zero: str = ""
    """What is 0 then."""
    more: Callable[[Look], str] = lambda look: ""
    """What to add to the help."""


@dataclass(frozen=True, slots=True)
class Unstable:
    """One unstable form of an expression."""

    pattern: str
    instead: str
    """The template of the stable form, which the fix writes; or a help, which has backticks."""
    trouble: Instability
    weights: bool = False
    """Whether a note says how `logsumexp` takes weights."""
    severity: SeverityName | Literal[""] = ""
    covers: bool = True
    """Whether forms inside of this one are not reported too."""
    differs: bool = False
    """Whether the fix may change values: where those are NaN or round, the new ones are right."""


def _wild(over: str, under: str = "", zero: str = "") -> Instability:
    """Return what is wrong where exponentials overflow, and where all underflow if `under` says."""
    return Instability(
        f"{over} {{inf:.1f}}",
        "in {float}, `exp(x)` is inf for `x` above {inf:.1f}",
        lambda look: look.is_wild(underflow=bool(under)),
        f"{under} {{zero:.1f}}",
        zero,
    )


def _rounded(written: str, function: str, when: Callable[[Look], bool]) -> Instability:
    """Return what is wrong where a function is 1 for small numbers."""
    return Instability(
        f"`{written}` loses digits for small `|x|`, and is 0 below {{half:.0e}}",
        f"in {{float}}, `{function}` is 1 for `x` below {{half:.0e}}",
        when,
    )


def _underflow(function: str) -> Instability:
    return Instability(f"logarithm of `{function}` is -inf where that underflows to 0")


def _is_small(look: Look) -> bool:
    return look.may_be_small() and not look.is_only_compared()


def _above_one(written: str) -> Instability:
    return Instability(
        f"`{written}` is -inf for `x` above {{one:.1f}}",
        "in {float}, `sigmoid(x)` is 1 there",
        lambda look: look.bounds()[1] >= look.limits["one"] - 1,
    )


def _cancels(written: str, where: str, note: str = "") -> Instability:
    signed = frozenset({"max", "clamp", "abs"})  # for those who cancel on purpose
    return Instability(
        f"`{written}` cancels where {where}", note, lambda look: not look.is_read_by(signed)
    )


_EXCEEDS, _BELOW = "where an exponent exceeds", "where all exponents are below"
_SUM = f"log-sum-exp overflows {_EXCEEDS}", f"log-sum-exp is -inf {_BELOW}", "the sum"
_LOG_SUM, _LOG_SUM_WITH_1, _LOG_CUMSUM = (
    replace(_wild(*said), more=Look.factor)
    for said in (_SUM, _SUM[:1], (f"cumulative {_SUM[0]}", f"cumulative {_SUM[1]}", "the sum"))
)
_SHARE = _wild(
    f"logarithm of a share of exponentials is NaN {_EXCEEDS}",
    "logarithm of a share of exponentials is not finite where an exponent is below",
    "the share",
)
_SOFTMAX, _QUOTIENT, _SHARE_OF_2, _OF_2 = (
    _wild(f"{form} is NaN {_EXCEEDS}", f"{form} is NaN {_BELOW}", "the denominator")
    for form in (
        "softmax without max subtraction",
        "quotient of exponentials",
        "`exp(a) / (exp(a) + exp(b))`",
        "`exp(a) / exp(b)`",
    )
)
_LOG_SOFTMAX = Instability(
    "logarithm of a softmax is -inf where a probability underflows to 0",
    "in {float}, `exp(x)` is 0 for `x` below {zero:.1f}: a probability is 0 where a logit is far "
    "below the maximum",
    more=Look.elements,
)
_LOST = "in {float}, numbers below {half:.0e} are lost beside 1"

FORMS = (
    Unstable(
        "log(sigmoid(x))",
        "jax.nn.log_sigmoid({x})",
        Instability(
            "`log(sigmoid(x))` is -inf for `x` below -{inf:.1f}",
            "in {float}, `sigmoid(x)` is 0 there",
            lambda look: look.bounds()[0] <= -look.limits["inf"],
        ),
    ),
    Unstable("log(softmax(*logits))", "jax.nn.log_softmax({logits})", _LOG_SOFTMAX),
    Unstable(
        "log(A / sum(B)) | log(pick(A) / sum(B)) | log(sum(A) / sum(B))",
        "subtract logarithms: `a - jax.nn.logsumexp(b)` for `log(exp(a) / sum(exp(b)))`",
        _SHARE,
    ),
    Unstable(
        "log(1 / (1 + X))",
        "use `jax.nn.log_sigmoid(x)`",
        replace(
            _wild(_SUM[0]),
            message="logarithm of a sigmoid is -inf where the sigmoid underflows to 0",
        ),
    ),
    Unstable("log(1 - sigmoid(x))", "jax.nn.log_sigmoid({-x})", _above_one("log(1 - sigmoid(x))")),
    Unstable("log1p(-sigmoid(x))", "jax.nn.log_sigmoid({-x})", _above_one("log1p(-sigmoid(x))")),
    Unstable(
        "log(1 - tanh(x) ** 2)",
        "use `2 * (jnp.log(2.0) - x - jax.nn.softplus(-2 * x))`",
        Instability(
            "`log(1 - tanh(x)**2)` is -inf for `x` above {tanh:.2g}",
            "in {float}, `tanh(x)` is 1 above {tanh:.2g}",
        ),
    ),
    *(
        Unstable(f"log({name}(*x))", f"{{{name}}}{logarithm}({{x}})", _underflow(name))
        for name, logarithm in DENSITIES.items()
    ),
    Unstable("log(1 - cdf(*x))", "{cdf}logsf({x})", _underflow("1 - cdf")),
    Unstable("log(sum(X))", "jax.nn.logsumexp({x}{axes})", _LOG_SUM, weights=True),
    Unstable("log(cumsum(X))", "use `jax.lax.cumlogsumexp({x})`", _LOG_CUMSUM),
    Unstable(
        "log(dot(X, w)) | log(dot(w, X))",
        "use `jax.nn.logsumexp` over the contracted axis of `{x} + log(weights)`",
        _LOG_SUM,
    ),
    Unstable(
        "log(cosh(x))",
        "use `jnp.logaddexp({x}, {-x}) - jnp.log(2.0)`",
        Instability(
            "`log(cosh(x))` overflows for `x` above {cosh:.1f}",
            "in {float}, `cosh(x)` is inf above {cosh:.1f} and below -{cosh:.1f}",
            lambda look: (
                max(map(abs, look.bounds())) >= look.limits["cosh"] and not look.is_selected()
            ),
        ),
    ),
    Unstable(
        "log(exp(x) - 1)",
        "use `{(x)} + jnp.log(-jnp.expm1({-x}))`",
        _wild("`log(exp(x) - 1)` overflows for `x` above"),
    ),
    Unstable(
        "log(1 - exp(x))",
        "jnp.log(-jnp.expm1({x}))",
        Instability(
            "`log(1 - exp(x))` loses digits for small `x`",
            "in {float}, `1 - exp(x)` is 0 for `x` above -{half:.0e}",
            lambda look: look.may_be_small() and not look.is_selected(),
        ),
    ),
    Unstable(
        "log(1 + X)", "jax.nn.softplus({x})", _wild("`log(1 + exp(x))` overflows for `x` above")
    ),
    Unstable(
        "log1p(exp(x))", "jax.nn.softplus({x})", _wild("`log1p(exp(x))` overflows for `x` above")
    ),
    Unstable("log(A + B)", "jnp.logaddexp({a}, {b})", _LOG_SUM),
    Unstable(
        "log(1 + A + B + ...)",
        "use `jax.nn.logsumexp(x)`",
        _LOG_SUM_WITH_1,
        weights=True,
    ),
    Unstable("log(A + B + C + ...)", "use `jax.nn.logsumexp(x)`", _LOG_SUM, weights=True),
    Unstable(
        "log(1 + sum(X)) | log1p(sum(X))",
        "use `jnp.logaddexp(0.0, jax.nn.logsumexp({x}))`",
        _LOG_SUM_WITH_1,
    ),
    Unstable(
        "log(sum(softmax(*logits) * mask))",
        "use `jnp.sum(one_hot * jax.nn.log_softmax({logits}), axis=-1)`",
        replace(_LOG_SOFTMAX, may_occur=lambda look: look.is_mask("mask")),
    ),
    *(
        Unstable(
            f"log({product}(*x))",
            f"use `jnp.{total}(jnp.log({{x}}))`",
            Instability(
                "product of {factors:,} factors overflows or underflows before its logarithm",
                "{factors:,} factors of 0.1 are 1e-{factors}; {float} is 0 below {least:.0e}",
                lambda look: look.factors >= _FEW and not look.is_whole(),
            ),
        )
        for product, total in (("prod", "sum"), ("cumprod", "cumsum"))
    ),
    Unstable(
        "log(det(*a))",
        "jnp.linalg.slogdet({a})[1]",
        Instability(
            "determinant overflows or underflows before its logarithm",
            "a determinant grows or shrinks exponentially with the size of the matrix",
        ),
        differs=True,
    ),
    Unstable(
        "log(1 + x)",
        "jnp.log1p({x}){base}",
        _rounded("{log}(1 + x)", "1 + x", Look.is_near_1),
        covers=False,
    ),
    Unstable(
        "log(1 - x)",
        "jnp.log1p({-x}){base}",
        _rounded("{log}(1 - x)", "1 - x", lambda look: look.is_near_1() and not look.is_share()),
        covers=False,
    ),
    Unstable(
        "exp(x) - 1 | exp(x) + -1", "jnp.expm1({x})", _rounded("exp(x) - 1", "exp(x)", _is_small)
    ),
    Unstable("1 - exp(x)", "-jnp.expm1({x})", _rounded("1 - exp(x)", "exp(x)", _is_small)),
    Unstable(
        "1 - erf(x)",
        "{erf}erfc({x})",
        Instability(
            "`1 - erf(x)` loses digits as `x` grows, and is 0 where `erf(x)` is 1",
            _LOST,
            lambda look: look.bounds()[1] >= 1,
        ),
    ),
    Unstable(
        "1 - cos(x)",
        "use `2 * jnp.sin({(x)} / 2) ** 2`",
        Instability(
            "`1 - cos(x)` loses digits for small `|x|`, and is 0 below {cos:.0e}",
            "in {float}, `cos(x)` is 1 for `x` below {cos:.0e}",
            _is_small,
        ),
        severity="information",
    ),
    Unstable(
        "1 - cdf(*x)",
        "use `{cdf}sf({x})`",
        Instability(
            "`1 - cdf(x)` loses digits in the upper tail",
            _LOST,
            lambda look: look.module("cdf").endswith("norm."),
        ),
    ),
    Unstable(
        "mean(x ** 2) - mean(x) ** 2",
        "jnp.var({x}{axes})",
        _cancels(
            "E[x²] - E[x]²",
            "the mean is large compared with the spread",
            "in {float}, it may even be negative, and its square root NaN",
        ),
    ),
    Unstable(
        "mean(x * y) - mean(x) * mean(y)",
        "use `jnp.mean((x - x_mean) * (y - y_mean))`",
        _cancels("E[xy] - E[x]E[y]", "the means are large compared with the spreads"),
    ),
    Unstable("X / sum(X)", "jax.nn.softmax({x}{axis})", _SOFTMAX, differs=True),
    Unstable("exp(a) / exp(b)", "jnp.exp({a} - {(b)})", _OF_2, differs=True),
    Unstable("(X - Y) / (X + Y)", "use `jnp.tanh({x})`", _QUOTIENT),
    Unstable(
        "X / (1 + X)",
        "jax.nn.sigmoid({x})",
        _wild(f"`exp(x) / (1 + exp(x))` is NaN {_EXCEEDS}"),
        differs=True,
    ),
    Unstable("A / (A + B)", "use `jax.nn.sigmoid({a} - {(b)})`", _SHARE_OF_2),
    Unstable("A / (A + B + C + ...)", "use `jax.nn.softmax`", _SOFTMAX),
    Unstable(
        "A / (1 + A + B + ...)",
        "use `jax.nn.softmax`",
        _wild(f"softmax without max subtraction is NaN {_EXCEEDS}"),
    ),
)


RULE = Rule(
    __name__,
    "Numerically unstable form of a function that JAX has a stable one of.",
    severity="warning",
    without_inputs=True,
)

_WRITTEN: dict[str, tuple[tuple[str, ...], tuple[type[ast.operator], ...]]] = {
    "log": (("log", "log2", "log10"), ()),
    "log2": (("log2",), ()),
    "log1p": (("log1p",), ()),
    "sub": (("subtract", "sub"), (ast.Sub,)),
    "add": (("add",), (ast.Add, ast.Sub)),
    "div": (("divide", "true_divide", "div"), (ast.Div,)),
}
"""By primitive that completes a form the functions and operators that users write it with."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's own logarithms, differences and quotients that have a stable equivalent."""
    flow, known = view.flow, ValueBounds(view.flow)
    patterns = ProgramPatterns(view, words_of(known))
    seen: dict[object, tuple[Unstable, Look]] = {}
    for step in flow.forward_steps(*_WRITTEN):
        if step.span in seen or not is_written(view.quote(step.path), *_WRITTEN[step.primitive]):
            continue
        if has_rule(view, step) or is_in_branch(flow, step):
            continue
        looks = (
            (form, Look(view, known, patterns, found))
            for form in FORMS
            if flow.value(step.results[0]).dtype in LIMITS
            if (found := patterns.at(step, form.pattern)) is not None
        )
        for form, look in looks:
            if form.trouble.may_occur(look):
                seen[step.span] = form, look
                break
    covered = {
        step.path for form, look in seen.values() if form.covers for step in look.found.steps[1:]
    }
    for form, look in seen.values():
        if look.step.path in covered:
            continue
        trouble = form.trouble
        message, note = trouble.message, trouble.note
        if trouble.zero and not look.overflows:
            message = trouble.under
            note = "in {float}, `exp(x)` is 0 for `x` below {zero:.1f}, "
            note += f"so {trouble.zero} may be 0"
        weights = "`logsumexp` takes weights as `b=`"
        notes = (note, weights if form.weights and look.is_weighted() else "")
        help = form.instead if "`" in form.instead else f"use `{form.instead}`"
        yield Violation(
            look.filled(message),
            look.step.path,
            help=look.filled(help) + trouble.more(look),
            notes=tuple(look.filled(each) for each in notes if each),
            severity=form.severity,
        )


# The fix: write the stable function in place of one clear expression.


@RULE.corrects("the stable function in place of the expression")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the stable form of the expression that the finding is about."""
    patterns = SyntaxPatterns(context, capital="exp(_)")
    for node in context.nodes:
        if not isinstance(node, ast.expr) or context.range(node) != context.finding.range:
            return
        for form in FORMS:
            found = patterns.at(node, form.pattern)
            if found is None:
                continue
            if "`" not in form.instead:
                axes = str(found.get("axes", "")).replace(", keepdims=True", "")
                found = {"base": "", **found, "axis": axes or ", axis=None"}
                text = patterns.filled(form.instead, found)
                imported = context.jax_import() if text.lstrip("-").startswith("jax.") else ()
                edits = (context.replace(node, text), *imported)
                yield Candidate(f"Write {quoted(text)}", edits, same=not form.differs)
            return
