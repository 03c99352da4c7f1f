"""What `check` examined and found as a JUnit report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from jaxsight.cli.output.reports.reported import ExaminedFile, Reported, in_cell
from jaxsight.cli.output.reports.text import report, short_path
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.rules.finding import Severity
from jaxsight.text.inert import visible

_FAILS = frozenset({Severity.ERROR, Severity.WARNING})


def as_junit(reported: Sequence[Reported], examined: Sequence[ExaminedFile] = ()) -> str:
    """Return an XML document with a suite for each file.

    A finding is a test case with the name of its rule, which fails if it is an error or a warning.
    A function is one that passes, or is skipped if it was not examined.
    """
    root = ElementTree.Element("testsuites", name="jaxsight")
    paths = [*(file.path for file in examined), *(each.path for each in reported)]
    for path in dict.fromkeys(paths):
        name = visible(Path(short_path(path)).as_posix())
        suite = ElementTree.SubElement(root, "testsuite", name=name, errors="0")
        for file in (each for each in examined if each.path == path):
            for function in (*file.examined, *file.not_examined):
                case = _case(suite, function.function, file.cells, function.range.start.line)
                if not function.origin:
                    ElementTree.SubElement(case, "skipped", message=visible(function.reason))
        for each in (each for each in reported if each.path == path):
            _add_finding(suite, each)
        suite.set("tests", str(len(suite)))
        for counted, tag in (("failures", "failure"), ("skipped", "skipped")):
            suite.set(counted, str(sum(case.find(tag) is not None for case in suite)))
    for name in ("tests", "failures", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, name: str, cells: Cells, line: int) -> ElementTree.Element:
    file = suite.get("name", "")
    module = file.rpartition(".")[0].replace("/", ".")
    case = ElementTree.SubElement(
        suite, "testcase", name=visible(name), classname=module, file=file
    )
    if not cells:
        case.set("line", str(line + 1))
    return case


def _add_finding(suite: ElementTree.Element, reported: Reported) -> None:
    finding, line = reported.finding, reported.finding.range.start.line
    case = _case(suite, finding.code, reported.cells, line)
    if finding.severity in _FAILS:
        message = in_cell(reported.cells, line, finding.message.partition("\n")[0])
        result = ElementTree.SubElement(
            case, "failure", message=visible(message), type=finding.code
        )
    else:
        result = ElementTree.SubElement(case, "system-out")
    result.text = report(reported).plain
