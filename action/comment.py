"""Write the comparison as one comment on a pull request: first a new one, later the same one.

It is recognized by a mark that is not shown. Of the standard library only: it runs with the
runner's Python. A token that may not write, as that of a pull request from a fork, is no error: the
job's summary has the report, too.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

MARK = "<!-- jaxsight -->"
LONGEST = 65_000
"""Characters: GitHub takes 65,536."""
_PAGE = 100
NOTHING = "jaxsight diff: no functions to compare\n"


def main() -> int:
    """Write the comment, and return the exit status."""
    report = Path(os.environ["REPORT"]).read_text(encoding="utf-8")
    if len(report) > LONGEST:
        report = report[:LONGEST].rpartition("\n")[0] + "\n\nand more: see the job's summary\n"
    body = f"{MARK}\n{report or NOTHING}"
    repository = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    try:
        number = _own_comment(f"{repository}/{int(os.environ['NUMBER'])}/comments")
        if number is None and not report:
            return 0  # there is nothing to compare, and never was
        if number is None:
            _ask("POST", f"{repository}/{int(os.environ['NUMBER'])}/comments", {"body": body})
        else:
            _ask("PATCH", f"{repository}/comments/{number}", {"body": body})
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403):
            raise
        print("::notice title=jaxsight::no comment: the token may not write; see the summary")
    return 0


def _own_comment(path: str) -> int | None:
    """Return the number of the comment of an earlier run, if there is one."""
    page = 1
    while True:
        comments = _ask("GET", f"{path}?per_page={_PAGE}&page={page}")
        for comment in comments:
            # Anyone can write the mark: only a bot's comment is ours to change.
            if comment["body"].startswith(MARK) and comment["user"]["type"] == "Bot":
                return int(comment["id"])
        if len(comments) < _PAGE:
            return None
        page += 1


def _ask(method: str, path: str, content: object = None):
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        data=None if content is None else json.dumps(content).encode(),
        method=method,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    raise SystemExit(main())
