"""Exceptions that ended a trace: which rule explains one, and what is read off JAX's messages."""

from __future__ import annotations

import re

from jaxsight.tracer.protocol import Failure

_PAGE = re.compile(r"https://docs\.jax\.dev/\S+?(?=[\s)]|\.?$)", re.MULTILINE)
_AVAL = re.compile(r"traced array with shape (\w+\[[^\]]*\])")
_CULPRITS = re.compile(r"depends on the values? of the arguments? ([^\n]*?)\.(?=\s|$)")
_BOILERPLATE = re.compile(
    r"^(The error occurred while tracing the function |See https://docs\.jax\.dev|-{20,}$|"
    r"For simplicity, JAX has removed)",
)


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


def said(failure: Failure) -> str:
    """The exception's type and its message, as Python would print them."""
    name = failure.type.removeprefix("builtins.").removeprefix("jax.errors.")
    message = first_paragraph(failure.message)
    return f"{name}: {message}" if message else name
