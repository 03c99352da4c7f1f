"""`jaxsight/panel`: what it names, and of what it is told; `tests/e2e` has what is drawn."""

from __future__ import annotations

import pytest

from jaxsight.events import Refresh
from tests.lsp.client import Client, ResponseError, at, recorded, span
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
PATH = "/home/user/project/sample.py"


async def test_panel_names_the_function_its_documents_and_what_to_choose_from(
    client: Client,
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, '"😋"; def f(): pass\n')
    params = {"uri": URI, "position": at(0, 10)}
    shown = await client.request("jaxsight/panel", params)
    assert shown["function"] == "f"
    assert shown["range"] == span(0, 10, 11), "in the client's units"
    assert (shown["set"], shown["sets"]) == ("", ["", "decode"])
    assert shown["target"] == "tpu:v9"
    assert shown["targets"][:2] == ["tpu:v9", "cpu"], "the one in use, and those that are ready"
    assert shown["documents"]["jaxpr"] == "jaxsight-jaxpr:/home/user/project/sample.py/f.jaxpr"
    compiled = {"hlo", "hlo-metadata", "kernels"}
    assert set(shown["documents"]) == {"jaxpr", "stablehlo", "lax", "pretty", *compiled}
    assert (shown["drawn"], shown["trouble"]) == (None, "no compiler")
    by_name = await client.request("jaxsight/panel", {"uri": URI, "function": "f"})
    assert by_name == shown


async def test_panel_is_empty_where_there_is_no_function(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "x = 1\n")
    assert await client.request("jaxsight/panel", {"uri": URI, "position": at(0, 0)}) is None
    gone = {"uri": "file:///home/user/project/gone.py", "function": "f"}
    assert await client.request("jaxsight/panel", gone) is None


async def test_panel_of_nothing_is_refused(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    for position in ({}, {"position": at(-1, 0)}, {"position": at(0, 2**31)}):
        with pytest.raises(ResponseError) as error:
            await client.request("jaxsight/panel", {"uri": URI, **position})
        assert error.value.code == -32602


async def test_panel_hears_of_new_answers_about_its_file_alone(
    client: Client, session: FakeSession
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    await client.request("jaxsight/panel", {"uri": URI, "function": "f"})
    session.events.put_nowait(Refresh("/another.py"))
    session.events.put_nowait(Refresh(PATH))
    assert await client.heard("jaxsight/panelRefresh") == [{"uri": URI}]


async def test_a_sweep_is_curves_and_a_table_and_before_it_what_may_be_swept(
    client: Client,
) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    asked = {"uri": URI, "function": "f"}
    first = await client.request("jaxsight/sweep", {**asked, "sizes": ""})
    assert (first["suggested"], first["sizes"], first["picture"]) == ("B=1..64", ["B", "D"], None)
    swept = await client.request(
        "jaxsight/sweep", {**asked, "sizes": "B=1..4 D=8", "figure": "kernels"}
    )
    assert swept["picture"] == {
        "title": "f",
        "width": 720,
        "height": 400,
        "shapes": [{"tag": "circle", "attributes": {"cx": "1"}, "text": "f: kernels"}],
    }
    assert (swept["columns"], swept["rows"]) == (["B"], [["B=1..4"], ["D=8"]])
    assert (swept["remarks"], swept["trouble"]) == (["!"], "")


async def test_a_sweep_of_nothing_is_refused(client: Client) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "def f(): pass\n")
    asked = {"uri": URI, "function": "f", "sizes": "B=1"}
    for params in ({"uri": URI}, {**asked, "figure": "beauty"}, {**asked, "figure": 3}):
        with pytest.raises(ResponseError) as error:
            await client.request("jaxsight/sweep", params)
        assert error.value.code == -32602
    gone = {**asked, "uri": "file:///home/user/project/gone.py"}
    assert await client.request("jaxsight/sweep", gone) is None
