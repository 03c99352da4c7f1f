"""Who gets the panel's page, and from whom it takes messages: one browser of this user alone."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from tests.lsp.browser import Browser
from tests.lsp.client import Client
from tests.lsp.test_panel_page import browser, introduce, open_panel
from tests.lsp.test_requests import URI

PANEL = json.dumps({"method": "jaxsight/panel", "params": {"uri": URI, "function": "f"}}).encode()


@pytest.fixture
async def page(client: Client) -> Browser:
    await introduce(client)
    return await browser(client)


async def status(page: Browser, path: str = "", **headers: str) -> int:
    return (await page.get(path, **headers)).status


async def posted(page: Browser, body: bytes = PANEL, **headers: str) -> int:
    return (await page.post(body, **headers)).status


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
        "/events",
        "/requests",
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
        assert await status(page, path) in (404, 410), path


async def test_a_name_that_resolves_to_this_machine_is_not_served(page: Browser) -> None:
    for host in ("evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "[::1]:{}", ""):
        assert await status(page, Host=host.format(page.port)) == 421, host
        assert await posted(page, Host=host.format(page.port)) == 421, host


async def test_two_hosts_are_one_too_many(page: Browser) -> None:
    good = f"Host: 127.0.0.1:{page.port}\r\n"
    request = f"GET {page.path} HTTP/1.1\r\n{good}Host: evil.example\r\n\r\n"
    assert (await page.raw(request.encode())).status == 421


async def test_both_names_of_this_machine_are_served(page: Browser) -> None:
    host = f"localhost:{page.port}"
    assert await status(page, Host=host) == 200
    assert await posted(page, Host=host, Origin=f"http://{host}") == 200
    assert await posted(page, Host=host) == 403, "the origin is that of the other name"


async def test_other_pages_post_nothing(page: Browser) -> None:
    for origin in ("http://evil.example", "null", "https://127.0.0.1:{}", "http://127.0.0.1:1", ""):
        assert await posted(page, Origin=origin.format(page.port)) == 403, origin


async def test_other_pages_fetch_nothing_but_may_open_it(page: Browser) -> None:
    for site in ("cross-site", "same-site"):
        assert await status(page, Sec_Fetch_Site=site) == 403
        assert await posted(page, Sec_Fetch_Site=site) == 403
        for destination, found in (("document", 200), ("iframe", 403)):
            fetched = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": destination}
            assert await status(page, Sec_Fetch_Site=site, **fetched) == found
            assert await posted(page, Sec_Fetch_Site=site, **fetched) == 403
    assert await status(page, Origin="http://evil.example") == 403


async def test_forms_of_other_pages_have_another_type(page: Browser) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert await posted(page, Content_Type=kind) == 415
    assert await posted(page, Content_Type="application/json; charset=utf-8") == 200


async def test_no_answer_allows_other_origins(page: Browser) -> None:
    asked = {"Access_Control_Request_Method": "POST", "Origin": "http://evil.example"}
    preflight = await page.ask("OPTIONS", f"{page.path}requests", **asked)
    assert preflight.status == 403
    for response in (preflight, await page.get(), await page.get("/")):
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
    for request, found in (
        (b"\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/3\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1000 + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n", 431),
    ):
        with contextlib.suppress(ConnectionResetError):  # it does not read all of the last
            assert (await page.raw(request)).status == found
    assert await status(page) == 200


async def test_bodies_have_a_length_and_a_limit(page: Browser) -> None:
    assert await posted(page, Content_Length="") == 411
    assert await posted(page, Content_Length="-1") == 411
    assert await posted(page, Content_Length="x") == 411
    assert await posted(page, Content_Length="9" * 5000) == 413
    assert await posted(page, Content_Length=str(2**21)) == 413
    assert await posted(page, Transfer_Encoding="chunked") == 400
    assert (await page.ask("PUT", page.path, Origin=page.origin)).status == 405


async def test_connections_have_a_limit_and_come_free(page: Browser) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", page.port) for _ in range(40)]
    with contextlib.suppress(ConnectionResetError):  # it does not read what it refuses
        assert await status(page) == 503
    for _, writer in idle:
        writer.close()
    async with asyncio.timeout(30):
        served = False
        while not served:
            with contextlib.suppress(ConnectionResetError):
                served = await status(page) == 200
