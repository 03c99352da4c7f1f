"""The whole page of a run."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from jaxsight.files import reading
from jaxsight.runs.collected import RunProcess, RunSummary
from jaxsight.runs.merging import CompiledFunction
from jaxsight.runs.page import sections
from jaxsight.runs.page.markup import KeptTexts, Markup, element, joined

LARGEST = 2_000_000
"""Bytes of a page at most: it can be attached to an issue, and mailed."""
_FOR_TEXTS = 1_100_000
_FOR_PROGRAMS = 700_000
"""Bytes for the texts and for the programs, a choice; 200,000 are left for all the rest."""
_HERE = Path(__file__).parent


def document(
    run: RunSummary, processes: Sequence[RunProcess], functions: Sequence[CompiledFunction]
) -> str:
    """Return a run as a page of HTML, of at most `LARGEST` bytes.

    The programs that took longest come first; what is left out, is said.

    Args:
        run: the run.
        processes: those that imported JAX.
        functions: what they compiled (`merged`).
    """
    own = [each for each in functions if not _is_operation(each)]
    texts = KeptTexts(_FOR_TEXTS)
    listed = sections.function_list(own, texts, len(processes), _FOR_PROGRAMS)
    style = reading.text(_HERE / "style.css")
    script = reading.text(_HERE / "script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    began = datetime.fromtimestamp(run.began).strftime("%Y-%m-%d %H:%M")
    errors = dict.fromkeys(error for process in processes for error in process.errors)
    main = element(
        "main",
        sections.figures(run, processes, own),
        *(element("p", f"internal error: {error}", class_="error") for error in errors),
        _search(),
        sections.process_table(processes),
        sections.recompilations(own),
        listed,
        sections.operations([each for each in functions if _is_operation(each)]),
    )
    packed = Markup(json.dumps(texts.packed).replace("<", "\\u003c"))
    dropped = "Texts of programs that took less time are left out." if texts.dropped else None
    return "<!doctype html>\n" + element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name="referrer", content="no-referrer"),
            element("title", f"Compiled by {' '.join(run.command)}"[:200]),
            element("style", Markup(style)),
        ),
        element(
            "body",
            element("header", sections.about(run, processes), element("p", began)),
            main,
            element("footer", element("p", dropped)) if dropped else None,
            element("script", packed, type="application/json", id="texts"),
            element("script", Markup(script)),
        ),
        lang="en",
    )


def _is_operation(function: CompiledFunction) -> bool:
    """Return whether a function is JAX's own."""
    return function.programs[0].first.library in ("jax", "jaxlib")


def _search() -> Markup:
    return joined(
        element(
            "p",
            element("label", "Search ", for_="search"),
            element("input", id="search", type="search", autocomplete="off"),
            " ",
            element("span", id="found", role="status"),
            class_="search",
            hidden=True,
        )
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
