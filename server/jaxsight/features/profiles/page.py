"""The report of a profile as a page for a browser, without scripts or anything from elsewhere."""

from __future__ import annotations

from html import escape

from jaxsight.features.profiles.report import ProfileReport
from jaxsight.text.inert import one_line

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem } h2 { font-size: 1.05rem; margin-top: 2rem }
table { border-collapse: collapse; font: 13px/1.6 ui-monospace, monospace }
td, th { padding: 0 .8rem 0 0; text-align: left; white-space: pre } th { font-weight: normal }
.r { text-align: right } th, p { opacity: .7 }
"""


_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)
"""Texts of a profile are of unknown origin: nothing may be loaded or run."""


def page(made: ProfileReport) -> str:
    """Return a report as HTML."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        _POLICY,
        f"<title>{_text(made.title)}</title><style>{_STYLE}</style>",
        f"<h1>{_text(made.title)}</h1>",
        f"<p>{_text(made.recorded)}</p>",
    ]
    for section in made.sections:
        parts.append(f"<h2>{_text(section.title)}</h2><table>")
        for tag, row in (("th", section.columns), *(("td", row) for row in section.rows)):
            cells = (
                f"<{tag}{' class=r' if side == 'r' else ''}>{_text(cell)}</{tag}>"
                for cell, side in zip(row, section.sides, strict=True)
            )
            parts.append(f"<tr>{''.join(cells)}</tr>")
        parts.append("</table>")
        if section.more:
            parts.append(f"<p>and {section.more} more</p>")
    parts += [f"<p>{_text(note)}</p>" for note in made.notes]
    return "\n".join([*parts, "</html>", ""])


def _text(text: str) -> str:
    return escape(one_line(text))
