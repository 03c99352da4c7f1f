"""Hooks of MkDocs: pages of rules and tables of rules and fixes come from the rules' folders.

The marks of lines in `reading.md` become links.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from jaxsight.features.fixes.verifier import FIXES
from jaxsight.rules import RULES, documentation


def on_config(config: Any) -> Any:
    """Add the rules' pages to the navigation, below the index of rules."""
    for entry in config.nav:
        if isinstance(entry, dict) and "Rules" in entry:
            entry["Rules"] += [
                {f"{rule.code} {rule.name}": f"rules/{rule.code}.md"} for rule in RULES.values()
            ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the rules' pages."""
    for rule in RULES.values():
        name = f"rules/{rule.code}.md"
        files.append(File.generated(config, name, content=documentation.page(rule)))
    picture = Path(config.config_file_path).with_name("vscode-extension") / "pictures/kernels.png"
    files.append(File.generated(config, "pictures/editor.png", content=picture.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put the tables where the pages ask for them."""
    return markdown.replace("<!-- all rules -->", documentation.table()).replace(
        "<!-- all fixes -->", _fixes()
    )


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Link each mark in a section's code (`①`) to the next of its kind, the last to the first."""
    if page.file.src_uri != "reading.md":
        return html
    sections = re.split(r"(?=<h2 )", html)
    return "".join(_linked(section, f"line-{number}") for number, section in enumerate(sections))


def _linked(section: str, prefix: str) -> str:
    code = re.compile(r"<pre>.*?</pre>", re.DOTALL)
    marks = re.compile("[①-⑳]")
    totals = Counter(marks.findall("".join(code.findall(section))))
    seen = Counter[str]()

    def link(mark: re.Match[str]) -> str:
        name = f"{prefix}-{ord(mark[0]) - ord('①') + 1}"
        here, seen[mark[0]] = seen[mark[0]], seen[mark[0]] + 1
        following = seen[mark[0]] % totals[mark[0]]
        return f'<a id="{name}-{here}" href="#{name}-{following}">{mark[0]}</a>'

    return code.sub(lambda block: marks.sub(link, block[0]), section)


def _fixes() -> str:
    rows = (f"| [{code}](rules/{code}.md) | {remedy.summary} |" for code, remedy in FIXES.items())
    return "\n".join(("| rule | what is written |", "|---|---|", *rows))
