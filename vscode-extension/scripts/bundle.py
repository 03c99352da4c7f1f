"""Put the Python server and its dependencies into `bundled/`.

All is pure Python, so that one package serves every platform.

`python scripts/bundle.py` in the extension's folder; needs pip. The versions are those of the lock,
by their hashes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

EXTENSION = Path(__file__).resolve().parent.parent
ROOT = EXTENSION.parent
BUNDLED = EXTENSION / "bundled"
LIBRARIES = BUNDLED / "libs"
LOCK = ROOT / "requirements" / "vsix.txt"
PACKAGES = ("jaxsight", "jaxsight_source", "jaxsight_repro")
"""What an editor needs: no datasets,"""
LEFT_OUT = ("__pycache__", "cli", "cases.md", "page.md")
"""no terminal, and no pages of rules, which are on the web."""
COMPILED = ("*.so", "*.pyd", "*.dylib", "*.dll")


def main() -> None:
    """Make the folder anew."""
    shutil.rmtree(BUNDLED, ignore_errors=True)
    LIBRARIES.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    alone = ["--no-deps", "--no-compile", "--only-binary=:all:"]
    universal = ["--python-version", "3.11", "--implementation", "py", "--abi", "none"]
    pinned = ["--platform", "any", "--require-hashes", "--requirement", LOCK]
    subprocess.run([*pip, "--target", LIBRARIES, *alone, *universal, *pinned], check=True)
    copy_server(LIBRARIES)
    shutil.copy(EXTENSION / "scripts" / "start.py", BUNDLED)
    shutil.copy(ROOT / "LICENSE", EXTENSION)
    found = [str(path) for pattern in COMPILED for path in BUNDLED.rglob(pattern)]
    if found:
        sys.exit(f"These are not pure Python: {', '.join(found)}")


def copy_server(folder: Path) -> None:
    """Copy the packages of the server into a folder."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT / "server" / package, folder / package, ignore=ignored)


if __name__ == "__main__":
    main()
