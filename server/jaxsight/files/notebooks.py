"""The code of notebooks, as files on disk have it; an editor sends the cells of open ones."""

from __future__ import annotations

import json
from typing import Any

from jaxsight.text.magics import without_magics

ENDING = ".ipynb"


def cells(content: str) -> list[str]:
    """Return the Python cells of a notebook's file, without magics; none of something else."""
    try:
        notebook: Any = json.loads(content)
        sources = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return []
    texts = ("".join(map(str, source)) for source in sources if isinstance(source, list | str))
    return [without_magics(text.replace("\r\n", "\n").replace("\r", "\n")) for text in texts]


def text(content: str) -> str:
    """Return all cells as one text, as the engine has those of an open notebook."""
    return "".join(f"{cell}\n" for cell in cells(content))
