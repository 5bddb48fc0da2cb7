"""assay.capture of launches that go to the driver from anywhere, with the stand-in for driver, CUPTI and GPU."""
import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import types

import numpy
import pytest
from kernels import HEAD, SCALE

import assay
from assay import driver_launches, ptx_accesses

STANDINS = pathlib.Path(assay.__file__).parent.parent.parent / "standin"
DRIVER, LIBRARY = STANDINS / "libcuda.so.1", STANDINS / "libassay_capture.so"
if not DRIVER.exists() or not LIBRARY.exists():
    pytest.skip("the stand-in is not built", allow_module_level=True)

#: s.out[i] = s.by * s.in[i], i < s.n; s is 32 bytes, its pointers in bytes 0 and 16
STRUCT = r"""
.visible .entry times(.param .align 8 .b8 s[32]) {
  .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [s]; ld.param.u32 %r1, [s+8]; ld.param.f32 %f1, [s+12]; ld.param.u64 %rd2, [s+16];
  mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, %r1; @%p1 bra L;
  mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd5]; mul.rn.f32 %f3, %f2, %f1; st.global.f32 [%rd4], %f3;
L: ret;
}
"""


def fat_binary(text):
    padded = text.encode() + b"\0" * (8 - len(text) % 8)
    entry = struct.pack("<HHIQ12xI", 1, 0x101, 64, len(padded), 80).ljust(64, b"\0") + padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry


class Program:
    """A program of the driver's own functions."""

    def __init__(self):
        self.driver = ctypes.CDLL(str(DRIVER))
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        assert getattr(self.driver, name)(*arguments) == 0, name

    def function(self, image, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def put(self, values):
        content = numpy.asarray(values, dtype=numpy.float32).tobytes()
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(content)))
        self.call("cuMemcpyHtoD_v2", address, content, ctypes.c_size_t(len(content)))
        return address.value

    def launch(self, function, *arguments, blocks=1, packed=False):
        size = [ctypes.c_uint(n) for n in (blocks, 1, 1, 128, 1, 1, 0)]
        if packed:
            block = b"".join(arguments)
            content, length = ctypes.create_string_buffer(block, len(block)), ctypes.c_size_t(len(block))
            extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(content), 2, ctypes.addressof(length), 0)
            return self.call("cuLaunchKernel", function, *size, None, None, extra)
        kept = [ctypes.create_string_buffer(argument, len(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * max(1, len(kept)))(*(ctypes.addressof(value) for value in kept))
        return self.call("cuLaunchKernel", function, *size, None, pointers, None)


def scale_arguments(address, count, factor):
    return struct.pack("<Q", address), struct.pack("<I", count), struct.pack("<f", factor)


@pytest.fixture
def program(monkeypatch):
    monkeypatch.setenv("ASSAY_CUDA_DRIVER", str(DRIVER))
    monkeypatch.delitem(sys.modules, "triton", raising=False)  # whose launches would be asked of torch's own runtime
    return Program()


def document_of(launch):
    return json.loads(pathlib.Path(launch.file).read_text())


def test_a_launch_of_text_loaded_inside_runs_again_with_the_same_bits(program, tmp_path):
    x = program.put(numpy.linspace(-1, 1, 300))
    with assay.capture(tmp_path) as captured:
        scale = program.function((HEAD + SCALE).encode(), "scale")
        program.launch(scale, *scale_arguments(x, 300, 3.0), blocks=3)
        program.launch(scale, *scale_arguments(x, 200, 0.5), blocks=2)
    program.launch(scale, *scale_arguments(x, 200, 0.5))
    assert [launch.kernel for launch in captured.kept] == ["scale"] * 2 and captured.seen == 2 and not captured.left_out
    for launch in captured.kept:
        assert launch.changed == ["p"] and assay.check(launch.file).verdict == "pass"
    document = document_of(captured.kept[0])
    assert document["origin"]["stack"][-1][0] == __file__ and document["launches"][0]["grid"] == [3, 1, 1]
    assert document["tensors"]["p"]["dtype"] == "fp32" and document["tensors"]["p"]["shape"] == [300]


def test_addresses_inside_a_struct_reach_their_memory(program, tmp_path):
    x, out = program.put(range(100)), program.put([0] * 100)
    s = struct.pack("<QIfQQ", out, 100, 2.5, x, 7)
    with assay.capture(tmp_path) as captured:
        times = program.function((HEAD + STRUCT).encode(), "times")
        program.launch(times, s)
        program.launch(times, s, packed=True)
    assert len(captured.kept) == 2 and not captured.left_out
    for launch in captured.kept:
        assert assay.check(launch.file).verdict == "pass"
    (argument,) = document_of(captured.kept[0])["launches"][0]["arguments"]
    assert argument["size"] == 32 and [member["at"] for member in argument["struct"]] == [0, 8, 16, 24]
    assert {member.get("pointer") for member in argument["struct"]} - {None} == {"s", "s_"}
    assert captured.kept[0].changed == ["s"]


def test_the_first_output_that_is_not_finite_is_kept(program, tmp_path):
    x = program.put([1e30] * 128)
    with assay.capture(tmp_path, when="nonfinite") as captured:
        scale = program.function((HEAD + SCALE).encode(), "scale")
        for factor in (2.0, 4.0, 1e20, 2.0):
            program.launch(scale, *scale_arguments(x, 128, factor))
    (launch,) = captured.kept
    assert (launch.number, launch.nonfinite) == (3, ["p"])
    assert "overflow" in str(assay.check(launch.file))


def test_ptx_in_a_fat_binary_is_found(program, tmp_path):
    x = program.put([1.0] * 128)
    with assay.capture(tmp_path, kernel="scale") as captured:
        program.launch(program.function(fat_binary(HEAD + SCALE), "scale"), *scale_arguments(x, 128, 3.0))
    assert [launch.kernel for launch in captured.kept] == ["scale"], captured.left_out
    assert assay.check(captured.kept[0].file).verdict == "pass"


def test_what_was_loaded_before_is_named_once(program, tmp_path):
    x = program.put([1.0] * 128)
    renamed = SCALE.replace("entry scale", "entry loaded_before")
    scale = program.function((HEAD + renamed).encode(), "loaded_before")
    with assay.capture(tmp_path) as captured:
        for _ in range(3):
            program.launch(scale, *scale_arguments(x, 128, 1.0))
    assert not captured.kept
    assert captured.left_out[0] == "launch 1 of loaded_before: its PTX was not seen: the capture began after its module was loaded"
    assert captured.left_out[1].startswith("2 launches of kernels without PTX") and len(captured.left_out) == 2


def test_ptx_of_a_library_of_the_process_is_found_in_its_file(program, tmp_path):
    renamed = SCALE.replace("entry scale", "entry of_a_library")
    binary = fat_binary(HEAD + renamed)
    (tmp_path / "code.fatbin").write_bytes(binary)
    (tmp_path / "code.S").write_text('.section .nv_fatbin,"a"\n.incbin "code.fatbin"\n.section .note.GNU-stack,""\n')
    made = subprocess.run(["cc", "-shared", "-o", "libextension.so", "code.S"], cwd=tmp_path, capture_output=True)
    if made.returncode:
        pytest.skip("no C compiler")
    ctypes.CDLL(str(tmp_path / "libextension.so"))
    x = program.put([1.0] * 128)
    scale = program.function(binary, "of_a_library")  # before anybody looks, as the runtime may do
    with assay.capture(tmp_path / "run.assay") as captured:
        program.launch(scale, *scale_arguments(x, 128, 3.0))
    assert [launch.kernel for launch in captured.kept] == ["of_a_library"], captured.left_out
    assert assay.check(captured.kept[0].file).verdict == "pass"


def test_a_profiler_is_named_and_left_alone_and_finds_its_place_free_afterwards(program, tmp_path):
    listens = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
    subscriber = ctypes.c_void_p()
    with assay.capture(tmp_path):
        pass
    assert program.driver.cuptiSubscribe(ctypes.byref(subscriber), listens, None) == 0
    try:
        with assay.capture(tmp_path) as captured:
            pass
    finally:
        program.driver.cuptiUnsubscribe(subscriber)
    (why,) = captured.left_out
    assert why.startswith("launches that are not Triton's: a profiler holds CUPTI's callbacks already")


def test_a_library_that_the_driver_loads_knows_modules_from_the_first_on(tmp_path):
    code = f"""
import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
from driver_launches_test import *
program = Program()
x = program.put([1.0] * 128)
scale = program.function((HEAD + SCALE).encode(), "scale")
with assay.capture({str(tmp_path)!r}) as captured:
    program.launch(scale, *scale_arguments(x, 128, 3.0))
print([launch.kernel for launch in captured.kept], captured.left_out)
"""
    environment = {**os.environ, "CUDA_INJECTION64_PATH": str(LIBRARY), "ASSAY_CUDA_DRIVER": str(DRIVER)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ran.stdout.strip() == "['scale'] []", ran.stdout + ran.stderr




def test_assay_run_captures_a_program_from_outside(tmp_path):
    command = pathlib.Path(os.environ.get("ASSAY_BUILD", "nowhere")) / "src" / "cli" / "assay"
    if not command.exists():
        pytest.skip("the program is not built")
    here = pathlib.Path(__file__).parent
    (tmp_path / "sitecustomize.py").write_text((here.parent.parent / "python" / "site" / "assay.pth").read_text())  # as installed
    (tmp_path / "program.py").write_text(f"""
import sys; sys.path.insert(0, {str(here)!r})
from driver_launches_test import *
program = Program()
x = program.put([1e30] * 128)
scale = program.function((HEAD + SCALE).encode(), "scale")
for factor in (1.0, 1e5, 1e20, 2.0):
    program.launch(scale, *scale_arguments(x, 128, factor))
""")
    environment = {**os.environ, "ASSAY_CUDA_DRIVER": str(DRIVER)}
    environment["PYTHONPATH"] = f"{tmp_path}:{environment.get('PYTHONPATH', '')}"

    def ran(*options, program=(sys.executable, "program.py")):
        words = [command, "run", "--capture", "run.assay", *options, "--", *program]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)

    first = ran()
    assert first.returncode == 1 and "1 launch kept of 3 that were looked at" in first.stdout, first.stdout + first.stderr
    assert assay.check(tmp_path / "run.assay" / "launch-0003-scale.json").verdict == "finding"
    every = ran("--when", "2")
    assert every.returncode == 0 and "2 launches kept of 4" in every.stdout, every.stdout + every.stderr
    assert assay.check(tmp_path / "run.assay" / "launch-0002-scale.json").verdict == "pass"
    other = ran(program=("/bin/true",))
    assert other.returncode == 2 and "wants a program in Python" in other.stderr


def test_formats_of_elements_are_told_where_the_ptx_leaves_no_doubt():
    assert ptx_accesses.element_types((HEAD + SCALE).encode(), "scale") == {"p": frozenset({"f32"})}
    assert driver_launches.element_formats((HEAD + SCALE).encode(), "scale") == {"p": "fp32"}
    halves = SCALE.replace("st.global.f32 [%rd3], %f3", "cvt.rn.bf16.f32 %rs1, %f3; st.global.b16 [%rd3], %rs1").replace("ld.global.f32 %f2", "ld.global.b16 %rs0")
    assert driver_launches.element_formats((HEAD + halves).encode(), "scale") == {"p": "bf16"}
    both = halves.replace("L: ret", "cvt.rn.f16.f32 %rs1, %f3;\nL: ret")
    assert driver_launches.element_formats((HEAD + both).encode(), "scale") == {}


def test_cupy_compiles_to_ptx_inside_alone(program, monkeypatch, tmp_path):
    compiler = types.ModuleType("cupy.cuda.compiler")
    compiler._get_arch_for_options_for_nvrtc = lambda arch=None: ("-arch=sm_90", "cubin")
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", compiler)
    monkeypatch.setenv("CUPY_CACHE_DIR", "before")
    with assay.capture(tmp_path):
        assert compiler._get_arch_for_options_for_nvrtc("90") == ("-arch=compute_90", "ptx")
        assert os.environ["CUPY_CACHE_DIR"] != "before"
    assert compiler._get_arch_for_options_for_nvrtc() == ("-arch=sm_90", "cubin") and os.environ["CUPY_CACHE_DIR"] == "before"
