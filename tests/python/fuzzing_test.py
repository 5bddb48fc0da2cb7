"""assay.fuzz: functions of NumPy, judged as kernels are."""
import warnings

import numpy
import pytest

import assay

OPTIONS = {"arithmetic": "fp32-recurrent", "cases": 24, "seed": 1, "max_K": 24, "max_V": 24, "tensors": "numpy"}
QUIET = pytest.mark.filterwarnings("ignore:.*carry no gradients", "ignore:.*cases not taken")


def gla(q, k, v, g=None, initial_state=None, scale=None, cu_seqlens=None):
    """The recurrence in fp32."""
    (B, T, H, K), V = q.shape, v.shape[-1]
    q, k, v = (x.astype(numpy.float32) for x in (q, k, v))
    bounds = [0, T] if cu_seqlens is None else list(cu_seqlens)
    sequences = [(b, 0, T) for b in range(B)] if cu_seqlens is None else [(0, *s) for s in zip(bounds, bounds[1:])]
    S = numpy.zeros((len(sequences), H, K, V), numpy.float32) if initial_state is None else initial_state.copy()
    o = numpy.zeros((B, T, H, V), numpy.float32)
    for n, (b, first, end) in enumerate(sequences):
        for t in range(first, end):
            decay = 1 if g is None else numpy.exp(g[b, t])[:, :, None]
            S[n] = S[n] * decay + k[b, t][:, :, None] * v[b, t][:, None, :]
            o[b, t] = numpy.einsum("hk,hkv->hv", q[b, t] * numpy.float32(scale), S[n])
    return o, S


def fuzz(fn, **changed):
    return assay.fuzz("gla", fn, **{**OPTIONS, **changed})


@QUIET
def test_a_right_function_passes_with_all_of_its_inputs():
    run = fuzz(gla)
    assert run.cases == 24 and run.passed == 24 and not run.findings, str(run)
    assert str(run).rstrip().endswith("seed 1")
    packed = [row for row in run.coverage if row.feature == "packed" and row.value == "yes"]
    assert packed and packed[0].cases > 0


@QUIET
def test_a_wrong_one_is_found_shrunk_and_replayed():
    def late(q, k, v, g=None, initial_state=None, scale=None):
        o, state = gla(q, k, v, g, initial_state, scale)
        return o[:, :] * numpy.where(numpy.arange(o.shape[1]) > 4, 1.01, 1)[None, :, None, None].astype(numpy.float32), state

    run = fuzz(late)
    (finding,) = [v for v in run.findings if v.cause.startswith("violation/o")]
    assert finding.case.T <= 16 and finding.case.T > 5
    again = assay.replay(finding.token, late, op="gla", arithmetic="fp32-recurrent", tensors="numpy")
    assert again.verdict == "finding" and again.cause.startswith("violation/o"), str(again)
    assert f'assay.replay("{finding.token}", late, op="gla"' in finding.replay


@QUIET
def test_what_is_not_returned_is_not_judged_and_that_is_said():
    with pytest.warns(UserWarning, match="final_state is not returned"):
        run = fuzz(lambda q, k, v, g=None, scale=None: gla(q, k, v, g, None, scale)[0], cases=4, name="o")
    assert {row.output for row in run.tightness} <= {"o"}
    assert not run.findings


@QUIET
def test_names_and_layouts_are_mapped():
    def heads_first(queries, keys, values, decay, factor):
        assert queries.flags.c_contiguous and queries.shape[1] in (1, 3)
        turned = [x.transpose(0, 2, 1, 3) for x in (queries, keys, values, decay)]
        o, state = gla(*turned, scale=factor)
        return {"final_state": state, "o": o.transpose(0, 2, 1, 3)}

    names = {"q": "queries", "k": "keys", "v": "values", "g": "decay", "scale": "factor"}
    run = fuzz(heads_first, names=names, layout="heads-first", sizes={"H": [3]})
    assert run.passed == run.cases == 24, str(run)
    subject = assay.subject("gla", names=names, layout="heads-first", sizes={"H": [3]}, **OPTIONS)(heads_first)
    assert assay.fuzz(subject, cases=4).kernels == ["heads_first"]


@QUIET
def test_a_case_that_it_does_not_take_is_left_out():
    def short(q, k, v, g=None, scale=None):
        if q.shape[1] > 100:
            raise assay.Refused("at most 100 tokens")
        return gla(q, k, v, g, None, scale)

    run = fuzz(short)
    (row,) = [row for row in run.coverage if row.feature.startswith("rejected")]
    assert row.cases > 0 and not run.findings
    with pytest.raises(assay.BadInput, match="never: ValueError: not today"):
        fuzz(never)


def never(q, k, v, g=None):
    raise ValueError("not today")


@QUIET
def test_what_it_raises_later_is_a_finding():
    def fragile(q, k, v, g=None, scale=None):
        if q.shape[1] % 64 not in (0, 1):
            raise IndexError("past the end\nsecond line\nof the last block")
        return gla(q, k, v, g, None, scale)

    run = fuzz(fragile)
    (finding,) = run.findings
    assert finding.trap.kind == "raised" and finding.trap.where.file == __file__
    assert finding.trap.message == "IndexError: past the end .. of the last block"
    assert finding.case.T in (0, 1, 2, 3)


def test_a_case_without_tokens_that_it_cannot_take_is_left_out():
    def shaped(q, k, v, g=None, scale=None):
        if q.shape[1] == 0:
            raise IndexError("cannot reshape")
        return gla(q, k, v, g, None, scale)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not fuzz(shaped, cases=48).findings
    assert any("not taken: a tensor without elements: IndexError: cannot reshape" in str(line.message) for line in said)


def test_an_input_that_it_changes_is_a_finding():
    def greedy(q, k, v, g=None, scale=None):
        result = gla(q, k, v, g, None, scale)
        q *= 0
        return result

    with pytest.warns(UserWarning):
        run = fuzz(greedy)
    assert any("inputs-unchanged" in line for finding in run.findings for line in finding.properties_failed)


@pytest.mark.parametrize(
    "fn, options, line",
    [
        (lambda q, k, v, g: None, {}, "returned nothing; gla has o, final_state"),
        (lambda q, k, v, g: 3.0, {}, "o is a float, no tensor"),
        (lambda q, k, v, g: q[:, :1], {}, r"o: \[B 1, T 64, H 2, V 64\] was expected, the function gave"),
        (lambda q, k, v, g: v.astype(numpy.int32), {}, "o: fp32 was expected, or what holds more; the function gave i32"),
        (lambda q, k, v, g: v.astype(numpy.float16), {"dtypes": ["fp32"]}, "o: fp32 was expected"),
        (lambda q, k, v, g: (v, v, v), {}, "returned 3 values; gla has o, final_state"),
        (lambda q, k, v, g: {"out": v}, {}, "returned out; gla has o, final_state"),
        (lambda q, k, v, g, mask: v, {}, "gla has nothing for its parameter mask"),
        (lambda q, k, values: values, {}, "no parameter for gla's v"),
        (lambda q, k, v, g: v, {"names": {"w": "g"}}, "names: gla has no argument w"),
        (lambda q, k, v, g: v, {"layout": {"q": "BTK"}}, "layout of q: BTK"),
        (lambda q, k, v, g: v, {"arithmetic": "no-such"}, "no arithmetic preset is called"),
        (lambda q, k, v, g: v, {"backend": "tpu"}, "backend: tpu"),
        (lambda q, k, v, g: v, {"directions": "backward"}, "carry no gradients"),
        (lambda q, k, v, g, initial_state=None: int("one"), {}, "ValueError: invalid literal"),
        ("gla", {}, "a function was expected, not str"),
    ],
)
def test_what_does_not_fit_is_one_line(fn, options, line):
    with pytest.raises(assay.BadInput, match=line) as told:
        fuzz(fn, **{**options, "max_K": 64, "max_V": 64})
    assert "\n" not in str(told.value)


def test_a_fault_of_its_own_is_raised_as_it_is():
    def fails(q, k, v, g):
        return q.no_such_method()

    with pytest.raises(AttributeError, match="no_such_method"):
        fuzz(fails)


def test_an_interrupt_ends_the_run():
    calls = []

    def interrupted(q, k, v, g=None, scale=None):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return gla(q, k, v, g, None, scale)

    with pytest.raises(KeyboardInterrupt):
        fuzz(interrupted, cases=0, time=60)
    assert len(calls) == 5


def softmax(x):
    """The row's own largest first."""
    shifted = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


FREE = {"inputs": {"x": assay.tensors(("B", "N"), "fp32")}, "tolerance": 2.0**-18, "cases": 20, "seed": 2, "tensors": "numpy"}


def test_a_function_without_an_operator_is_held_against_its_reference():
    run = assay.fuzz(softmax, reference=softmax, **FREE)
    assert run.passed == run.cases == 20 and not run.findings, str(run)

    def padded(x):
        wide = numpy.zeros((x.shape[0], -(-x.shape[1] // 16) * 16), numpy.float32)
        wide[:, : x.shape[1]] = x
        return softmax(wide)[:, : x.shape[1]]

    run = assay.fuzz(padded, reference=softmax, **FREE)
    (finding,) = run.findings
    assert finding.cause == "violation/out" and dict(finding.case.sizes)["N"] == 1, str(run)
    again = assay.replay(str(finding.case), padded, reference=softmax, **{k: FREE[k] for k in ("inputs", "tolerance", "tensors")})
    assert again.cause == finding.cause


def test_how_far_outputs_are_from_the_reference_is_said_where_nothing_judges_it():
    def coarse(x):
        return ((x * 3).view(numpy.uint32) & numpy.uint32(0xFFFFE000)).view(numpy.float32)  # the bits of tf32

    options = {"inputs": {"x": assay.tensors(("N",), "fp32", "normal")}, "reference": lambda x: 3 * x, "cases": 4, "seed": 1, "tensors": "numpy"}
    run = assay.fuzz(coarse, **options)
    error, dtype = run.errors["out"]
    assert dtype == "fp32" and 2.0**-13 < error < 2.0**-7 and "products in tf32 or 16 bits" in str(run)
    fine = assay.fuzz(lambda x: x * numpy.float32(3), **options)
    assert fine.errors["out"][0] < 2.0**-21 and "products in tf32" not in str(fine)
    assert not assay.fuzz(coarse, tolerance=1.0, **options).errors


def test_rows_below_zero_are_drawn():
    """A maximum with the zero of masked lanes in it."""
    run = assay.fuzz(lambda x: numpy.maximum(x.max(keepdims=True), 0), inputs={"x": assay.tensors(("N",))}, tolerance=1e-6, tensors="numpy",
        reference=lambda x: x.max(keepdims=True), sizes={"N": [64]}, cases=24, seed=1)  # fmt: skip
    assert run.findings and "negative" in str(run.findings[0].case)


def test_values_that_nothing_can_judge_are_said():
    run = assay.fuzz(softmax, reference=softmax, **{**FREE, "tolerance": None})
    assert run.unjudged == run.cases == 20 and "not judged" in str(run)


@pytest.mark.parametrize(
    "options, line",
    [
        ({"reference": lambda x: x[:1, :1]}, "out: the reference gives"),
        ({"reference": lambda x: {"y": x}}, "the reference gives y, and the function does not"),
        ({"inputs": {"x": ("B", "N")}}, "inputs: x: a strategy was expected"),
        ({"inputs": {"x": assay.tensors((3,), "bf16")}}, "bf16"),
    ],
)
def test_what_does_not_fit_without_an_operator_is_one_line(options, line):
    with pytest.raises(assay.BadInput, match=line):
        assay.fuzz(softmax, **{**FREE, **options})
