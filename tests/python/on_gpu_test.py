"""Launches on the machine that a GPU repeats. The GPU here is a driver that runs them on the machine again, in memory of its own,
and errs as it is told."""
import ctypes

import numpy
import pytest
from kernels import FOLLOW, HEAD, MODULE, SCALE, scale, word

import assay
from assay import cuda_driver, on_gpu
from assay.machine import Module, Storage, run, watchers

#: p[i] = p[i] * f + f, product and sum without a rounding, on line 12 of axpy.py; and another on line 13 that nothing uses
AXPY = r"""
.visible .entry axpy(.param .u64 p, .param .f32 f) {
  .reg .b32 %r<3>; .reg .b64 %rd<4>; .reg .f32 %f<5>; .reg .f32 %f4b;
  ld.param.u64 %rd1, [p]; ld.param.f32 %f1, [f]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.global.f32 %f2, [%rd3];
  .loc 1 12 3
  mul.f32 %f3, %f2, %f1;
  add.f32 %f4, %f3, %f1;
  .loc 1 13 3
  add.f32 %f4b, %f3, %f4;
  st.global.f32 [%rd3], %f4;
  ret;
}
.file 1 "/tmp/axpy.py"
"""


class Gpu:
    """Runs on the machine. `errs(image, launch number, memory)` changes what a launch left in the storage uploaded last."""

    name, arch = "Fake GPU", "sm_90"

    def __init__(self, errs=lambda *_: None):
        self.memory, self.errs, self.launches, self.images = {}, errs, 0, []

    def enter(self):
        pass

    wait = enter

    def allocate(self, nbytes):
        buffer = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def free(self, address):
        del self.memory[address]

    def upload(self, to, content, nbytes):
        ctypes.memmove(to, content, nbytes)
        self.uploaded = to

    def download(self, address, nbytes):
        return ctypes.string_at(address, nbytes)

    def launch(self, image, entry, grid, block, arguments, **how):
        self.launches += 1
        self.images.append(image)
        kept, watchers[:] = list(watchers), []
        try:
            storages = [Storage(at, len(buffer), keep=buffer) for at, buffer in self.memory.items()]
            done = run(Module(image), entry, grid=grid, block=block, arguments=arguments, storages=storages,
                cluster=how["cluster"], shared_bytes=how["shared_bytes"], cooperative=how["cooperative"])  # fmt: skip
        finally:
            watchers[:] = kept
        if done.trap is not None:
            raise cuda_driver.DriverError("cuCtxSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS")
        self.errs(image, self.launches, (ctypes.c_uint8 * 64).from_address(self.uploaded))


@pytest.fixture
def gpu(monkeypatch):
    """A function that puts the GPU there, and the watcher of it."""
    made = []

    def put(errs=lambda *_: None, **how):
        monkeypatch.setattr(cuda_driver, "opened", lambda: Gpu(errs))
        monkeypatch.setattr(on_gpu, "_triton_assembler", lambda: "")
        made.append(on_gpu.OnGpu(**how))
        watchers.append(made[-1])
        return made[-1]

    yield put
    for watcher in made:
        watchers.remove(watcher)


def flip(at):
    """That byte of what was uploaded last becomes another."""
    return lambda image, number, memory: memory.__setitem__(at, memory[at] ^ 1)


def axpy(x, f):
    module = Module(HEAD + AXPY)
    run(module, "axpy", grid=(1, 1, 1), block=(len(x), 1, 1), arguments=[word(x.ctypes.data), numpy.float32(f).tobytes()],
        storages=[Storage.of(x, "x")])  # fmt: skip


def test_a_gpu_with_the_machines_bits_is_counted_and_nothing_else(gpu):
    watcher = gpu()
    x = numpy.linspace(-1, 1, 1000, dtype=numpy.float32)
    for _ in range(3):
        scale(x, 900, 3.0)
    seen = watcher.seen
    assert (seen.launches, seen.same, seen.same_apart, seen.different, seen.not_compared) == (3, 3, 3, [], {})
    assert watcher.driver.launches == 9
    assert "3 launches on Fake GPU: 3 with the machine's bits as shipped" in str(seen)


def test_each_launch_begins_from_what_the_machine_had_there(gpu):
    watcher = gpu()
    x = numpy.ones(8, dtype=numpy.float32)
    scale(x, 8)
    x[:] = 5  # by the host
    scale(x, 8)
    assert watcher.seen.same == 2 and (x == 10).all()


def test_addresses_in_memory_are_made_the_gpus(gpu):
    watcher = gpu()
    x = numpy.zeros(4, dtype=numpy.float32)
    table = numpy.array([0, x.ctypes.data], dtype=numpy.int64)
    run(Module(HEAD + SCALE + FOLLOW), "follow", grid=(1, 1, 1), block=(1, 1, 1), arguments=[word(table.ctypes.data)],
        storages=[Storage.of(table, "table"), Storage.of(x, "x")])  # fmt: skip
    assert watcher.seen.same == 1 and x[0] == 7


def test_what_only_the_assemblers_text_gives_is_contraction_with_the_line_that_is_fused(gpu):
    """Of two sums of products the assembler here fuses the one on line 12."""
    watcher = gpu(lambda image, number, memory: flip(8)(image, number, memory) if b"add.f32 %f4," in image else None)
    x = numpy.linspace(1, 2, 16, dtype=numpy.float32)
    axpy(x, 0.1)
    seen = watcher.seen
    (row,) = seen.different
    assert (row.why, row.kernel, row.lines) == ("contraction", "axpy", ["axpy.py:12"])
    assert (seen.same, seen.same_apart, seen.counted("contraction")) == (0, 1, 1)
    assert b"add.rn.f32" in watcher.driver.images[2] and b"add.rn.f32" not in watcher.driver.images[0]
    assert len(watcher.driver.images) == 5


def test_two_runs_that_differ_are_a_race_and_an_error_here(gpu):
    watcher = gpu(lambda image, number, memory: flip(5)(image, number, memory) if number == 2 else None)
    x = numpy.zeros(1000, dtype=numpy.float32)
    with pytest.raises(assay.GpuDiffers, match="launch 1 of scale: two runs on the GPU differ: 1 of x"):
        scale(x, 1000)
    assert watcher.seen.counted("race") == 1


def test_bits_that_no_rounding_explains_are_the_hardwares(gpu):
    watcher = gpu(flip(4), raises=False)
    scale(numpy.zeros(1000, dtype=numpy.float32), 1000)
    (row,) = watcher.seen.different
    assert row.why == "hardware" and row.tensors == {"x": 1} and row.lines == []
    with pytest.raises(assay.GpuDiffers, match="roundings kept apart"):
        watcher.raises = True
        scale(numpy.zeros(1000, dtype=numpy.float32), 1000)


def test_after_an_illegal_address_nothing_is_compared_and_the_reason_is_counted(gpu):
    watcher = gpu()
    x = numpy.zeros(8, dtype=numpy.float32)
    assert scale(x, 1000).trap.kind == "out-of-bounds"  # here, and there
    scale(x, 8)
    assert watcher.seen.launches == 0 and sum(watcher.seen.not_compared.values()) == 2
    assert any("since launch 1" in why for why in watcher.seen.not_compared)


def test_without_a_gpu_both_is_one_line(monkeypatch):
    monkeypatch.setenv("ASSAY_CUDA_DRIVER", "/nonexistent/libcuda.so.1")
    monkeypatch.setattr(cuda_driver, "_opened", None)
    with pytest.raises(assay.BadInput, match="no GPU: the NVIDIA driver's /nonexistent/libcuda.so.1 cannot be opened"):
        assay.fuzz("gla", lambda q, k, v, g, scale: q, backend="both", tensors="numpy")


def test_a_gpu_of_another_architecture_is_refused(gpu):
    with pytest.raises(assay.BadInput, match="the GPU is sm_90, and the machine sm_80"):
        gpu(arch="sm_80")


def test_sums_of_products_are_told_from_other_sums():
    text = (HEAD + AXPY).encode()
    found = on_gpu.fusible_sums(text)
    assert [each.line for each in found] == ["axpy.py:12", "axpy.py:13"]
    assert on_gpu.with_one_apart(text, found[0]) == text.replace(b"add.f32 %f4,", b"add.rn.f32 %f4,")
    assert on_gpu.fusible_sums(on_gpu.with_roundings_apart(text)) == ()
    assert on_gpu.fusible_sums(MODULE.text) == ()
