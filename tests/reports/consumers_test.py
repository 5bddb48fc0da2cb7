#!/usr/bin/env python3
"""What others read, by readers that are not ours: JSON against its schema, twice; SARIF by one whose types are its schema's
(sarif-pydantic) and one that merges and counts (sarif-tools); JUnit by junitparser and against the form that Jenkins and GitLab
read. And how large it gets. $1: the program. 77: skipped, as a reader is missing (pip install jsonschema fastjsonschema junitparser
sarif-pydantic sarif-tools)."""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

try:
    import fastjsonschema
    import jsonschema
    import junitparser
    import sarif.loader
    import sarif_pydantic
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())


# Of JUnit's elements: attributes that must be there, those that may, and children.
JUNIT = {
    "testsuites": ({"tests", "failures"}, {"name", "time", "errors", "skipped", "timestamp", "disabled"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "skipped"}, {"errors", "time", "timestamp", "hostname", "id", "package", "file"},
                  {"properties", "testcase", "system-out", "system-err"}),
    "testcase": ({"name", "classname"}, {"time", "file", "line", "assertions", "status"}, {"failure", "error", "skipped", "system-out", "system-err", "properties"}),
    "failure": (set(), {"message", "type"}, set()), "error": (set(), {"message", "type"}, set()), "skipped": (set(), {"message", "type"}, set()),
    "properties": (set(), set(), {"property"}), "property": ({"name"}, {"value"}, set()),
    "system-out": (set(), set(), set()), "system-err": (set(), set(), set()),
}
MOST_BYTES_OF_REPORT, MOST_BYTES_OF_TRACE = 60_000, 1_000_000


def check_form(element):
    must, may, children = JUNIT[element.tag]
    given = set(element.attrib)
    assert must <= given <= must | may, (element.tag, given)
    for name in ("tests", "failures", "errors", "skipped"):
        assert element.get(name, "0").isdigit(), (element.tag, name)
    assert float(element.get("time", "0")) >= 0
    for child in element:
        assert child.tag in children, (element.tag, child.tag)
        check_form(child)


def run(*words, status):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done.stdout


def made(name, *words, status):
    folder = pathlib.Path(name)
    forms = ["--json", "result.json", "--junit", "junit.xml", "--sarif", "findings.sarif"]
    forms = [word if word.startswith("--") else str(folder / word) for word in forms]
    run(*words, "--backend", "vm", *forms, status=status)
    return json.loads((folder / "result.json").read_text()), folder / "junit.xml", folder / "findings.sarif"


def check(result, junit, findings_sarif, validator, compiled):
    errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(result)]
    assert not errors, errors[:5]
    compiled(result)
    findings = result["findings"] if result["kind"] == "fuzz" else [result] if result["verdict"] != "pass" else []

    suites = junitparser.JUnitXml.fromfile(str(junit))
    root = tree.parse(junit).getroot()
    check_form(root)
    cases = [case for suite in suites for case in suite]
    failed = [case for case in cases if any(isinstance(r, junitparser.Failure) for r in case.result)]
    skipped = [case for case in cases if any(isinstance(r, junitparser.Skipped) for r in case.result)]
    assert len(cases) == int(root.get("tests")) == len(root.findall(".//testcase"))
    assert len(failed) == int(root.get("failures")) == len(root.findall(".//failure"))
    assert len(skipped) == sum(int(suite.get("skipped")) for suite in root.findall("testsuite"))
    assert bool(failed) == bool(findings), [case.name for case in failed]

    document = json.loads(findings_sarif.read_text())
    log = sarif_pydantic.Sarif.model_validate(document)
    results = log.runs[0].results
    assert len(results) == len(findings)
    for ours, theirs in zip(findings, results):
        assert ours["replay"] in theirs.message.text
        for location in theirs.locations or []:
            assert not location.physical_location.artifact_location.uri.startswith("file:")
    assert sarif_tool_count(findings_sarif) == len(findings)
    return cases, failed


def sarif_tool_count(path):
    return sarif.loader.load_sarif_file(str(path)).get_result_count()


def check_sizes(name, result, failing):
    """Of a run in which every kernel has findings, and of a trace with more instances than its JSON lists."""
    many = dict(result, kernels=[f"kernel{i}" for i in range(40)])
    many["findings"] = [dict(failing, kernel=kernel, token=f"{failing['token']}/{i}") for kernel in many["kernels"] for i in range(4)]
    folder = pathlib.Path(name)
    (folder / "many.json").write_text(json.dumps(many))
    run("report", str(folder / "many.json"), "--out", str(folder / "many"), status=0)
    size = (folder / "many" / "report.md").stat().st_size
    assert 10_000 < size <= MOST_BYTES_OF_REPORT, size
    trace = folder / "trace.json"
    run("trace", "gla.fused_recurrent", "-T", "40", "-K", "16", "-V", "8", "--decay", "mild", "--element", "o[0,39,0,0]", "--backend", "vm", "--json", str(trace), status=0)
    assert json.loads(trace.read_text())["slice"]["nodes_left_out"] > 0
    # What else a defect's trace holds: its findings and their explanation.
    for path, least in (trace, 300_000), (folder / "result.json", 10_000):
        assert least < path.stat().st_size <= MOST_BYTES_OF_TRACE, (path, path.stat().st_size)


def main():
    schema = json.loads(run("list", "schema", status=0))
    readers = jsonschema.validators.validator_for(schema)(schema), fastjsonschema.compile(schema)
    with tempfile.TemporaryDirectory() as name:
        fuzz = ["fuzz", "--cases", "6", "--seed", "1", "--db", "", "--jobs", "2"]
        clean = made(name, *fuzz, "gla.fused_recurrent", status=0)
        cases, failed = check(*clean, *readers)
        assert not failed
        cases, failed = check(*made(name, *fuzz, "merge_heads.fused", "short_conv.fused", "--min-cases", "3", status=0), *readers)
        assert len({case.classname for case in cases}) == 3, "two kernels and the run"
        failing = made(name, "verify", "gla.fused_recurrent@D1", "-T", "30", "-K", "16", "-V", "8", "--decay", "none", status=1)
        check(*failing, *readers)
        check_sizes(name, clean[0], failing[0])
    return 0


sys.exit(main())
