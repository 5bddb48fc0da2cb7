"""The hook into Triton's compiler, with modules in Triton's place: no GPU is asked for."""

import importlib
import os
import pathlib
import struct
import sys
import types

import pytest

import assay

LIBRARY = pathlib.Path(assay.__file__).parent.parent.parent / "standin" / "libassay_watch.so"
PTX = """.version 7.0
.target sm_80
.address_size 64
.visible .entry f(.param .u64 to)
{
.reg .f32 %f<3>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [to];
ld.global.f32 %f1, [%rd1];
mul.rn.f32 %f2, %f1, %f1;
st.global.f32 [%rd1], %f2;
ret;
}
"""


@pytest.fixture
def triton(monkeypatch):
    """Of Triton what the hook touches."""
    names = ("triton", "triton.backends", "triton.backends.nvidia", "triton.backends.nvidia.compiler", "triton.compiler")
    made = {name: types.ModuleType(name) for name in names}

    class CUDABackend:
        def make_cubin(self, source, metadata, options, capability):
            return source, capability

    class CompiledKernel:
        launch_enter_hook = None

    made["triton.backends.nvidia.compiler"].CUDABackend = CUDABackend
    made["triton.compiler"].CompiledKernel = CompiledKernel
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    return types.SimpleNamespace(backend=CUDABackend, compiled=CompiledKernel)


@pytest.fixture
def watch():
    if not LIBRARY.exists():
        pytest.skip("libassay_watch.so is not built")
    return importlib.import_module("assay.watch").watch


def test_what_triton_compiles_inside_is_watched(triton, watch):
    before, cache = triton.backend.make_cubin, os.environ.get("TRITON_CACHE_DIR")
    with watch(str(LIBRARY)) as births:
        text, capability = triton.backend().make_cubin(PTX, {}, None, 80)
        triton.compiled.launch_enter_hook(None)
        assert os.environ["TRITON_CACHE_DIR"] != cache
    assert capability == 80
    assert "assay_watch_buffer" in text and "vote.sync.any.pred" in text
    assert births.result()["counts"]["watched"] == 1
    assert births.result()["launches"] in (0, 1)  # it counts where there is a driver
    assert triton.backend.make_cubin is before and triton.compiled.launch_enter_hook is None
    assert os.environ.get("TRITON_CACHE_DIR") == cache


def test_a_ptxas_that_knows_ptx_9_marks_cold_code(triton, watch, tmp_path, monkeypatch):
    module = importlib.import_module("assay.watch")
    folder = tmp_path / "triton" / "backends" / "nvidia" / "bin"
    folder.mkdir(parents=True)

    def assembler(name, version):
        path = folder / name
        path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.1'\n")
        path.chmod(0o755)
        return str(path)

    old, new, newest = assembler("ptxas", "12.8"), assembler("ptxas-blackwell", "13.0"), assembler("newest", "13.1")
    monkeypatch.setattr(sys.modules["triton"], "__file__", str(tmp_path / "triton" / "__init__.py"), raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    for driver, named, chosen in ((13000, None, new), (12080, None, None), (13000, old, None), (13000, newest, None), (13010, newest, newest)):
        monkeypatch.setattr(module, "_driver_version", lambda driver=driver: driver)
        for variable in module._ASSEMBLERS:
            monkeypatch.delenv(variable, raising=False)
        if named:
            monkeypatch.setenv("TRITON_PTXAS_PATH", named)
        with watch(str(LIBRARY)):
            text, _ = triton.backend().make_cubin(PTX, {}, None, 80)
            assert os.environ.get("TRITON_PTXAS_PATH") == (chosen or named)
            assert os.environ.get("TRITON_PTXAS_BLACKWELL_PATH") == chosen
        assert (".version 9.0" in text and "frequency 1" in text) == bool(chosen)
        assert os.environ.get("TRITON_PTXAS_PATH") == named and "TRITON_PTXAS_BLACKWELL_PATH" not in os.environ


def elf_with_info(*attributes):
    """An ELF file of one section beside that of names, `.nv.info`."""
    names, info = b"\0.nv.info\0", b"".join(attributes)
    sections = [(0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 64, len(info)), (0, 0, 0, 0, 64 + len(info), len(names))]
    table = b"".join(struct.pack("<IIQQQQ", *section).ljust(64, b"\0") for section in sections)
    begin = b"\x7fELF\x02".ljust(40, b"\0") + struct.pack("<Q", 64 + len(info) + len(names))
    return begin.ljust(58, b"\0") + struct.pack("<3H", 64, len(sections), 2) + info + names + table


def test_the_registers_of_the_kernel_as_it_is_bound_those_of_the_watched_one(triton, watch, tmp_path, monkeypatch):
    module = importlib.import_module("assay.watch")
    registers = [struct.pack("<BBHII", 4, 0x2F, 8, symbol, count) for symbol, count in ((1, 40), (2, 70))]
    cubin = elf_with_info(struct.pack("<BBH", 3, 0x50, 0x101), *registers, struct.pack("<BBHI", 4, 0x37, 4, 129))
    assert module._registers_of(cubin) == 70
    assert module._registers_of(b"text") == 0 and module._registers_of(elf_with_info()) == 0
    compiled = []

    def make_cubin(self, source, metadata, options, capability):
        compiled.append(source)
        return cubin

    monkeypatch.setattr(triton.backend, "make_cubin", make_cubin)
    monkeypatch.setattr(module, "_assembler_of_ptx_9", lambda folder: "/nowhere/ptxas")
    monkeypatch.setattr(sys.modules["triton"], "__file__", str(tmp_path / "triton" / "__init__.py"), raising=False)
    with watch(str(LIBRARY)):
        triton.backend().make_cubin(PTX.replace(")\n{", ")\n.reqntid 128\n{"), {}, None, 80)
    assert len(compiled) == 2 and "assay_watch_buffer" not in compiled[0]
    assert ".reqntid 128\n.maxnreg 128\n" in compiled[1]


def test_text_that_is_no_ptx_goes_on_as_it_is(watch):
    births = importlib.import_module("assay.watch").load(str(LIBRARY))
    assert births.watched("no PTX") == "no PTX"
    assert births.result()["unwatched"]
