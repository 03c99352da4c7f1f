"""Read what rules need from the exceptions that end a trace, and from JAX's words in them."""

from __future__ import annotations

import re

from jaxsight.rules.wording import MOST, cut
from jaxsight.text.inert import words
from jaxsight.wire.observations import Failure

_PAGE = re.compile(r"https://docs\.jax\.dev/\S+?(?=[\s)]|\.?$)", re.MULTILINE)
_AVAL = re.compile(r"traced array with shape (\w+\[[^\]]*\])")
_CULPRITS = re.compile(r"depends on the values? of the arguments? ([^\n]*?)\.(?=\s|$)")
_BOILERPLATE = re.compile(
    r"^(The error occurred while tracing the function |See https://docs\.jax\.dev|-{20,}$|"
    r"For simplicity, JAX has removed)",
)
_ASSIGNS = re.compile(r"(//|\*\*|<<|>>|[-+*/%@&|^])?=(?!=)")
_NAME = re.compile(r"[\w.<>]+")
_SENTENCE_END = re.compile(r"\.(?=\s|$)")


def jax_page(failure: Failure) -> str:
    """Return the page of JAX's documentation that the message links to, or an empty string."""
    match = _PAGE.search(failure.message)
    return match.group() if match else ""


def aval(failure: Failure) -> str:
    """Return the abstract value that the message names (`bool[]`), or an empty string."""
    match = _AVAL.search(failure.message)
    return match.group(1) if match else ""


def culprits(failure: Failure) -> str:
    """Return the arguments that the value depends on, in backticks: "`x` and `n`"."""
    match = _CULPRITS.search(failure.message)
    if not match:
        return ""
    names = re.split(r", and |, | and ", match.group(1))
    return " and ".join(f"`{name}`" for name in names if name)


def first_paragraph(message: str) -> str:
    """Return a message without what JAX adds to every error: where it was traced, links."""
    lines: list[str] = []
    for line in message.strip().splitlines():
        if _BOILERPLATE.match(line):
            break
        lines.append(line.rstrip())
    return "\n".join(lines).strip()


def first_sentence(message: str) -> str:
    """Return the first sentence of a message on one line, without its full stop."""
    line = first_paragraph(message).partition("\n")[0].strip()
    return line[: _end_of_sentence(line)].rstrip(".: ")


def is_a(failure: Failure, *names: str) -> bool:
    """Whether the exception's class, or one that it derives from, has one of these bare names."""
    classes = {failure.type, *failure.bases}
    return any(name.rpartition(".")[2] in names for name in classes)


def assigns_item(expression: str, line: str) -> bool:
    """Whether a line begins with an assignment to this expression, which is an item: `x[0] = …`."""
    target, text = ("".join(part.split()) for part in (expression, line))
    after = text.removeprefix(target)
    return target.endswith("]") and after != text and _ASSIGNS.match(after) is not None


def repeated(failure: Failure) -> tuple[str, tuple[str, ...]]:
    """Return the exception's type with the beginning of its message, and the rest as notes.

    Its words are quoted. Notes that were added to the exception come last.
    """
    begin, text = f"{name_of(failure)}: ", first_paragraph(failure.message)
    if not text:
        return name_of(failure), failure.notes
    message, notes = divided(begin + text, MOST - len("“”"))
    quoted = (words(note.removeprefix(begin)) for note in notes)
    return f"{begin}{words(message.removeprefix(begin))}", (*quoted, *failure.notes)


def divided(text: str, most: int = MOST) -> tuple[str, tuple[str, ...]]:
    """Divide a text of any length into a message and a note, which may be missing.

    The message is the first line if it is short enough, else its first sentence. A sentence that
    is too long is cut, and the note has the whole text.
    """
    line, _, below = text.partition("\n")
    end = _end_of_sentence(line)
    if len(line.rstrip(".")) <= most:
        message, note = line, below
    elif end <= most:
        message, note = line[:end], f"{line[end:].lstrip('. ')}\n{below}"
    else:
        message, note = cut(line, most), text
    return message.rstrip("."), (note.strip(),) if note.strip() else ()


def _end_of_sentence(line: str) -> int:
    match = _SENTENCE_END.search(line)
    return match.start() if match else len(line)


def said(failure: Failure) -> str:
    """Return the exception's type and its message, which is quoted."""
    message = first_paragraph(failure.message)
    return f"{name_of(failure)}: {words(message)}" if message else name_of(failure)


def name_of(failure: Failure) -> str:
    """Return the exception's type as Python would print it."""
    name = failure.type.removeprefix("builtins.").removeprefix("jax.errors.")
    return name if _NAME.fullmatch(name) else words(name)


FUNCTIONS = frozenset(
    {"function", "builtin_function_or_method", "PjitFunction", "CompiledFunction", "method",
     "partial", "ufunc", "custom_jvp", "custom_vjp"}
)  # fmt: skip
"""Classes of functions, without their modules."""


def described_type(name: str) -> str:
    """Return a class as words: `None`, `a function`, `an array`, ``a `str` ``."""
    bare = name.rpartition(".")[2]
    if bare == "NoneType":
        return "None"
    if bare in FUNCTIONS:
        return "a function"
    if bare == "ArrayImpl" or bare.endswith("Tracer"):
        return "an array"
    return f"{'an' if bare[:1].lower() in 'aeiou' else 'a'} `{bare}`"
