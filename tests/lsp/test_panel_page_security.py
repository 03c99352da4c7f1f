"""Who gets the panel's page, and from whom it takes messages: one browser of this user alone."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.lsp.browser import Browser
from tests.lsp.client import Client
from tests.lsp.test_panel_page import browser, introduce, open_panel


@pytest.fixture
async def page(client: Client) -> Browser:
    await introduce(client)
    return await browser(client)


async def status(page: Browser, path: str = "", **headers: str) -> int:
    return (await page.get(path, **headers)).status


async def test_a_link_works_once_and_is_not_the_address_of_the_page(client: Client) -> None:
    await introduce(client)
    link = (await open_panel(client))["url"]
    page = await Browser.opening(link)
    path = link.removeprefix(page.origin)
    assert await status(page, path) == 410
    assert await status(page, page.path) == 200
    assert path.rpartition("/")[2] not in page.path, "who sees the link has no way to the page"
    assert len(page.path) > 40


async def test_old_links_that_nobody_used_stop_working(client: Client) -> None:
    await introduce(client)
    links = [(await open_panel(client))["url"] for _ in range(20)]
    assert len(set(links)) == 20
    page = await Browser.opening(links[-1])
    assert await status(page, links[0].removeprefix(page.origin)) == 410


async def test_only_this_machine_can_connect(page: Browser) -> None:
    for host in ("0.0.0.0", "127.0.0.2", "::1"):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, page.port)
            there = writer.get_extra_info("peername")
            writer.close()
            assert there[0] == "127.0.0.1", host


async def test_nothing_is_served_without_the_secret(page: Browser) -> None:
    for path in (
        "/",
        "//",
        "/socket",
        "/x/socket",
        "/x/",
        page.path[:-2] + "/",
        f"{page.path}../",
        f"/x{page.path}",
        f"{page.path}page.html",
        f"{page.path}%2e%2e/etc/passwd",
        f"http://127.0.0.1:{page.port}{page.path}",
        "/open/",
        f"/open{page.path}",
    ):
        assert await status(page, path) in (403, 404, 410), path


async def test_a_name_that_resolves_to_this_machine_is_not_served(page: Browser) -> None:
    for host in ("evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "[::1]:{}", ""):
        assert await status(page, Host=host.format(page.port)) == 421, host
        assert await page.upgrade(Host=host.format(page.port)) == 421, host


async def test_two_hosts_are_one_too_many(page: Browser) -> None:
    good = f"Host: 127.0.0.1:{page.port}\r\n"
    request = f"GET {page.path} HTTP/1.1\r\n{good}Host: evil.example\r\n\r\n"
    assert (await page.raw(request.encode())).status == 421


async def test_both_names_of_this_machine_are_served(page: Browser) -> None:
    host = f"localhost:{page.port}"
    assert await status(page, Host=host) == 200
    assert await page.upgrade(Host=host, Origin=f"http://{host}") == 101
    assert await page.upgrade(Host=host) == 403, "the origin is that of the other name"


async def test_other_pages_get_no_socket(page: Browser) -> None:
    for origin in ("http://evil.example", "null", "https://127.0.0.1:{}", "http://127.0.0.1:1", ""):
        assert await page.upgrade(Origin=origin.format(page.port)) == 403, origin


async def test_other_pages_fetch_nothing_but_may_open_it(page: Browser) -> None:
    for site in ("cross-site", "same-site"):
        assert await status(page, Sec_Fetch_Site=site) == 403
        assert await page.upgrade(Sec_Fetch_Site=site) == 403
        for destination, found in (("document", 200), ("iframe", 403)):
            fetched = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": destination}
            assert await status(page, Sec_Fetch_Site=site, **fetched) == found
            assert await page.upgrade(Sec_Fetch_Site=site, **fetched) == 403
    assert await status(page, Origin="http://evil.example") == 403


async def test_no_answer_allows_other_origins(page: Browser) -> None:
    for response in (
        await page.get(),
        await page.get("/"),
        await page.get(f"{page.path}socket", Origin="http://evil.example"),
    ):
        assert not [name for name in response.headers if name.startswith("Access-Control")]
        assert response.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_page_runs_its_own_script_and_connects_to_its_server_alone(page: Browser) -> None:
    html = (await page.get()).body.decode()
    policy = html.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert "unsafe-inline" not in rules["script-src"]
    assert "http" not in policy


async def test_what_is_no_request_is_refused(page: Browser) -> None:
    for request in (
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/3\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"OPTIONS / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
    ):
        # It closes the connection at once, or says first why.
        with contextlib.suppress(ConnectionResetError, asyncio.IncompleteReadError):
            assert (await page.raw(request)).status in (400, 405, 413, 431, 501), request
    assert await status(page) == 200
    assert await page.upgrade() == 101
    assert await page.upgrade(Upgrade="") == 426
