"""assay.capture: launches written down and run again."""
import json

import numpy
import pytest
from kernels import FOLLOW, HEAD, MODULE, SCALE, scale, word

import assay
from assay.machine import Module, Storage, run


def launch_files(folder):
    return sorted(file.name for file in folder.glob("launch-*.json"))


def read(launch):
    with open(launch.file, encoding="utf-8") as file:
        return json.load(file)


def test_a_launch_runs_again_with_the_same_bits(tmp_path):
    x = numpy.linspace(-1, 1, 1000, dtype=numpy.float32)
    with assay.capture(tmp_path / "run.assay") as captured:
        scale(x, 900, 3.0)
        scale(x, 1000, 0.5)
    folder = tmp_path / "run.assay"
    assert [launch.kernel for launch in captured.kept] == ["scale", "scale"] and captured.seen == 2
    assert launch_files(folder) == ["launch-0001-scale.json", "launch-0002-scale.json"]
    for launch in captured.kept:
        assert launch.changed == ["x"] and not launch.nonfinite
        result = assay.check(launch.file)
        assert result.verdict == "pass", str(result)
    document = json.loads((folder / "launch.json").read_text())
    assert document["origin"]["number"] == 2 and document["origin"]["stack"][-1][0].endswith("kernels.py")
    assert assay.check(folder).verdict == "pass"


def test_a_capsule_whose_recorded_bits_differ_says_so(tmp_path):
    x = numpy.ones(1000, dtype=numpy.float32)
    with assay.capture(tmp_path) as captured:
        scale(x, 1000, 3.0)
    document = read(captured.kept[0])
    file = tmp_path / document["recorded"]
    content = bytearray(file.read_bytes())
    content[-4:] = numpy.float32(7).tobytes()
    file.write_bytes(content)
    assert assay.check(captured.kept[0].file).verdict != "pass"


def test_storages_are_kept_once_and_arguments_may_point_into_them(tmp_path):
    x = numpy.arange(2000, dtype=numpy.float32)
    storage = Storage.of(x, "x")
    with assay.capture(tmp_path) as captured:
        for factor in (1.0, 1.0, 1.0):  # changes nothing
            run(MODULE, "scale", grid=(8, 1, 1), block=(128, 1, 1), storages=[storage],
                arguments=[word(x.ctypes.data + 4000), word(1000, 4), numpy.float32(factor).tobytes()])  # fmt: skip
    assert len(list(tmp_path.glob("*.safetensors"))) == 1 and len(list(tmp_path.glob("*.ptx"))) == 1
    assert [launch.changed for launch in captured.kept] == [[], [], []]
    document = read(captured.kept[0])
    assert document["launches"][0]["arguments"][0] == {"pointer": "x", "offset": 4000}


def test_the_first_launch_that_makes_what_is_not_finite_is_kept(tmp_path):
    x = numpy.full(1000, 1e30, dtype=numpy.float32)
    with assay.capture(tmp_path, when="nonfinite") as captured:
        for _ in range(4):
            scale(x, 1000, 1e5)
    assert [(launch.number, launch.nonfinite) for launch in captured.kept] == [(2, ["x"])]
    result = assay.check(captured.kept[0].file)
    assert result.verdict == "finding" and "overflow" in str(result)

def test_what_was_not_finite_before_triggers_nothing(tmp_path):
    x = numpy.full(1000, numpy.nan, dtype=numpy.float32)
    with assay.capture(tmp_path, when="nonfinite") as captured:
        scale(x, 1000, 1.0)
    assert captured.kept == [] and captured.seen == 1 and launch_files(tmp_path) == []


@pytest.mark.parametrize(
    "when, kernel, numbers",
    [(3, "", [3, 6]), ("always", "scale", [1, 2, 3, 4, 5, 6]), ("always", "other", []), (lambda launch: launch.number > 5, "", [6]), ("trap", "", [])],
)
def test_triggers(tmp_path, when, kernel, numbers):
    x = numpy.ones(10, dtype=numpy.float32)
    with assay.capture(tmp_path, when, kernel=kernel) as captured:
        for _ in range(6):
            scale(x, 10)
    assert [launch.number for launch in captured.kept] == numbers


def test_a_launch_that_traps_is_kept_as_it_began(tmp_path):
    x = numpy.ones(10, dtype=numpy.float32)
    with assay.capture(tmp_path, "trap") as captured:
        scale(x, 10)
        assert scale(x, 1000).trap.kind == "out-of-bounds"
    assert [launch.number for launch in captured.kept] == [2]
    assert "out-of-bounds" in str(assay.check(captured.kept[0].file))


def test_what_cannot_be_kept_is_left_out_and_said(tmp_path):
    x = numpy.zeros(4, dtype=numpy.float32)
    table = numpy.array([0, x.ctypes.data], dtype=numpy.int64)
    with assay.capture(tmp_path) as captured:
        run(Module(HEAD + SCALE + FOLLOW), "follow", grid=(1, 1, 1), block=(1, 1, 1), arguments=[word(table.ctypes.data)],
            storages=[Storage.of(table, "table"), Storage.of(x, "x")])  # fmt: skip
    assert captured.kept == [] and captured.left_out == ["launch 1 of follow: table holds addresses"]


@pytest.mark.parametrize("when", ["sometimes", 0, -1, True, None])
def test_a_trigger_that_is_none_is_refused(tmp_path, when):
    with pytest.raises(assay.BadInput, match="capture: when"):
        assay.capture(tmp_path, when)


def test_outside_nothing_is_kept(tmp_path):
    x = numpy.ones(10, dtype=numpy.float32)
    with assay.capture(tmp_path) as captured:
        pass
    scale(x, 10)
    assert captured.seen == 0
    with pytest.raises(assay.BadInput, match="capture: /dev/null"):
        assay.capture("/dev/null/run.assay").__enter__()


def test_a_module_of_hundreds_of_variables_reads_its_own(tmp_path):
    """As CUDA's headers declare them: none lies where a tensor does."""
    declared = "".join(f".global .align 4 .u32 v{i} = {i};\n" for i in range(400))
    module = Module(
        HEAD + declared + """.visible .entry pick(.param .u64 p) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3]; ld.global.u32 %r3, [v300]; add.u32 %r2, %r2, %r3; st.global.u32 [%rd3], %r2; ret;
}
"""
    )
    x = numpy.arange(32, dtype=numpy.int32)
    with assay.capture(tmp_path) as captured:
        run(module, "pick", grid=(1, 1, 1), block=(32, 1, 1), arguments=[word(x.ctypes.data)], storages=[Storage.of(x, "x")])
    assert list(x[:3]) == [300, 301, 302]
    result = assay.check(captured.kept[0].file)
    assert result.verdict == "pass", str(result)
