"""No module of the package speaks to a network."""

from __future__ import annotations

from collections.abc import Iterator

from tools.lint.checkout import Checkout, Offender

CLIENTS = ("urllib.request", "http.client", "requests", "httpx", "ftplib", "smtplib")


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield imports of clients."""
    for module in checkout.modules:
        for line, imported in module.imports():
            if f"{imported}.".startswith(tuple(f"{client}." for client in CLIENTS)):
                yield Offender(module.path, line, f"imports `{imported}`, a client of a network")
