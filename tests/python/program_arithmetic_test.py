"""What is judged by when a function declares no arithmetic."""
import pytest
from kernels import HEAD, MODULE

from assay import program_arithmetic
from assay.machine import Module

PRODUCT = r"""
.visible .entry product() {
  .reg .b32 %r<9>; .reg .f32 %f<9>;
  .loc 1 17 3
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};
  .loc 1 18 3
  ret;
}
.file 1 "/somewhere/chunk.py"
"""


def test_launches_that_multiply_matrices_are_judged_as_chunks_with_the_line():
    said = program_arithmetic.of("gla", [MODULE, Module(HEAD + PRODUCT)])
    assert said["arithmetic"] == "triton-chunk"
    assert said["why"].startswith("judged as triton-chunk, since matrices of bf16 are multiplied at chunk.py:17")


def test_others_are_judged_token_by_token_with_gradients_of_gates_as_sums():
    said = program_arithmetic.of("rwkv6", [MODULE])
    assert said["arithmetic"]["preset"] == "fp32-recurrent" and "gate_sums" in said["arithmetic"]["backward"]
    assert "no launch multiplies matrices" in said["why"]


@pytest.mark.parametrize("operator, preset", [("kda", "triton-kda-chunk"), ("delta_rule", "triton-delta-chunk"), ("gsa", "triton-gsa-chunk")])
def test_delta_rules_and_slots_are_judged_by_their_own_presets(operator, preset):
    assert program_arithmetic.of(operator, [Module(HEAD + PRODUCT)])["arithmetic"] == preset


def test_delta_rules_token_by_token_store_what_they_write_for_gradients():
    said = program_arithmetic.of("delta_rule", [MODULE])["arithmetic"]
    assert said["preset"] == "fp32-recurrent" and said["backward"]["state"]["write"].startswith("u")


@pytest.mark.parametrize("operator, modules", [("gla", []), ("delta_rule", []), ("hgrn", [Module(HEAD + PRODUCT)]), ("gsa", [MODULE])])
def test_where_no_preset_is_whole_nothing_is_said(operator, modules):
    assert program_arithmetic.of(operator, modules) == {}
