"""How many errors are found that are inserted into functions of libraries.

Rules that report nothing in hundreds of library functions may be right, or may find nothing at all.
The result of a function that returns one array is given to an expression with an error, in the text
of the library's own file; the rule has to report it on that line, whatever the function does before:

    python -m tests.precision.mutants --functions functions.jsonl [CODE…]

`functions.jsonl` is what `python -m tests.precision look` writes.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import logging
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.replies import Traced
from tests.quiet import QUIET
from tests.truth.libraries import Found, load
from tests.truth.measure import scratch

_SMALL = (("f32[4, 4]", "f32[64, 64]"), ("f32[4]", "f32[64]"))
ERRORS = {
    "JX213": "jnp.linalg.inv(e @ e.T + jnp.eye(e.shape[0])) @ e",
    "JX214": "jnp.diag(e[0]) @ e",
    "JX215": "jnp.sort(e, axis=-1)[..., 0]",
    "JX216": "jax.nn.one_hot(jnp.argmax(e, -1), e.shape[-1]) @ e.T",
    "JX217": "jax.lax.scan(lambda c, v: (jnp.tanh(c + v), c), 0 * e[0], e)[1][-1]",
    "JX218": "jnp.fft.ifft(jnp.fft.fft(e) * 2.0).real",
    "JX219": "jax.lax.fori_loop(0, 9, lambda i, c: jax.pure_callback(lambda x: x, c, c), e)",
    "JX220": "jnp.where(e.sum() > 0, jnp.linalg.solve(e, e), e.T)",
    "JX304": "jnp.sqrt(jnp.abs(e) + 1e-300)",
    "JX403": "(lambda k: jax.random.normal(k, e.shape) * jax.random.normal(k, e.shape))"
    "(jax.random.key(0)) + e",
    "JX404": "e[..., e.shape[-1] + 3]",
    "JX405": "jnp.where(e > 0, jnp.sqrt(e), 0.0)",
    "JX416": "(lambda a: a.__setitem__(0, 1.0))(e)",
    "JX417": "jnp.log(jnp.sum(jnp.exp(3.0 * e - 1.0)))",
    "JX418": "jax.grad(lambda a: jnp.sqrt(jnp.sum((a - e) ** 2)))(e)",
    "JX419": "jax.grad(lambda a: jnp.round(a).sum())(e)",
    "JX420": "jnp.mean((e @ e[0][:, None] - e[:, 0]) ** 2)",
}
"""By rule an expression with the error, of an array `e`."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A library function with an error."""

    function: Found
    text: str
    line: int
    """From 0."""


def mutant(function: Found, error: str) -> Mutant | None:
    """Return a function with an error in what it returns; `None` if it has not one such place."""
    text = Path(function.file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    named = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == function.function
    ]
    if len(named) != 1:
        return None
    returns = [node for node in ast.walk(named[0]) if isinstance(node, ast.Return)]
    last = named[0].body[-1]
    if returns != [last] or not isinstance(last, ast.Return) or last.value is None:
        return None
    lines = text.split("\n")
    indent = " " * last.col_offset
    start, end = last.lineno - 1, last.end_lineno or last.lineno
    if lines[start][: last.col_offset].strip():
        return None
    returned = "\n".join(lines[start:end])[last.col_offset :].removeprefix("return").strip()
    inserted = [
        f"{indent}import jax",
        f"{indent}import jax.numpy as jnp",
        *f"{indent}e = ({returned})".split("\n"),
        f"{indent}return {error}",
    ]
    lines[start:end] = inserted
    return Mutant(function, "\n".join(lines), start + len(inserted) - 1)


def _example(function: Found) -> str:
    example = function.example
    for small, larger in _SMALL:
        example = example.replace(small, larger)
    return f'"{function.module}:{function.function}" = {json.dumps(example)}'


async def measured(
    functions: Sequence[Found], codes: Sequence[str], each: int, python: str
) -> None:
    """Print for each rule how many mutants were traced, and those that it does not report."""
    with scratch() as folder:
        examples = dict.fromkeys(map(_example, functions))
        text = "\n".join(["[tool.jaxsight.examples]", *examples])
        (folder / "pyproject.toml").write_text(text, encoding="utf-8")
        for code in codes:
            session = Session(Projects(Trust(Policy.ALWAYS)))
            settings = {"python": python, "target": "cpu", "select": [code]}
            session.configure([str(folder)], {**QUIET, **settings})
            traced, missed = 0, []
            try:
                for function in functions:
                    if traced == each:
                        break
                    made = mutant(function, ERRORS[code])
                    if made is None:
                        continue
                    found = await asyncio.wait_for(_finds(session, made, code), 60)
                    if found is not None:
                        traced += 1
                        missed += [] if found else [f"{function.file}: {function.function}"]
            finally:
                await session.aclose()
            print(f"{code}: {traced - len(missed)} of {traced}", *missed, sep="\n  ", flush=True)


async def _finds(session: Session, made: Mutant, code: str) -> bool | None:
    """Whether a rule reports the error; `None` if the function cannot be traced with it."""
    file = made.function.file
    session.open(file, made.text)
    try:
        findings = await session.findings(file, kernels=False)
        view = await session.view(file, made.function.function)
        is_found = any(
            finding.code == code and finding.range.start.line <= made.line <= finding.range.end.line
            for finding in findings
        )
        return is_found if is_found or isinstance(view.answer.reply, Traced) else None
    finally:
        session.close(file)


def main() -> None:
    """Measure the rules that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.precision.mutants", description=__doc__)
    parser.add_argument("codes", nargs="*", default=list(ERRORS))
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
