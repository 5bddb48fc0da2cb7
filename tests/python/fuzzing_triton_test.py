"""assay.fuzz of functions that launch Triton kernels, on the machine."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import triton_kernels as kernels  # noqa: E402

import assay  # noqa: E402
import assay.triton  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:TRITON_DEFAULT_FP_FUSION",
    "ignore:.*cases not taken", "ignore:.*not returned", "ignore:.*no gradients")


@pytest.fixture
def machine():
    with assay.triton.machine("sm_90") as machine:
        yield machine


def free(kernel, **changed):
    def softmax(x):
        out = torch.empty_like(x)
        kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out.clone()

    options = {
        "inputs": {"x": assay.tensors(("B", "N"), ("fp32", "bf16"), ("normal", "positive"))},
        "reference": lambda x: torch.softmax(x, -1),
        "sizes": {"B": [1, 3], "N": [1, 7, 64, 100, 256]},
    }
    return assay.fuzz(softmax, **{**options, "cases": 8, "seed": 3, **changed})


def test_a_right_kernel_passes_on_real_numbers_without_a_tolerance(machine):
    run = free(kernels.softmax)
    assert run.passed == run.cases == 8 and not run.unjudged, str(run)


def test_a_tail_that_is_not_masked_is_found_by_its_formula(machine):
    run = free(kernels.softmax_with_tail)
    (finding,) = run.findings
    assert finding.cause == "formula/out" and dict(finding.case.sizes)["N"] == 1, str(run)
    assert finding.verification.entry.file.endswith("triton_kernels.py")


def test_a_value_that_is_not_finite_is_named_where_it_was_born(machine):
    run = free(kernels.softmax_unshifted, inputs={"x": assay.tensors(("B", "N"), "fp32", "large")}, reference=None)
    (finding,) = run.findings
    origin = finding.verification.origin
    assert finding.cause.startswith("nonfinite/") and origin.where.file.endswith("triton_kernels.py"), str(run)
    assert origin.inputs and origin.inputs[0].element.startswith("x[")


def gated(q, k, v, g, scale):
    """One token after the other, by two launches."""
    q, k, v, g = (x.contiguous() for x in (q, k, v, g))
    o = torch.empty_like(v)
    keys = torch.empty_like(k)
    kernels.doubled_by[(1,)](k, keys, k.numel(), 1.0, BLOCK=4096)
    B, T, H, K = q.shape
    V = v.shape[-1]
    kernels.recurrence[(B * H,)](q, keys, v, g, o, scale, T, H, K, V, BLOCK_K=16, BLOCK_V=16)
    return o


OF_GLA = {
    "arithmetic": {"preset": "fp32-recurrent", "readout": "K * 2^-23"},
    "dtypes": ["fp32"],
    "sizes": {"B": [1, 2], "K": [5, 16], "V": [16], "T": [1, 16, 40]},
    "gate_min": -16,
    "seed": 1,
    "cases": 12,
    "shrink": 12,
}


def test_an_operator_by_two_launches_passes(machine):
    run = assay.fuzz("gla", gated, **OF_GLA)
    assert run.passed == run.cases == 12, str(run)
    assert run.backend == "vm sm_90"
    assert [row.checked for row in run.properties if row.name == "no-races"] != [0]


def test_what_declares_nothing_is_judged_by_what_its_launches_do(machine):
    with pytest.warns(UserWarning, match="judged as fp32-recurrent, since no launch multiplies matrices"):
        run = assay.fuzz("gla", gated, **{**OF_GLA, "arithmetic": None, "cases": 3})
    assert run.passed == run.cases == 3, str(run)


def test_an_overflow_is_traced_through_both_launches(machine):
    def grows(q, k, v, g, scale):
        return gated(q, k, v, -64 * g, scale)

    run = assay.fuzz("gla", grows, **OF_GLA)
    traced = [finding for finding in run.findings if finding.cause.startswith("nonfinite/o/exp-overflow")]
    assert traced and "triton_kernels.py" in traced[0].cause, str(run)


def test_what_the_host_makes_of_an_overflow_is_traced_to_the_launch_that_gave_it(machine):
    def state_by_host(q, k, v, g, scale):
        large = torch.empty_like(k)
        kernels.doubled_by[(1,)](k.contiguous(), large, k.numel(), 3e38, BLOCK=4096)
        B, T, H, K = q.shape
        return {"o": gated(q, k, v, g, scale), "final_state": k.new_zeros(B, H, K, v.shape[-1]) * large.sum()}

    run = assay.fuzz("gla", state_by_host, **OF_GLA)
    traced = [finding for finding in run.findings if finding.cause.startswith("nonfinite/final_state/")]
    assert traced and "triton_kernels.py" in traced[0].cause, str(run)
