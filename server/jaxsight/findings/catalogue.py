"""The codes that this version can report: one table, from which select/ignore, the docs' index and the links come."""

from __future__ import annotations

from dataclasses import dataclass

PAGES = "https://jaxsight.readthedocs.io/en/latest/diagnostics/"


@dataclass(frozen=True, slots=True)
class Code:
    """A stable code, its name in kebab case, and one line that says what it is about."""

    code: str
    name: str
    summary: str

    @property
    def url(self) -> str:
        """The code's own page."""
        return f"{PAGES}{self.code}/"


CODES = {
    code.code: code
    for code in (
        Code(
            "JX302",
            "unhashable-static-argument",
            "An unhashable value is given as a static argument.",
        ),
        Code("JX400", "trace-error", "The function cannot be traced with its example inputs."),
        Code(
            "JX401",
            "traced-value-used-as-python-value",
            "A traced value is used where Python or NumPy needs to know it.",
        ),
        Code("JX402", "leaked-tracer", "A traced value is used outside the function that made it."),
        Code("JX403", "key-reused", "A PRNG key is used twice."),
        Code("JX404", "index-out-of-bounds", "A static index is out of bounds."),
        Code("JX405", "nan-encountered", "A NaN appears while the function runs."),
        Code(
            "JX406",
            "reverse-mode-through-while",
            "Reverse-mode differentiation meets a loop of unknown length.",
        ),
        Code(
            "JX501",
            "contract",
            "An `Expect` line of the docstring does not hold on its target.",
        ),
        Code("JX900", "settings", "A setting of the project is wrong."),
        Code("JX901", "malformed-example", "A line of the example inputs cannot be read."),
        Code("JX902", "unknown-dtype", "A dtype that neither JAX nor NumPy knows."),
        Code(
            "JX903",
            "unknown-argument",
            "An example for a parameter that the function does not have.",
        ),
        Code("JX904", "missing-argument", "A parameter without default has no example."),
        Code(
            "JX905",
            "example-does-not-evaluate",
            "The expression of an example input raises an error.",
        ),
        Code("JX906", "unknown-size", "A size that `where` and the settings do not define."),
        Code(
            "JX907",
            "conflicting-example",
            "An argument, a size or a set is given twice, or two sizes disagree.",
        ),
        Code("JX908", "malformed-expect", "An `Expect` line cannot be read."),
        Code("JX909", "bad-project-example", "An entry of `[tool.jaxsight.examples]` is wrong."),
    )
}


def selected(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    """Whether `code` is reported: the longest matching prefix of either list decides, as in ruff; `ALL` matches every code."""

    def longest(prefixes: tuple[str, ...]) -> int:
        lengths = [
            0 if p == "ALL" else len(p) for p in prefixes if p == "ALL" or code.startswith(p)
        ]
        return max(lengths, default=-1)

    chosen = longest(select) if select else 0
    return chosen >= 0 and chosen > longest(ignore)
