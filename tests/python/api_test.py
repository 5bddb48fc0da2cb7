"""reference, verify, inspect, trace, check, replay."""
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import warnings

import numpy
import pytest
from kernels import HEAD, MODULE, SCALE

import assay

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["ASSAY_BUILD"]) / "src" / "cli" / "assay"
SIZES = {"B": 1, "T": 20, "H": 2, "HV": 2, "HQ": 2, "K": 16, "V": 8, "D": 8, "M": 4, "N": 1, "H*V": 16, "W": 4}
TOKEN = "gla.chunk/B1/T20/H1/K16/V16/bf16/g-fp32/none/s1"


def drawn(shape, seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def gla(**changed):
    """Inputs of gla: B=1, T=20, H=2, K=16, V=8."""
    tensors = {
        "q": drawn((1, 20, 2, 16), 1),
        "k": drawn((1, 20, 2, 16), 2),
        "v": drawn((1, 20, 2, 8), 3),
        "g": -abs(drawn((1, 20, 2, 16), 4)),
    }
    return {**tensors, **changed}


def whole_numbers():
    """Inputs of linear_attn whose outputs are whole numbers, and these."""
    generator = numpy.random.default_rng(5)
    q, k = (generator.integers(-3, 4, (1, 20, 2, 16)).astype(numpy.float32) for _ in range(2))
    v = generator.integers(-3, 4, (1, 20, 2, 8)).astype(numpy.float32)
    state, o = numpy.zeros((2, 16, 8)), numpy.zeros((1, 20, 2, 8))
    for t in range(20):
        state += numpy.einsum("hk,hv->hkv", k[0, t], v[0, t])
        o[0, t] = numpy.einsum("hk,hkv->hv", q[0, t], state)
    return {"q": q, "k": k, "v": v, "scale": 1.0}, o, state[None]


def operators():
    if not PROGRAM.exists():
        return []
    rows = json.loads(subprocess.run([PROGRAM, "list", "operators", "--json"], capture_output=True, check=True).stdout)
    return rows["rows"]


def test_a_reference_is_exact_where_the_mathematics_is():
    tensors, o, state = whole_numbers()
    exact = assay.reference("linear_attn", **tensors)
    assert exact.scale == 1 and exact.o.axes == ("B", "T", "H", "V")
    assert (exact["o"].mid == o).all() and (exact.final_state.mid == state).all()
    assert (exact.o.rad <= 2.0**-40 * abs(o)).all()
    assert "linear_attn" in str(exact) and "linear_attn" in exact._repr_html_()
    assert (pickle.loads(pickle.dumps(exact)).o.mid == o).all()
    with pytest.raises(AttributeError):
        exact.p


@pytest.mark.parametrize("row", operators(), ids=lambda row: row["operator"])
def test_every_operator_has_a_reference(row):
    tensors = {}
    for name, axes, absent in re.findall(r"(\w+)\[([^]]*)\](\?)?", row["inputs (? optional)"]):
        if absent and name not in ("g", "w"):
            continue
        shape = tuple(SIZES[axis] for axis in axes.split(","))
        tensors[name] = -abs(drawn(shape)) if name in ("g", "w") else abs(drawn(shape)) / 4
    exact = assay.reference(row["operator"], **tensors)
    assert list(exact.outputs) == re.findall(r"(\w+)\[", row["outputs"])
    for output in exact.outputs.values():
        assert output.undecided == "" and numpy.isfinite(output.rad).all()


def test_gradients_are_given_where_a_cotangent_is():
    exact = assay.reference("gla", **gla(), do=drawn((1, 20, 2, 8), 9))
    assert list(exact.outputs) == ["dq", "dk", "dv", "dg"]
    both = assay.reference("gla", **gla(), do=drawn((1, 20, 2, 8), 9), direction="both")
    assert list(both.outputs) == ["o", "final_state", "dq", "dk", "dv", "dg"]


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def views(x):
    """The same values, lying elsewhere and otherwise."""
    wide = numpy.full((*x.shape[:-1], 3 * x.shape[-1]), numpy.nan, dtype=x.dtype)
    wide[..., 1::3] = x
    backwards = x[:, ::-1].copy()[:, ::-1]
    heads_first = x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
    return [wide[..., 1::3], backwards, heads_first, OnlyDlpack(heads_first), OnlyDlpack(wide[..., 1::3])]


def test_strides_and_owners_of_memory_change_no_value():
    tensors = gla()
    plain = assay.reference("gla", **tensors)
    for view in views(tensors["q"]):
        other = assay.reference("gla", **{**tensors, "q": view})
        assert (other.o.mid == plain.o.mid).all() and (other.o.rad == plain.o.rad).all()


def test_fp64_is_rounded_and_that_is_said():
    tensors = gla()
    plain = assay.reference("gla", **tensors)
    with pytest.warns(assay.Rounded, match="q: rounded from fp64 to fp32, 0 of 640 values changed"):
        same = assay.reference("gla", **{**tensors, "q": tensors["q"].astype(numpy.float64)})
    assert (same.o.mid == plain.o.mid).all() and len(same.notes) == 1
    with pytest.warns(assay.Rounded) as said:
        coarse = assay.reference("gla", **tensors, dtype="bf16")
    assert [str(w.message).split(",")[0] for w in said] == [f"{x}: rounded from fp32 to bf16" for x in "qkv"]
    assert (coarse.o.mid != plain.o.mid).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assay.reference("gla", **tensors, dtype="fp32")


def test_outputs_that_are_right_pass_and_one_wrong_element_is_found():
    tensors = gla()
    exact = assay.reference("gla", **tensors)
    o = exact.o.mid.astype(numpy.float32)
    right = assay.verify("gla", outputs={"o": o, "final_state": exact.final_state.mid}, **tensors)
    assert right.verdict == "pass" and [x.name for x in right.outputs] == ["o", "final_state"]
    o[0, 7, 1, 3] += 1
    wrong = assay.verify("gla", outputs={"o": o}, **tensors)
    assert wrong.verdict == "finding" and wrong.outputs[0].violation == 1
    assert wrong.outputs[0].worst.element == "o[b=0,t=7,h=1,v=3]"
    assert "o[b=0,t=7,h=1,v=3]" in str(wrong) and wrong.cause == "violation/o"


def test_what_was_computed_instead_is_named():
    tensors = gla()
    exact = assay.reference("gla", **tensors, scale=1.0)
    wrong = assay.verify("gla", outputs={"o": exact.o.mid.astype(numpy.float32)}, **tensors)
    assert wrong.verdict == "finding" and wrong.diagnosis[0].cause == "scale-missing"
    assert assay.verify("gla", outputs={"o": exact.o.mid}, **tensors, diagnose=False).diagnosis == []


def test_the_arithmetic_is_whose_it_is_said_to_be():
    tensors = gla()
    exact = assay.reference("gla", **tensors)
    off = exact.o.mid * (1 + 1e-4)
    judged = {
        name: assay.verify("gla", outputs={"o": off}, arithmetic=arithmetic, diagnose=False, **tensors)
        for name, arithmetic in {
            "numbers": {"readout": 2e-4},
            "expressions": {"readout": "K * 2^-24"},
            "preset": "fp32-recurrent",
            "kernel": "gla.fused_recurrent",
        }.items()
    }
    assert {name: v.verdict for name, v in judged.items()} == {
        "numbers": "pass",
        "expressions": "finding",
        "preset": "finding",
        "kernel": "finding",
    }
    assert judged["expressions"].arithmetic == "readout K * 2^-24"
    assert judged["kernel"].arithmetic.startswith("as gla.fused_recurrent: ")


def test_a_kernel_runs_on_the_machine():
    with pytest.warns(assay.Rounded):
        ran = assay.verify("gla.chunk", **gla(), dtype="bf16")
    assert ran.verdict == "pass" and ran.backend == "vm sm_90" and ran.lane_instructions > 0
    assert assay.verify("gla.chunk", **gla(), arch="sm_80").backend == "vm sm_80"


def test_inputs_out_of_the_domain_are_said_to_be():
    v = assay.verify("gla.chunk", **gla(g=abs(drawn((1, 20, 2, 16)))))
    assert v.verdict == "domain" and "out of the domain of gla.chunk" in str(v)


def test_what_stands_behind_an_element_is_traced():
    behind = assay.trace(TOKEN, element="o[0,3,0,1]")
    assert behind.slice is not None and "behind o[b=0,t=3,h=0,v=1]" in str(behind)


def test_what_tensors_hold_is_said():
    k = drawn((1, 20, 2, 16), 2)
    k[0, 1, 0, 5] = numpy.nan
    inspection = assay.inspect(**gla(k=k), nothing=None)
    assert inspection.tensors["k"].nan.count == 1 and inspection.tensors["k"].nan.first == [0, 1, 0, 5]
    assert inspection.operators[0].operator == "gla" and inspection.operators[0].fits
    assert "fits gla  B=1 T=20 H=2 K=16 V=8" in str(inspection)
    assert inspection._repr_html_().startswith("<pre") and pickle.loads(pickle.dumps(inspection)) == inspection


def test_a_token_is_replayed_as_the_command_line_does(tmp_path):
    if not PROGRAM.exists():
        pytest.skip("the program is not built")
    ran = subprocess.run(
        ["assay", "replay", TOKEN, "--backend", "vm", "--json", tmp_path / "v.json"],  # found by PATH: named so in its lines
        env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    document = json.loads((tmp_path / "v.json").read_text())
    assert str(assay.results.Verification.from_json(document)) == ran.stdout
    own = assay.replay(TOKEN)
    assert own.verdict == document["verdict"] and own.token == TOKEN
    assert [o.to_json() for o in own.outputs] == document["outputs"]


def test_a_result_is_a_page_in_a_notebook():
    v = assay.verify("gla.chunk", **gla())
    page = v._repr_html_()
    assert page.startswith("<iframe srcdoc=") and "gla.chunk" in page
    assert pickle.loads(pickle.dumps(v)) == v


def test_a_launch_file_is_checked(tmp_path):
    (tmp_path / "scale.ptx").write_text(HEAD + SCALE)
    document = {
        "ptx": "scale.ptx",
        "sizes": {"n": 100, "more": {"value": 0, "from": 0, "to": 1}},
        "tensors": {"x": {"dtype": "fp32", "shape": ["n"], "values": "normal"}},
        "launches": [{"function": "scale", "grid": 8, "block": 128, "arguments": ["x", {"i32": "n + more"}, {"f32": 2}]}],
    }
    (tmp_path / "scale.json").write_text(json.dumps(document))
    right = assay.check(tmp_path / "scale.json")
    assert right.verdict == "pass" and {s.name: s.value for s in right.program.sizes} == {"n": 100, "more": 0}
    wrong = assay.check(tmp_path / "scale.json", ptx=[tmp_path / "scale.ptx"], sizes={"more": 1})
    assert wrong.verdict == "finding" and wrong.trap.kind == "out-of-bounds"
    assert "replay: assay check " in str(wrong) and "--size more=1" in str(wrong)
    held = assay.check(tmp_path / "scale.json", expect={"x": numpy.zeros(100, dtype=numpy.float32)}, tolerance=0.1)
    assert held.verdict == "finding"
    with pytest.raises(assay.BadInput, match="no_such"):
        assay.check(tmp_path / "scale.json", sizes={"no_such": 1})


def test_a_launch_on_arrays_is_checked(tmp_path):
    x = numpy.ones((10, 100), dtype=numpy.float32)
    arguments = [x, 1000, 2.0]
    right = assay.check(MODULE, entry="scale", grid=(8, 1, 1), block=(128, 1, 1), arguments=arguments)
    assert right.verdict == "pass" and (x == 2).all()
    arguments[1] = 1001
    wrong = assay.check(MODULE, entry="scale", grid=(8, 1, 1), block=(128, 1, 1), arguments=arguments)
    assert wrong.trap.kind == "out-of-bounds" and "p[10,100]" in wrong.trap.message.replace(" ", "")
    (tmp_path / "part.ptx").write_text(HEAD + SCALE)
    assay.check(tmp_path / "part.ptx", grid=(1, 1, 1), block=(128, 1, 1), arguments=[x[1:2, 50:], 50, 3.0])
    assert (x[1, 50:] == 6).all() and (x[1, :50] == 2).all()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda: assay.reference("gal", **gla()), "gal"),
        (lambda: assay.reference("gla", q=drawn((1, 20, 2, 16))), "no tensor 'k'"),
        (lambda: assay.reference("gla", **gla(), x=drawn((2,))), "x"),
        (lambda: assay.reference("gla", **gla(v=drawn((1, 21, 2, 8)))), "expected"),
        (lambda: assay.reference("gla", **gla(v=drawn((1, 20, 2, 8)).astype(numpy.int16))), "int16"),
        (lambda: assay.reference("gla", **gla(v=drawn((1, 20, 2, 8)).astype(numpy.complex64))), "complex64"),
        (lambda: assay.reference("gla", **gla(v="v")), "v: a str is no tensor"),
        (lambda: assay.reference("gla", **gla(v=[1.0])), "v: a list is no tensor"),
        (lambda: assay.reference("gla", **gla(v=numpy.float32(3))), "v"),
        (lambda: assay.reference("gla", **gla(), direction="sideways"), "sideways"),
        (lambda: assay.reference("gla", **gla(), layout="sideways"), "sideways"),
        (lambda: assay.reference("gla", **gla(), dtype="fp13"), "fp13"),
        (lambda: assay.reference("gla", **gla(), precision=2.0), "precision"),
        (lambda: assay.reference("gla", **gla(), gamma=3.0), "gamma"),
        (lambda: assay.reference("gla", **gla(), cu_seqlens=[0, 30]), "cu_seqlens"),
        (lambda: assay.verify("gla", **gla()), "give outputs"),
        (lambda: assay.verify("gla", outputs={}, **gla()), "none is given"),
        (lambda: assay.verify("gla", outputs={"p": drawn((1,))}, **gla()), "p"),
        (lambda: assay.verify("gla", outputs={"o": drawn((1, 20, 2, 9))}, **gla()), "o: expected"),
        (lambda: assay.verify("gla", outputs={"q": drawn((1,))}, **gla()), "twice"),
        (lambda: assay.verify("gla", outputs={"o": drawn((1, 20, 2, 8))}, arithmetic="mine", **gla()), "mine"),
        (lambda: assay.verify("gla", outputs={"o": drawn((1, 20, 2, 8))}, arithmetic={"a": 1}, **gla()), '"a"'),
        (lambda: assay.verify("gla.chunky", **gla()), "chunky"),
        (lambda: assay.verify("gla.chunk", **gla(), checks="all of them"), "all of them"),
        (lambda: assay.trace("gla", **gla()), "name a kernel"),
        (lambda: assay.trace("gla.chunk", **gla(), element="p[0]"), "p"),
        (lambda: assay.replay("gla.chunk/B1/nonsense"), "nonsense"),
        (lambda: assay.replay(TOKEN, arch="sm_10"), "sm_10"),
        (lambda: assay.inspect(q=1.0), "q"),
        (lambda: assay.check("no/such/file.json"), "no/such/file.json"),
        (lambda: assay.check(MODULE, arguments=[]), "entry None"),
        (lambda: assay.check("no/such.ptx", arguments=[1]), "no/such.ptx: cannot be opened"),
        (lambda: assay.check("no/such.ptx"), "does not say what to launch"),
        (lambda: assay.check(MODULE, entry="scale", arguments=[]), "0 arguments"),
        (lambda: assay.check(MODULE, entry="scale", arguments=[drawn((1,)), 1.5, 1]), "n: a float"),
        (lambda: assay.check(MODULE, entry="scale", arguments=[drawn((1,)), drawn((1,)), 1]), "n: a tensor"),
    ],
)
def test_bad_input_is_one_line_that_says_what(what, said):
    with pytest.raises(assay.BadInput) as raised:
        what()
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_progress_is_told_and_what_it_raises_ends_the_call():
    lines = []
    assay.verify("gla.chunk", **gla(), progress=lines.append)
    assert any(line.startswith("verifying gla.chunk on vm sm_90") for line in lines)

    def refuse(line):
        raise ValueError(line)

    with pytest.raises(ValueError, match="verifying gla.chunk"):
        assay.verify("gla.chunk", **gla(), progress=refuse)


def test_torch_and_triton_are_not_loaded():
    code = "import sys, assay; assert not {'torch', 'triton'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
