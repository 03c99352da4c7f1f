"""What a module of `findings/` returns for a trace error, and the small readers of JAX's messages that they share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.findings.catalogue import CODES
from jaxsight.tracer.protocol import Failure

_PAGE = re.compile(r"https://docs\.jax\.dev/\S+?(?=[\s)]|\.?$)", re.MULTILINE)
_AVAL = re.compile(r"traced array with shape (\w+\[[^\]]*\])")
_CULPRITS = re.compile(r"depends on the values? of the arguments? ([^\n]*?)\.(?=\s|$)")
_BOILERPLATE = re.compile(
    r"^(The error occurred while tracing the function |See https://docs\.jax\.dev|-{20,}$|"
    r"For simplicity, JAX has removed)",
)


@dataclass(frozen=True, slots=True)
class Explained:
    """A code, the message for people, and the page that tells more."""

    code: str
    message: str
    url: str


def explained(code: str, message: str, failure: Failure) -> Explained:
    """An `Explained` whose page is JAX's own where the error names one, else the code's."""
    return Explained(code, message, jax_page(failure) or CODES[code].url)


def jax_page(failure: Failure) -> str:
    """The page of JAX's documentation that the error's message links to, or nothing."""
    found = _PAGE.search(failure.message)
    return found.group() if found else ""


def aval(failure: Failure) -> str:
    """The abstract value that JAX's message names (`bool[]`), or nothing."""
    found = _AVAL.search(failure.message)
    return found.group(1) if found else ""


def culprits(failure: Failure) -> str:
    """The arguments that JAX says the value depends on, in backticks: "`x` and `n`", or nothing."""
    found = _CULPRITS.search(failure.message)
    if not found:
        return ""
    names = re.split(r", and |, | and ", found.group(1))
    return " and ".join(f"`{name}`" for name in names if name)


def first_paragraph(message: str) -> str:
    """The message without what JAX adds to every error (where it was traced, links)."""
    kept: list[str] = []
    for line in message.strip().splitlines():
        if _BOILERPLATE.match(line):
            break
        kept.append(line.rstrip())
    return "\n".join(kept).strip()


def is_a(failure: Failure, *names: str) -> bool:
    """Whether the exception's class, or one that it derives from, has one of these bare names."""
    classes = {failure.type, *failure.bases}
    return any(name.rpartition(".")[2] in names for name in classes)


def quoted(expression: str, fallback: str = "This value") -> str:
    """The user's expression in backticks, on one line and shortened; `fallback` when there is none."""
    text = " ".join(expression.split())
    if not text:
        return fallback
    return f"`{text if len(text) <= 60 else text[:57] + '…'}`"
