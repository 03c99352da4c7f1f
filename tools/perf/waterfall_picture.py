"""Draw a waterfall as SVG: bars of stages on one time axis, in the colour of their process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LEFT, _RIGHT = 900, 250, 70
_ROW, _TOP = 19, 74

# The card has its own ground, so it can be read on any page; it is dark where the system is.
_STYLE = """
  .ground { fill: #ffffff; stroke: #d0d7de }
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 14px; font-weight: 600 }
  .quiet { fill: #656d76 }
  .grid { stroke: #d8dee4 }
  .event { stroke: #cf222e; stroke-dasharray: 4 3 }
  .server { fill: #0969da } .tracer { fill: #1a7f37 } .compiler { fill: #9a6700 }
  .editor { fill: #8c959f } .extension { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #30363d }
    text { fill: #e6edf3 }
    .quiet { fill: #8b949e }
    .grid { stroke: #21262d }
    .event { stroke: #ff7b72 }
    .server { fill: #58a6ff } .tracer { fill: #3fb950 } .compiler { fill: #d29922 }
    .editor { fill: #6e7681 } .extension { fill: #a371f7 }
  }
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """The time between two marks; `process` is where it is spent."""

    process: str
    label: str
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage of a process, from `begin` to `end` in milliseconds."""

    process: str
    label: str
    begin: float
    end: float


def picture(title: str, bars: Sequence[Bar], events: Sequence[tuple[str, float]]) -> str:
    """Return an SVG with one row for each bar, and a line at the time of each event."""
    last = max([bar.end for bar in bars] + [at for _, at in events])
    height = _TOP + _ROW * len(bars) + 34
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        *_legend(dict.fromkeys(bar.process for bar in bars)),
        *_axis(last, height),
        *(part for row, bar in enumerate(bars) for part in _bar(row, bar, last)),
        *(part for name, at in events for part in _event(name, at, last, height)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(at: float, last: float) -> float:
    return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * at / last, 2)


def _legend(processes: Iterable[str]) -> Iterator[str]:
    for index, process in enumerate(processes):
        x = 16 + 90 * index
        yield f'<rect class="{process}" x="{x}" y="38" width="11" height="11" rx="2"/>'
        yield f'<text x="{x + 17}" y="48">{process}</text>'


def _axis(last: float, height: int) -> Iterator[str]:
    step = _step(last)
    for number in range(int(last / step) + 1):
        x = _x(number * step, last)
        yield f'<line class="grid" x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{height - 26}"/>'
        yield (
            f'<text class="quiet" x="{x}" y="{height - 10}" text-anchor="middle">'
            f"{number * step:g} ms</text>"
        )


def _step(last: float) -> float:
    """Return a round distance of some eight lines."""
    rough = last / 8
    power = 10 ** math.floor(math.log10(rough))
    return float(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough))


def _bar(row: int, bar: Bar, last: float) -> Iterator[str]:
    y = _TOP + _ROW * row
    begin, end = _x(bar.begin, last), _x(bar.end, last)
    width = max(round(end - begin, 2), 1.5)
    spent = (
        f"{bar.end - bar.begin:.2f}" if bar.end - bar.begin < 10 else f"{bar.end - bar.begin:.0f}"
    )
    yield f'<text x="{_LEFT - 10}" y="{y + 10}" text-anchor="end">{escape(bar.label)}</text>'
    yield f'<rect class="{bar.process}" x="{begin}" y="{y}" width="{width}" height="12" rx="2"/>'
    yield f'<text class="quiet" x="{begin + width + 5}" y="{y + 10}">{spent}</text>'


def _event(name: str, at: float, last: float, height: int) -> Iterator[str]:
    x = _x(at, last)
    yield f'<line class="event" x1="{x}" y1="{_TOP - 10}" x2="{x}" y2="{height - 26}"/>'
    yield f'<text x="{x}" y="{_TOP - 14}" text-anchor="middle">{escape(name)}</text>'
