"""assay.results: the schema as dataclasses."""
import dataclasses
import json
import pathlib
import pickle
import subprocess
import sys

import numpy
from kernels import scale

from assay import results

ROOT = pathlib.Path(__file__).resolve().parents[2]


def verification():
    x = numpy.full(1000, 3e38, dtype=numpy.float32)
    return scale(x, 1000, factor=10, checks="all", repeats=True, origins=True).verification


def test_the_file_is_what_the_schema_says():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_results.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_class_of_the_schema_is_a_dataclass_with_its_fields():
    schema = json.loads((ROOT / "reports" / "schema.json").read_text())
    for row in schema["oneOf"]:
        name = row["$ref"].rsplit("/", 1)[1]
        made = getattr(results, "".join(part.capitalize() for part in name.split("_")))
        named = {key for key, _ in made._kinds().values()}
        assert named == set(schema["$defs"][name]["properties"])
        assert {field.name for field in dataclasses.fields(made)} == set(made._kinds())


def test_a_result_becomes_json_and_comes_back():
    v = verification()
    assert v.verdict == "finding" and isinstance(v.checks, results.Checks)
    again = results.Verification.from_json(json.loads(json.dumps(v.to_json())))
    assert again.to_json() == v.to_json()


def test_a_result_pickles():
    v = verification()
    assert pickle.loads(pickle.dumps(v)).to_json() == v.to_json()


def test_a_field_that_only_another_version_knows_is_left_out():
    document = verification().to_json()
    document["of_tomorrow"] = 1
    del document["repeats"]
    assert results.Verification.from_json(document).repeats == []


def test_what_a_document_lacks_is_not_written_as_null():
    document = verification().to_json()
    for fields in ({"source_shape": "x = y"}, {}):
        document.pop("source_shape", None)
        document.update(fields)
        assert results.Verification.from_json(document).to_json() == document
