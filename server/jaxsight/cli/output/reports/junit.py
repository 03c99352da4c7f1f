"""What `check` examined as a JUnit report: a test case for each function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from jaxsight.cli.output.reports.reported import ExaminedFile, Reported, enclosing_function, in_cell
from jaxsight.cli.output.reports.text import report, short_path
from jaxsight.rules.finding import Severity
from jaxsight.text.inert import visible

_FAILS = frozenset({Severity.ERROR, Severity.WARNING})


def as_junit(reported: Sequence[Reported], examined: Sequence[ExaminedFile] = ()) -> str:
    """Return an XML document with a suite for each file.

    A function fails with its errors and warnings, is skipped if it was not examined, and passes
    otherwise. A finding outside of these functions is a test case with the name of its rule.
    """
    root = ElementTree.Element("testsuites", name="jaxsight")
    for path in dict.fromkeys(
        [*(each.path for each in examined), *(each.path for each in reported)]
    ):
        cases = _Cases(path)
        for file in examined:
            if file.path == path:
                cases.add_functions(file)
        for each in reported:
            if each.path == path:
                cases.add_finding(each)
        root.append(cases.suite())
    for name in ("tests", "failures", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


class _Cases:
    """The test cases of a file, by name."""

    def __init__(self, path: str) -> None:
        self._path = visible(Path(short_path(path)).as_posix())
        self._cases: dict[str, ElementTree.Element] = {}
        self._findings: dict[str, list[Reported]] = {}

    def add_functions(self, file: ExaminedFile) -> None:
        for function in (*file.examined, *file.not_examined):
            line = 0 if file.cells else function.range.start.line + 1
            case = self._case(function.function, line)
            if not function.origin:
                ElementTree.SubElement(case, "skipped", message=visible(function.reason))

    def add_finding(self, reported: Reported) -> None:
        name = enclosing_function(reported)
        while name and name not in self._cases:
            name = name.rpartition(".")[0].removesuffix(".<locals>")
        name = name or reported.finding.code
        line = 0 if reported.cells else reported.finding.range.start.line + 1
        self._case(name, line)
        self._findings.setdefault(name, []).append(reported)

    def suite(self) -> ElementTree.Element:
        """Return the suite, with at most one failure in each case, as the schema has it."""
        for name, findings in self._findings.items():
            failing = [each for each in findings if each.finding.severity in _FAILS]
            kind = "failure" if failing else "system-out"
            case = self._cases[name]
            for skipped in case.findall("skipped") if failing else ():
                case.remove(skipped)
            result = ElementTree.SubElement(case, kind)
            if failing:
                first = failing[0]
                message = first.finding.message.partition("\n")[0]
                place = in_cell(first.cells, first.finding.range.start.line, message)
                more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
                result.set("message", visible(f"{place}{more}"))
                result.set("type", first.finding.code)
            result.text = "\n".join(report(each).plain for each in findings)
        suite = ElementTree.Element("testsuite", name=self._path)
        suite.extend(self._cases.values())
        suite.set("tests", str(len(self._cases)))
        for counted, tag in (("failures", "failure"), ("skipped", "skipped")):
            suite.set(counted, str(sum(case.find(tag) is not None for case in suite)))
        suite.set("errors", "0")
        return suite

    def _case(self, name: str, line: int) -> ElementTree.Element:
        if name not in self._cases:
            module = self._path.rpartition(".")[0].replace("/", ".")
            case = ElementTree.Element(
                "testcase", name=visible(name), classname=module, file=self._path
            )
            if line:
                case.set("line", str(line))
            self._cases[name] = case
        return self._cases[name]
