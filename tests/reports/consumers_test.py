#!/usr/bin/env python3
"""What others read: JSON against its schema, JUnit and SARIF by readers that are not ours. $1: the program. 77: skipped, as a reader
is missing (pip install jsonschema junitparser sarif-pydantic)."""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

try:
    import jsonschema
    import junitparser
    import sarif_pydantic
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())


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


def check(result, junit, sarif, schema):
    validator = jsonschema.validators.validator_for(schema)(schema)
    errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(result)]
    assert not errors, errors[:5]
    findings = result["findings"] if result["kind"] == "fuzz" else [result] if result["verdict"] != "pass" else []

    suites = junitparser.JUnitXml.fromfile(str(junit))
    root = tree.parse(junit).getroot()
    cases = [case for suite in suites for case in suite]
    failed = [case for case in cases if any(isinstance(r, junitparser.Failure) for r in case.result)]
    skipped = [case for case in cases if any(isinstance(r, junitparser.Skipped) for r in case.result)]
    assert len(cases) == int(root.get("tests")) == len(root.findall(".//testcase"))
    assert len(failed) == int(root.get("failures")) == len(root.findall(".//failure"))
    assert len(skipped) == sum(int(suite.get("skipped")) for suite in root.findall("testsuite"))
    assert bool(failed) == bool(findings), [case.name for case in failed]

    document = json.loads(sarif.read_text())
    log = sarif_pydantic.Sarif.model_validate(document)
    results = log.runs[0].results
    assert len(results) == len(findings)
    for ours, theirs in zip(findings, results):
        assert ours["replay"] in theirs.message.text
        for location in theirs.locations or []:
            assert not location.physical_location.artifact_location.uri.startswith("file:")
    return cases, failed


def main():
    schema = json.loads(run("list", "schema", status=0))
    with tempfile.TemporaryDirectory() as name:
        fuzz = ["fuzz", "--cases", "6", "--seed", "1", "--db", "", "--jobs", "2"]
        cases, failed = check(*made(name, *fuzz, "gla.fused_recurrent", status=0), schema)
        assert not failed
        cases, failed = check(*made(name, *fuzz, "merge_heads.fused", "short_conv.fused", "--min-cases", "3", status=0), schema)
        assert len({case.classname for case in cases}) == 3, "two kernels and the run"
        check(*made(name, "verify", "gla.fused_recurrent@D1", "-T", "30", "-K", "16", "-V", "8", "--decay", "none", status=1), schema)
    return 0


sys.exit(main())
