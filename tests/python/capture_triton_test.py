"""assay.capture of Triton's launches as on a GPU: here the machine runs them, and a driver that runs the judging kernel there, too."""
import ctypes
import json
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

import numpy  # noqa: E402
import triton_kernels as kernels  # noqa: E402

import assay.triton  # noqa: E402
from assay import cuda_driver, machine  # noqa: E402
from assay.triton import judging, taps  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Triton and torch have theirs


class Gpu:
    """The process's own memory is the device's. What the host is told reaches it `behind` tellings later."""

    pins = False

    def __init__(self):
        self.module, self.told, self.behind = machine.Module(judging.PTX), [], 0

    def enter(self):
        pass

    def function(self, image, entry):
        return entry

    def copy(self, to, from_, nbytes, stream):
        ctypes.memmove(to, from_, nbytes)

    def call(self, name, function, *rest):
        assert name == "cuLaunchKernel"
        table = ctypes.string_at(rest[-2][0], judging.BYTES)
        read = judging.Table.from_buffer_copy(table)
        storages = [machine.Storage(read.flag, 16), machine.Storage(read.host, 16), machine.Storage(read.count, 4)]
        for row in read.row[: read.rows]:
            storages += [machine.Storage(at, row.nbytes) for at in (row.from_, row.to) if at]
        done = machine.run(self.module, function, grid=(2, 1, 1), block=(64, 1, 1), arguments=[table], storages=storages)
        assert done.trap is None, done.trap
        host = (ctypes.c_uint32 * 2).from_address(read.host)
        self.told.append((host, tuple(host)))
        host[:] = self.told[-1 - self.behind][1] if len(self.told) > self.behind else (0, 0)

    def arrives(self):
        host, words = self.told[-1]
        host[:] = words


@pytest.fixture
def gpu(monkeypatch):
    """The machine, which the capture takes for a GPU."""
    with assay.triton.machine("sm_90"):
        made = Gpu()
        monkeypatch.setattr(taps, "on_gpu", lambda: True)
        monkeypatch.setattr(cuda_driver, "opened", lambda: made)
        monkeypatch.setattr(machine, "watchers", _NoWatchers())
        yield made


class _NoWatchers(list):
    """Launches reach the capture as Triton's alone."""

    def __iter__(self):
        return iter(())

    def __bool__(self):
        return False


def test_each_launch_is_kept_and_runs_again_with_the_same_bits(gpu, tmp_path):
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.zeros_like(x)
    with assay.capture(tmp_path) as captured:
        for _ in range(3):
            kernels.add[(8,)](x, y, out, 1000, BLOCK=128)
            x, out = out, x
    assert [launch.kernel for launch in captured.kept] == ["add"] * 3 and not captured.left_out
    for launch in captured.kept:
        assert assay.check(launch.file).verdict == "pass"
        origin = json.loads(pathlib.Path(launch.file).read_text())["origin"]
        assert origin["stack"][-1][0] == __file__ and origin["arch"] == "sm_90"


@pytest.mark.parametrize("behind", [0, 3])
def test_the_first_launch_whose_output_is_not_finite_is_kept_when_the_host_sees_it(gpu, tmp_path, behind):
    gpu.behind = behind
    x, out = torch.linspace(1e37, 1e38, 1000, device="cuda"), torch.empty(1000, device="cuda")
    with assay.capture(tmp_path, when="nonfinite") as captured:
        for i in range(12):
            kernels.doubled_by[(8,)](x, out, 1000, 1.0 if i != 5 else 8.0, BLOCK=128)
        gpu.arrives()
    (launch,) = captured.kept
    assert (launch.number, launch.kernel, launch.nonfinite) == (6, "doubled_by", ["out"])
    file, line, function = json.loads(pathlib.Path(launch.file).read_text())["origin"]["stack"][-1]
    assert (file, function) == (__file__, "test_the_first_launch_whose_output_is_not_finite_is_kept_when_the_host_sees_it")
    assert "doubled_by[(8,)]" in pathlib.Path(file).read_text().splitlines()[line - 1]
    result = assay.check(launch.file)
    assert result.verdict == "finding" and "overflow" in str(result)


def test_what_is_read_and_written_is_kept_as_it_was_before(gpu, tmp_path):
    x = torch.full((1000,), 1e30, device="cuda")
    with assay.capture(tmp_path, when="nonfinite") as captured:
        for factor in (10.0, 1e20, 2.0):
            kernels.doubled_by[(8,)](x, x, 1000, factor, BLOCK=128)
    (launch,) = captured.kept
    assert launch.number == 2
    document = json.loads(pathlib.Path(launch.file).read_text())
    (tensor,) = document["tensors"]
    before = (tmp_path / document["tensors"][tensor]["values"]["file"]).read_bytes()
    assert numpy.isfinite(numpy.frombuffer(before[-4000:], numpy.float32)).all()


def test_finite_outputs_trigger_nothing_and_nothing_stays_pending(gpu, tmp_path):
    x, out = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
    with assay.capture(tmp_path, when="nonfinite") as captured:
        for _ in range(5):
            kernels.doubled_by[(8,)](x, out, 1000, 2.0, BLOCK=128)
    assert captured.seen == 5 and captured.kept == [] and not captured._armed._pending


def test_each_launch_is_judged_by_its_own_tensors(gpu, tmp_path):
    """Tables are kept by what is launched: views, other storages, another stream's memory, no tensor."""
    with assay.capture(tmp_path, when="nonfinite") as captured:
        whole, big = torch.ones(2000, device="cuda"), torch.full((1000,), 3e38, device="cuda")
        out = torch.empty(1000, device="cuda")
        for x in (whole[:1000], whole[1000:], whole[:1000], big, whole[:1000]):
            kernels.doubled_by[(8,)](x, out, 1000, 2.0, BLOCK=128)
    (launch,) = captured.kept
    assert launch.number == 4
    document = json.loads(pathlib.Path(launch.file).read_text())
    assert [document["tensors"][name]["shape"] for name in document["tensors"]] == [[1000], [1000]]


def test_a_tensor_at_an_odd_address_is_left_out(gpu, tmp_path):
    array = numpy.ones(1008, numpy.float32)
    odd = array[2:1002] if array.ctypes.data % 16 == 12 else array[1:1001]
    with assay.capture(tmp_path, when="nonfinite") as captured:
        kernels.doubled_by[(8,)](torch.from_dlpack(odd), torch.empty(1000, device="cuda"), 1000, 2.0, BLOCK=128)
    assert "no multiple of 16" in captured.left_out[0]


def test_what_was_not_finite_before_arms_it_again(gpu, tmp_path):
    x = torch.full((1000,), float("inf"), device="cuda")
    y, out = torch.full((1000,), 3e38, device="cuda"), torch.empty(1000, device="cuda")
    with assay.capture(tmp_path, when="nonfinite") as captured:
        kernels.doubled_by[(8,)](x, x, 1000, 2.0, BLOCK=128)
        kernels.doubled_by[(8,)](y, out, 1000, 2.0, BLOCK=128)
    assert [launch.number for launch in captured.kept] == [2]


def test_every_nth_is_looked_at_alone(gpu, tmp_path):
    x, out = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
    with assay.capture(tmp_path, when=3) as captured:
        for _ in range(7):
            kernels.doubled_by[(8,)](x, out, 1000, 2.0, BLOCK=128)
    assert [launch.number for launch in captured.kept] == [3, 6]


def test_afterwards_triton_is_as_before(gpu, tmp_path):
    from triton.compiler import CompiledKernel

    before = dict(vars(CompiledKernel))
    with assay.capture(tmp_path, when="nonfinite"):
        assert dict(vars(CompiledKernel)) != before
    assert dict(vars(CompiledKernel)) == before


def judged(number, words, rows):
    """What the kernel leaves: rows of (array, copy or None, format)."""
    flag, host = words
    count = numpy.zeros(1, numpy.uint32)
    table = judging.Table(rows=len(rows), number=number, flag=flag.ctypes.data, host=host.ctypes.data, count=count.ctypes.data)
    storages = [machine.Storage.of(words) for words in (flag, host, count)]
    for row, (array, copy, dtype) in zip(table.row, rows):
        row.from_, row.to, row.nbytes = array.ctypes.data, 0 if copy is None else copy.ctypes.data, array.nbytes
        row.even, row.odd, row.low = judging.EXPONENTS.get(dtype, (0, 0, 0))
        storages += [machine.Storage.of(each) for each in (array, copy) if each is not None]
    done = machine.run(MODULE, "judge", grid=(3, 1, 1), block=(64, 1, 1), arguments=[bytes(table)], storages=storages, checks="all")
    assert done.trap is None and done.verification.verdict == "pass", done.verification
    assert count[0] == 0  # the next launch counts from there


MODULE = machine.Module(judging.PTX)


@pytest.mark.parametrize("dtype, kind", [("fp32", numpy.float32), ("fp16", numpy.float16), ("fp64", numpy.float64), ("bf16", numpy.uint16)])
def test_every_place_of_a_value_that_is_not_finite_is_seen(dtype, kind):
    largest, others = (0x7F7F, (0x7F80, 0xFF80, 0x7FC1)) if dtype == "bf16" else (numpy.finfo(kind).max, (numpy.nan, numpy.inf, -numpy.inf))
    for count in (0, 1, 2, 3, 5, 9, 1001):
        x = numpy.full(count, largest, kind)
        copy, words = numpy.zeros_like(x), (numpy.zeros(1, numpy.uint32), numpy.zeros(2, numpy.uint32))
        judged(7, words, [(x, copy, dtype)])
        assert words[0][0] == 0 and list(words[1]) == [0, 7] and not copy.any()
        for at in range(count) if count < 10 else (0, 500, count - 1):
            for value in others:
                words[0][:], bad = 0, x.copy()
                bad[at] = value
                judged(9, words, [(x, None, dtype), (bad, copy, dtype)])
                assert words[0][0] == 9 == words[1][0] and copy.tobytes() == bad.tobytes()
                judged(10, words, [(bad, copy, dtype)])
                assert words[0][0] == 9 and words[1][1] == 10


def test_arguments_that_are_read_and_written_follow_from_the_text():
    text = rb"""
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];
  mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd4, %rd2;
  @%p1 ld.global.b32 { %r2 }, [ %rd5 + 0 ];
  @%p1 st.global.b32 [ %rd6 + 0 ], { %r2 };
  atom.global.add.f32 %f1, [%rd3], %f2;
}
"""
    assert [sorted(found - {"n"}) for found in taps.uses(text, "k")] == [["a", "c"], ["b", "c"]]
    table = text.replace(b"@%p1 ld.global.b32 { %r2 }", b"ld.global.b64 { %rd7 }").replace(b"atom.global.add.f32 %f1, [%rd3]", b"atom.global.add.f32 %f1, [%rd7]")
    assert taps.uses(table, "k") is None
    assert taps.uses(text, "other") is None
