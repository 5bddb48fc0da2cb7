"""assay.arithmetic: what a program's text says of its roundings."""
import pytest
from kernels import HEAD, MODULE

import assay
from assay.machine import Module

CHUNK = r"""
.visible .entry chunk() {
  .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<2>;
  .loc 1 17 3
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};
  .loc 1 20 3
  cvt.rn.bf16x2.f32 %r1, %f1, %f2;
  cvt.rn.bf16x2.f32 %r2, %f1, %f2;
  cvt.f32.bf16 %f1, %r1;
  .loc 1 25 3
  ex2.approx.ftz.f32 %f1, %f2;
  .loc 2 67 3
  shfl.sync.up.b32 %r1, %r2, 1, 0, -1;
  shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;
  .loc 1 30 3
  div.full.f32 %f1, %f2, %f3;
  ret;
}
.file 1 "/somewhere/chunk.py"
.file 2 "/somewhere/cumsum.py"
"""


def test_each_rounding_is_listed_with_its_line_and_what_has_to_cover_it():
    found = assay.arithmetic(Module(HEAD + CHUNK), "gla")
    assert found.arithmetic == "triton-chunk" and "chunk.py:17" in found.why
    assert [(row.line, row.count, row.field.split()[0]) for row in found.evidence] == [
        ("chunk.py:17", 1, "readout,"),
        ("chunk.py:20", 2, "readout,"),
        ("chunk.py:25", 1, "decay,"),
        ("cumsum.py:67", 1, "prefix_per_nat,"),
        ("chunk.py:30", 1, "divide:"),
    ]
    text = str(found)
    assert "chunk.py:17: products of matrices of bf16, summed in f32 (1 mma.sync" in text
    assert "chunk.py:20: rounded to bf16 (2 cvt.rn.bf16x2.f32)" in text


@pytest.mark.parametrize("operator, preset", [("gsa", "triton-gsa-chunk"), ("kda", "triton-kda-chunk"), (None, None), ("hgrn", None)])
def test_the_operator_chooses_the_preset(operator, preset):
    assert assay.arithmetic(Module(HEAD + CHUNK), operator).arithmetic == preset


def test_a_file_is_read_and_what_is_none_is_one_line(tmp_path):
    (tmp_path / "chunk.ptx").write_text(HEAD + CHUNK)
    assert len(assay.arithmetic(tmp_path / "chunk.ptx").evidence) == 5
    with pytest.raises(assay.BadInput, match="arithmetic: .*none.ptx: No such file"):
        assay.arithmetic(tmp_path / "none.ptx")
    with pytest.raises(assay.BadInput, match="which operator does the function compute"):
        assay.arithmetic(lambda q: q)


@pytest.mark.parametrize(
    "declared, said",
    [
        ("triton-chunk", "no launch multiplies matrices"),
        ({"preset": "fp32-recurrent", "divide": "2^-22"}, "nothing divides"),
        ({"preset": "fp32-recurrent", "prefix_per_nat": "70 * 2^-24"}, "no sums over tokens"),
        ("fp32-recurrent", ""),
    ],
)
def test_a_declaration_far_looser_than_the_program_is_said(declared, said):
    looser = assay.arithmetic(MODULE, "gla", declared=declared).looser
    assert said in looser and bool(looser) == bool(said)
    assert assay.arithmetic(Module(HEAD + CHUNK), "gla", declared=declared).looser == ""
