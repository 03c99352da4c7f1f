"""Draws counts as bars, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

_WIDTH, _LEFT, _RIGHT = 720, 210, 76
_ROW, _TOP, _BAR = 20, 46, 13

# The picture has its own ground, so it can be read on any page; it is dark where the system is.
_STYLE = """
  .ground { fill: #ffffff; stroke: #d0d7de }
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 14px; font-weight: 600 }
  .quiet { fill: #656d76 }
  .bar { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #30363d }
    text { fill: #e6edf3 }
    .quiet { fill: #8b949e }
    .bar { fill: #58a6ff }
  }
"""


def bars(title: str, counts: Mapping[str, int]) -> str:
    """Return an SVG with a bar for each count, in the given order."""
    height = _TOP + _ROW * len(counts) + 12
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        *_rows(counts),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rows(counts: Mapping[str, int]) -> Iterator[str]:
    most = max(counts.values(), default=1)
    for row, (name, count) in enumerate(counts.items()):
        y = _TOP + _ROW * row
        width = round((_WIDTH - _LEFT - _RIGHT) * count / most, 1)
        yield (
            f'<text class="quiet" x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">'
            f"{escape(name)}</text>"
        )
        yield f'<rect class="bar" x="{_LEFT}" y="{y}" width="{width}" height="{_BAR}" rx="2"/>'
        yield f'<text x="{_LEFT + width + 6}" y="{y + 11}">{count:,}</text>'
