"""Read what rules need off the exceptions that end a trace, and off JAX's words in them."""

from __future__ import annotations

import re

from jaxsight.wire.observations import Failure

MOST = 100
"""Characters of a message."""
MOST_QUOTED = 40
"""Characters of an expression that a message quotes."""

_PAGE = re.compile(r"https://docs\.jax\.dev/\S+?(?=[\s)]|\.?$)", re.MULTILINE)
_AVAL = re.compile(r"traced array with shape (\w+\[[^\]]*\])")
_CULPRITS = re.compile(r"depends on the values? of the arguments? ([^\n]*?)\.(?=\s|$)")
_BOILERPLATE = re.compile(
    r"^(The error occurred while tracing the function |See https://docs\.jax\.dev|-{20,}$|"
    r"For simplicity, JAX has removed)",
)
_ASSIGNS = re.compile(r"(//|\*\*|<<|>>|[-+*/%@&|^])?=(?!=)")
_SENTENCE_END = re.compile(r"\.(?=\s|$)")


def jax_page(failure: Failure) -> str:
    """Return the page of JAX's documentation that the message links to, or an empty string."""
    found = _PAGE.search(failure.message)
    return found.group() if found else ""


def aval(failure: Failure) -> str:
    """Return the abstract value that the message names (`bool[]`), or an empty string."""
    found = _AVAL.search(failure.message)
    return found.group(1) if found else ""


def culprits(failure: Failure) -> str:
    """Return the arguments that the value depends on, in backticks: "`x` and `n`"."""
    found = _CULPRITS.search(failure.message)
    if not found:
        return ""
    names = re.split(r", and |, | and ", found.group(1))
    return " and ".join(f"`{name}`" for name in names if name)


def first_paragraph(message: str) -> str:
    """Return a message without what JAX adds to every error: where it was traced, links."""
    kept: list[str] = []
    for line in message.strip().splitlines():
        if _BOILERPLATE.match(line):
            break
        kept.append(line.rstrip())
    return "\n".join(kept).strip()


def first_sentence(message: str) -> str:
    """Return the first sentence of a message on one line, without its full stop."""
    line = first_paragraph(message).partition("\n")[0].strip()
    return line[: _end_of_sentence(line)].rstrip(".: ")


def is_a(failure: Failure, *names: str) -> bool:
    """Whether the exception's class, or one that it derives from, has one of these bare names."""
    classes = {failure.type, *failure.bases}
    return any(name.rpartition(".")[2] in names for name in classes)


def quoted(expression: str, fallback: str = "this value", most: int = MOST_QUOTED) -> str:
    """Return an expression in backticks, on one line and cut at `most`; else `fallback`."""
    text = " ".join(expression.split())
    return f"`{cut(text, most)}`" if text else fallback


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, which ends with `…` where it is longer."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def assigns_item(expression: str, line: str) -> bool:
    """Whether a line begins with an assignment to this expression, which is an item: `x[0] = …`."""
    target, text = ("".join(each.split()) for each in (expression, line))
    rest = text.removeprefix(target)
    return target.endswith("]") and rest != text and _ASSIGNS.match(rest) is not None


def repeated(failure: Failure) -> tuple[str, tuple[str, ...]]:
    """Return the exception's type with the beginning of its message, and the rest as a note."""
    return divided(said(failure))


def divided(text: str) -> tuple[str, tuple[str, ...]]:
    """Divide a text of any length into a message and a note, which may be missing.

    The message is the first line if it is short enough, else its first sentence. A sentence that
    is too long is cut, and the note has the whole text.
    """
    line, _, below = text.partition("\n")
    end = _end_of_sentence(line)
    if len(line.rstrip(".")) <= MOST:
        message, rest = line, below
    elif end <= MOST:
        message, rest = line[:end], f"{line[end:].lstrip('. ')}\n{below}"
    else:
        message, rest = cut(line, MOST), text
    return message.rstrip("."), (rest.strip(),) if rest.strip() else ()


def _end_of_sentence(line: str) -> int:
    found = _SENTENCE_END.search(line)
    return found.start() if found else len(line)


def said(failure: Failure) -> str:
    """Return the exception's type and its message, as Python would print them."""
    name = failure.type.removeprefix("builtins.").removeprefix("jax.errors.")
    message = first_paragraph(failure.message)
    return f"{name}: {message}" if message else name
