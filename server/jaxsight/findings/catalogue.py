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
    severity: str = "error"
    """`error`, `warning`, `information` or `hint`."""
    on: bool = True
    """Whether it is reported unless `select` says otherwise."""

    @property
    def url(self) -> str:
        """The code's own page."""
        return f"{PAGES}{self.code}/"


CODES = {
    code.code: code
    for code in (
        Code("JX101", "captured-constant", "A large array is captured by closure.", "warning"),
        Code("JX102", "folded-while-compiling", "XLA computes this while it compiles.", "warning"),
        Code("JX103", "folded-constant", "A folded constant lies in the executable.", "warning"),
        Code(
            "JX104",
            "regular-constant",
            "A captured array has a rule that would make it.",
            "information",
        ),
        Code("JX201", "tiny-reduction", "A reduction over a tiny axis ends a kernel.", "warning"),
        Code(
            "JX202",
            "fusion-barrier",
            "An operation that nothing fuses with ends a kernel.",
            "information",
            on=False,
        ),
        Code(
            "JX203",
            "fft-layout",
            "An FFT over axes that are not the last ones is transposed around.",
            "warning",
        ),
        Code(
            "JX204",
            "loop-invariant-temporary",
            "A large array that is cheap to make is kept through a loop.",
            "warning",
        ),
        Code(
            "JX205",
            "stored-subexpression",
            "A cheap intermediate is stored for several kernels.",
            "hint",
        ),
        Code(
            "JX206",
            "parallel-branches",
            "Independent branches have large temporaries at once.",
            "information",
        ),
        Code(
            "JX207",
            "short-loop",
            "A short loop of one kernel would fuse if it were unrolled.",
            "information",
        ),
        Code(
            "JX208",
            "meshgrid",
            "A grid is stored that could be computed where it is used.",
            "information",
            on=False,
        ),
        Code("JX209", "unrolled-loop", "A Python loop was unrolled into many copies.", "warning"),
        Code("JX210", "tiny-launches", "A loop launches many tiny kernels.", "warning"),
        Code(
            "JX211", "scatter-contention", "Many additions are scattered to few places.", "warning"
        ),
        Code("JX212", "batched-cond", "A `cond` under `vmap` runs all its branches.", "warning"),
        Code(
            "JX301",
            "weak-typed-output",
            "A result has a weak type: fed back, it compiles again.",
            "information",
        ),
        Code(
            "JX302",
            "unhashable-static-argument",
            "An unhashable value is given as a static argument.",
        ),
        Code(
            "JX303",
            "jit-made-again",
            "A jitted function is made anew, and compiled, each time.",
            "warning",
        ),
        Code(
            "JX304", "truncated-to-32-bit", "A 64-bit type is asked for and not given.", "warning"
        ),
        Code(
            "JX305",
            "reduced-precision",
            "A float32 product is computed with less precision.",
            "hint",
            on=False,
        ),
        Code(
            "JX306",
            "compiled-again",
            "A call has a function compiled for many types or values.",
            "warning",
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
        Code("JX405", "nan", "A NaN appears, or hides in the gradient of a `where`.", "warning"),
        Code(
            "JX406",
            "reverse-mode-through-while",
            "Reverse-mode differentiation meets a loop of unknown length.",
        ),
        Code("JX407", "unusable-donation", "A donated buffer fits no result.", "warning"),
        Code("JX408", "residuals", "Much is kept for the backward pass.", "information"),
        Code("JX409", "peak-memory", "What takes the most memory at once.", "information"),
        Code(
            "JX410",
            "large-intermediate",
            "An intermediate is much larger than inputs and outputs.",
            "hint",
            on=False,
        ),
        Code(
            "JX411",
            "sharding",
            "Shardings do not match, or the compiler communicates on its own.",
            "warning",
        ),
        Code("JX412", "dead-equation", "A result is computed that nobody uses.", "hint", on=False),
        Code(
            "JX413", "miscompiled", "This version of jaxlib compiles the program wrongly.", "error"
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
        Code(
            "JX910", "unused-ignore", "A `# jaxsight: ignore` that leaves nothing out.", "warning"
        ),
        Code(
            "JX911",
            "unused-nested-example",
            "Example inputs of a nested function that no trace calls.",
            "information",
        ),
        Code(
            "JX912",
            "import-differs",
            "A function traces to a different program when its module is imported.",
        ),
        Code(
            "JX913",
            "import-not-verified",
            "Functions could not be verified by importing their module.",
            "information",
        ),
        Code(
            "JX914",
            "too-large",
            "A file or a statement is too large to be analyzed.",
            "information",
        ),
    )
}


def ignored(code: str, prefixes: tuple[str, ...]) -> bool:
    """Whether one of the prefixes is of the code; `ALL` is of every code."""
    return any(p == "ALL" or code.startswith(p) for p in prefixes)


def selected(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    """Whether `code` is reported: the longest matching prefix of either list decides, as in ruff; `ALL` matches every code.

    Without `select` those are reported that are on by default.
    """

    def longest(prefixes: tuple[str, ...]) -> int:
        lengths = [
            0 if p == "ALL" else len(p) for p in prefixes if p == "ALL" or code.startswith(p)
        ]
        return max(lengths, default=-1)

    chosen = longest(select) if select else (0 if CODES[code].on else -1)
    return chosen >= 0 and chosen > longest(ignore)
