"""HLO and jaxprs in a page: compressed, and only as many as its size allows."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field

from jaxsight.text.inert import visible

_BEST = 9


@dataclass(slots=True)
class KeptTexts:
    """The texts of a page by a digest of their own, each kept once, until they fill it."""

    budget: int
    """Bytes that are left for them."""
    dropped: int = 0
    """Texts that were left out."""
    _numbers: dict[str, int] = field(default_factory=dict)
    _packed: list[str] = field(default_factory=list)

    def keep(self, text: str) -> int | None:
        """Return the number of a text; `None` if it is left out."""
        if text in self._numbers:
            return self._numbers[text]
        raw = zlib.compressobj(_BEST, zlib.DEFLATED, -zlib.MAX_WBITS)
        data = raw.compress(visible(text).encode("utf-8", "replace")) + raw.flush()
        packed = base64.b64encode(data).decode()
        if len(packed) > self.budget:
            self.dropped += 1
            return None
        self.budget -= len(packed)
        self._numbers[text] = len(self._packed)
        self._packed.append(packed)
        return self._numbers[text]

    @property
    def packed(self) -> list[str]:
        """The texts as base64 of raw deflate (RFC 1951), which browsers decompress."""
        return self._packed
