"""How many errors are found that are inserted into functions of libraries.

Rules that report nothing in hundreds of library functions may be right, or may find nothing at all.
The result of a function that returns one array is given to an expression with an error, in the text
of the library's own file; the rule has to report it on that line, whatever the function does before.
Rules that read callers get one, at the end of that file:

    python -m tools.precision.mutants --functions functions.jsonl [CODE…]

`functions.jsonl` is what `python -m tools.precision look` writes.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import logging
import random
import sys
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.features.kernels.table import uncompiled
from jaxsight.features.named_function import view_of
from jaxsight.projects.projects import Projects
from jaxsight.rules import RULES
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.replies import Traced
from tests.quiet import QUIET
from tests.rules.cases import cases_of
from tests.truth.libraries import Found, load
from tests.truth.measure import scratch

_SMALL = (("f32[4, 4]", "f32[64, 64]"), ("f32[4]", "f32[64]"))
_LARGE = (("f32[4, 4]", "f32[128, 128]"), ("f32[4]", "f32[128]"))
_BAD = "# bad"
_ARRAY, _PROBE = "array", "e @ jnp.ones(e.shape)[0]"
"""A copy of each function without an error, which needs what it returns to have two axes."""
_IMPORTS = (
    "import functools, time",
    "import jax",
    "import jax.numpy as jnp",
    "import numpy as np",
)
ERRORS = {
    "JX102": "e + jnp.sort(np.random.default_rng(0).normal(size=(100_000, 4)), axis=0)[0, 0]",
    "JX104": "e[..., None] * np.arange(1, 10_001)",
    "JX202": "jnp.sort(jnp.sin(e + 1.0)) * 2.0",
    "JX206": "sum(jnp.fft.irfftn(jnp.fft.rfftn(jnp.tile(e, (64, 1, 1)) + i) * (i + 2)) ** (i + 2) "
    "for i in range(3))",
    "JX208": "(lambda k: jnp.fft.fft2(e) * (k[0] ** 2 + k[1] ** 2))"
    '(jnp.meshgrid(*(jnp.fft.fftfreq(n) for n in e.shape), indexing="ij"))',
    "JX212": "jax.vmap(lambda r: jax.lax.cond(r[0] > 0, lambda v: jnp.linalg.inv("
    "jnp.outer(v, v) + jnp.eye(v.size))[0], lambda v: v, r))(e)",
    "JX213": "jnp.linalg.inv(e @ e.T + jnp.eye(e.shape[0])) @ e",
    "JX214": "jnp.diag(e[0]) @ e",
    "JX215": "jnp.sort(e, axis=-1)[..., 0]",
    "JX216": "jax.nn.one_hot(jnp.argmax(e, -1), e.shape[-1]) @ e.T",
    "JX217": "jax.lax.scan(lambda c, v: (jnp.tanh(c + v), c), 0 * e[0], e)[1][-1]",
    "JX218": "jnp.fft.ifft(jnp.fft.fft(e) * 2.0).real",
    "JX219": "jax.lax.fori_loop(0, 9, lambda i, c: jax.pure_callback(lambda x: x, c, c), e)",
    "JX220": "jnp.where(e.sum() > 0, jnp.sort(e @ e.T), jnp.cumsum(e @ e.T, 0))",
    "JX302": "jax.jit(lambda a, axes: a.sum(tuple(axes)), static_argnums=1)(e, [0])",
    "JX304": "jnp.sqrt(jnp.abs(e) + 1e-300)",
    "JX305": "e @ jnp.ones((e.shape[-1], 64))",
    "JX330": "e + jnp.ones(e.shape[-1] + 3)",
    "JX331": 'jnp.einsum("ijk,kl->ijl", e, e)',
    "JX332": "jnp.sin([e, e])",
    "JX333": """with jax.numpy_dtype_promotion("strict"):
    return e * jnp.arange(e.shape[-1])  # bad""",
    "JX334": "e + jax.random.normal(jax.random.key(0) + 1, e.shape)",
    "JX401": "e if e.sum() > 0 else -e",
    "JX402": "(lambda kept: jax.vmap(lambda r: (kept.append(2 * r), r)[1])(e) + kept[0])([])",
    "JX403": "(lambda k: jax.random.normal(k, e.shape) * jax.random.normal(k, e.shape))"
    "(jax.random.key(0)) + e",
    "JX404": "e[..., e.shape[-1] + 3]",
    "JX405": "jnp.where(e > 0, jnp.sqrt(e), 0.0)",
    "JX406": "jax.grad(lambda a: jax.lax.while_loop("
    "lambda s: s[0] < 9.0, lambda s: (s[0] + 1.0, s[1] * 1.1), (0.0, a))[1].sum())(e)",
    "JX408": "jax.grad(lambda a: jnp.sum(jnp.tanh(jnp.tile(a, (8192, 1)) @ a.T)))(e)",
    "JX410": "jnp.median(jnp.abs(e.reshape(-1)[:, None] - e.reshape(-1)), axis=1)",
    "JX412": """unused = jnp.sin(e)  # bad
return e / 2""",
    "JX416": "(lambda a: a.__setitem__(0, 1.0))(e)",
    "JX417": "jnp.log(jnp.sum(jnp.exp(3.0 * e - 1.0)))",
    "JX418": "jax.grad(lambda a: jnp.sqrt(jnp.sum((a - e) ** 2)))(e)",
    "JX419": "jax.grad(lambda a: jnp.round(a).sum())(e)",
    "JX420": """predicted = e @ jnp.ones((e.shape[-1], 1))
return jnp.mean((predicted - e[:, 0]) ** 2)  # bad""",
    "JX440": "jax.lax.cond(e.sum() > 0, lambda a: a, lambda a: a[0], e)",
    "JX441": "jax.lax.scan(lambda c, r: (jnp.concatenate([c, r]), r), e[0], e)",
    "JX442": "jax.vmap(lambda a, b: a + b)(e, jnp.ones(e.shape[0] + 1))",
    "JX443": "jax.grad(lambda a: 2.0 * a)(e)",
    "JX444": 'jax.jit(lambda a, how: a.sum() if how == "sum" else a)(e, "sum")',
    "JX445": 'jax.vmap(lambda r: r - jax.lax.pmean(r, "rows"))(e)',
    "JX447": "jax.tree.map(lambda a, b: a + b, (e, e), (e,))",
    "JX451": "jnp.empty(16).at[0].add(e.sum())",
    "JX453": "jax.vmap(lambda r: jax.lax.while_loop(lambda s: jnp.linalg.norm(s) > 1e-3, "
    "lambda s: jnp.linalg.solve(2.0 * jnp.eye(s.size) + jnp.outer(s, s), s), r))(e)",
    "JX470": "jax.tree_map(jnp.sin, e)",
}
"""By rule an expression with the error, of an array `e`, or statements with it in a marked line."""
CALLERS = {
    "JX303": """def caller{c}(batches):
    return [jax.jit(lambda *b: {f}(*b))(*batch) for batch in batches]  # bad""",
    "JX414": """@jax.jit
def caller{c}(*inputs):
    e = {f}(*inputs)
    print("mean", e.mean())  # bad
    return e""",
    "JX415": """@jax.jit
def caller{c}(*inputs):
    global LAST{c}
    LAST{c} = {f}(*inputs)  # bad
    return LAST{c}""",
    "JX421": """step{c} = jax.jit({f}, donate_argnums=0)


def caller{c}(state, *rest):
    new = step{c}(state, *rest)
    return new, state.sum()  # bad""",
    "JX431": """step{c} = jax.jit({f})


def caller{c}(*inputs):
    start = time.perf_counter()
    y = step{c}(*inputs)  # bad
    seconds = time.perf_counter() - start
    return seconds, y""",
    "JX450": """class Holder{c}:
    def __init__(self, scale):
        self.scale = scale

    def rescale(self, scale):
        self.scale = scale

    @functools.partial(jax.jit, static_argnums=0)
    def value(self, *inputs):
        return self.scale * {f}(*inputs)  # bad""",
    "JX452": """step{c} = jax.jit({f})


def caller{c}(x, *rest):
    kept = x[None]
    for _ in range(1000):
        x = step{c}(x, *rest)
        kept = jnp.concatenate([kept, x[None]])  # bad
    return kept""",
    "JX455": """step{c} = jax.jit({f})


def caller{c}(x, *rest):
    sizes = []
    for _ in range(1000):
        x = step{c}(x, *rest)
        sizes.append(float(x.sum()))  # bad
    return sizes""",
}
"""By rule that reads the text, a caller of a function `{f}` with the error in a marked line.

`{c}` makes its names its own.
"""


@dataclass(slots=True)
class Mutants:
    """A library's file with copies of one function at its end, each with the error of one rule."""

    function: Found
    text: str
    names: dict[str, str]
    """The copies by code; of callers the function itself."""
    lines: dict[str, int]
    """The lines of the errors by code, from 0."""


def mutants(function: Found, codes: Sequence[str]) -> Mutants | None:
    """Insert the errors of rules into what a function returns, and into callers of it.

    `None` if the function does not return in one place, as its last statement.
    """
    text = Path(function.file).read_text(encoding="utf-8")
    named = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == function.function
    ]
    if len(named) != 1 or named[0].decorator_list:
        return None
    last = named[0].body[-1]
    returns = [node for node in ast.walk(named[0]) if isinstance(node, ast.Return)]
    if returns != [last] or not isinstance(last, ast.Return) or last.value is None:
        return None
    first = next(node for node in named[0].body if not _is_text(node)).lineno - 1
    lines = text.split("\n")
    if any(lines[line][: last.col_offset].strip() for line in (first, last.lineno - 1)):
        return None
    made = Mutants(function, "\n".join([*lines, *_IMPORTS, ""]), {}, {})
    for code in codes:
        if code in CALLERS:
            name = function.function
            copy = CALLERS[code].replace("{f}", name).replace("{c}", code)
        else:
            name = f"{function.function}_{code}"
            copy = _copy(lines, named[0], last, first, name, ERRORS.get(code, _PROBE))
        line = made.text.count("\n") + 2
        [bad] = [number for number, text in enumerate(copy.split("\n")) if text.endswith(_BAD)]
        made.names[code], made.lines[code] = name, line + bad
        made.text += f"\n\n{copy}\n"
    return made


def _copy(
    lines: Sequence[str], node: ast.FunctionDef, last: ast.Return, first: int, name: str, error: str
) -> str:
    """Return a function by another name, which gives what it returns to an error."""
    start, end = last.lineno - 1, last.end_lineno or last.lineno
    returned = "\n".join(lines[start:end])[last.col_offset :].removeprefix("return").strip()
    indent = " " * last.col_offset
    error = error if "\n" in error else f"return {error}  {_BAD}"
    head = [
        line.replace(f"def {node.name}", f"def {name}", 1)
        for line in lines[node.lineno - 1 : first]
    ]
    # A name that is imported anywhere in a function is its own from its first line on.
    imports = [f"{indent}{line}" for line in _IMPORTS]
    result = f"{indent}e = ({returned})"
    return "\n".join([*head, *imports, *lines[first:start], result, textwrap.indent(error, indent)])


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


async def measured(
    functions: Sequence[Found], codes: Sequence[str], each: int, python: str
) -> None:
    """Print for each rule how many mutants were traced, and those that it does not report."""
    tried: dict[str, list[bool]] = defaultdict(list)
    targets = {
        code: cases_of(RULES[code]).target if RULES[code].in_kernels else "" for code in codes
    }
    for target in sorted(set(targets.values())):
        group = [code for code in codes if targets[code] == target]
        left = each if group else 0
        for function in functions:
            made = mutants(function, [_ARRAY, *group]) if left else None
            if made is None:
                continue
            found = await _found(made, group, python, target)
            left -= bool(found)
            for code, is_found in found.items():
                tried[code].append(is_found)
            missed = [code for code, is_found in found.items() if not is_found]
            print(f"{function.module}.{function.function}: {len(found)},", *missed, flush=True)
    for code in codes:
        print(f"{code}: {sum(tried[code])} of {len(tried[code])}")


async def _found(made: Mutants, codes: Sequence[str], python: str, target: str) -> dict[str, bool]:
    """Return which errors are reported, of those that the function gets to.

    There are none if it does not return an array with two axes. Without a target nothing is
    compiled.
    """
    file, found = made.function.file, dict[str, bool]()
    with scratch() as folder:
        examples = {
            f'"{made.function.module}:{name}" = {json.dumps(_example(made.function, bool(target)))}'
            for name in made.names.values()
        }
        text = "\n".join(["[tool.jaxsight.examples]", *sorted(examples)])
        (folder / "pyproject.toml").write_text(text, encoding="utf-8")
        session = Session(Projects(Trust(Policy.ALWAYS)))
        settings = {"python": python, "target": target or "cpu", "select": list(codes)}
        session.configure([str(folder)], {**QUIET, **settings})
        try:
            session.open(file, made.text)
            if not await _is_traced(session, file, made.names[_ARRAY]):
                return found
            findings = (await session.report(file, kernels=bool(target))).reported
            failed = {each.function for each in await uncompiled(session.engine, file)}
            for code in codes:
                rule, name, line = RULES[code], made.names[code], made.lines[code]
                is_found = any(
                    finding.code == code
                    and finding.range.start.line <= line <= finding.range.end.line
                    for finding in findings
                )
                certain = is_found or rule.explain is not None or code in CALLERS
                if not (target and name in failed and not is_found) and (
                    certain or await _is_traced(session, file, name)
                ):
                    found[code] = is_found
        finally:
            await session.aclose()
    return found


async def _is_traced(session: Session, file: str, name: str) -> bool:
    view = await view_of(session.engine, file, name)
    return isinstance(view.answer.reply, Traced)


def _example(function: Found, large: bool) -> str:
    example = function.example
    for small, larger in _LARGE if large else _SMALL:
        example = example.replace(small, larger)
    return example


def main() -> None:
    """Measure the rules that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.precision.mutants", description=__doc__)
    parser.add_argument("codes", nargs="*", default=[*ERRORS, *CALLERS])
    parser.add_argument("--functions", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="the Python with the libraries")
    parser.add_argument("--each", type=int, default=10)
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    functions = load(options.functions)
    random.Random(options.seed).shuffle(functions)
    asyncio.run(measured(functions, options.codes, options.each, options.python))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
