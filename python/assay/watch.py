"""First births of NaN and infinities in a program's Triton kernels, on the GPU, while it runs.

    with assay.watch() as births:
        train()
    for birth in births.result()["births"]:
        print(birth["place"], birth["kind"], birth["example"])

Every kernel that Triton compiles inside gets the watch into its PTX (`assay watch FILE.ptx --output` writes the same).
What is born is told on standard error when `look` is called, and at the end of the block. Kernels that were compiled
before run as they were. The library is the wheel's, or a build's libassay_watch.so named by ASSAY_WATCH_LIBRARY; in a program that
`assay watch -- python ...` started it is loaded already, and the runtime's and the driver's modules are watched too.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile


_LIBRARY = "libassay_watch.so"


class Births:
    """What the watch has noted in this process."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        library.assay_watch_ptx.restype = library.assay_watch_result.restype = ctypes.c_char_p
        library.assay_watch_ptx.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]

    def watched(self, ptx: str, marks_cold: bool = False, registers: int = 0) -> str:
        """PTX with the watch in it, for this process alone; as it was where it cannot be watched. `marks_cold`: as PTX 9.0, whose
        compilers (CUDA 13.0 and later) lay the watch's code out behind the kernel's own. `registers`: what the compiler gives it as it
        is, if known; then the watched one gets as many as leave room for half as many blocks."""
        return self._library.assay_watch_ptx(ptx.encode(), marks_cold, registers).decode()

    def launching(self, *_ignored):
        """Before a launch."""
        self._library.assay_watch_launching()

    def look(self):
        """Tells of new births; call it after what waits for the GPU."""
        self._library.assay_watch_look()

    def result(self) -> dict:
        """All births and what was watched, as `assay watch --json` writes them."""
        return json.loads(self._library.assay_watch_result())


def load(path: str | None = None) -> Births:
    """The watch of this process, without any hook. Raises OSError where the library is not found."""
    preloaded = ctypes.CDLL(None)
    if hasattr(preloaded, "assay_watch_ptx"):
        return Births(preloaded)
    here = pathlib.Path(__file__).absolute().parent
    folders = (here / "lib" / "standin", here.parent.parent / "standin")  # the wheel's, the build's
    found = next((str(folder / _LIBRARY) for folder in folders if (folder / _LIBRARY).exists()), _LIBRARY)
    return Births(ctypes.CDLL(path or os.environ.get("ASSAY_WATCH_LIBRARY") or found))


def _hooked(births: Births, make_cubin, marks_cold: bool):
    """Triton's step from PTX to machine code, with the watch put in before. The text as it is is compiled first: how many registers it
    gets says how many the watched one may have."""

    def make(self, source, metadata, *rest, **named):
        registers = _registers_of(make_cubin(self, source, dict(metadata), *rest, **named)) if marks_cold else 0
        return make_cubin(self, births.watched(source, marks_cold, registers), metadata, *rest, **named)

    return make


def _registers_of(cubin) -> int:
    """The most registers of a thread of its kernels; 0 where that cannot be read. The section `.nv.info` is a list of a form, a kind and,
    of form 4, a size and so many bytes; kind 0x2f is a symbol and its registers."""
    if not isinstance(cubin, bytes) or cubin[:5] != b"\x7fELF\x02":
        return 0
    table, (size, count, names) = struct.unpack_from("<Q", cubin, 40)[0], struct.unpack_from("<3H", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    texts, registers = sections[names][4], 0
    for section in sections:
        if not cubin.startswith(b".nv.info\0", texts + section[0]):
            continue
        at, end = section[4], section[4] + section[5]
        while at + 4 <= end:
            form, kind, bytes_ = struct.unpack_from("<BBH", cubin, at)
            if (form, kind, bytes_) == (4, 0x2F, 8):
                registers = max(registers, struct.unpack_from("<I", cubin, at + 8)[0])
            at += 4 + (bytes_ if form == 4 else 0)
    return registers


def _driver_version() -> int:
    """13000 for CUDA 13.0; 0 without a driver."""
    version = ctypes.c_int(0)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return version.value


def _version_of(assembler: str) -> int:
    """As _driver_version, of a ptxas; 0 where it cannot be asked."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run([assembler, "--version"], capture_output=True, text=True, timeout=20).stdout
        if found := re.search(r"release (\d+)\.(\d+)", said):
            return 1000 * int(found[1]) + 10 * int(found[2])
    return 0


#: Triton asks for its ptxas by the first, for GPUs from sm_100 on by the second.
_ASSEMBLERS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")


def _assembler_of_ptx_9(triton_folder: pathlib.Path) -> str:
    """A ptxas of CUDA 13.0 or later whose code the driver takes: Triton's, else the toolkit's; "" where there is none, or where the
    environment names another one."""
    driver = _driver_version()

    def fits(path) -> bool:
        return bool(path) and 13000 <= _version_of(str(path)) <= driver

    named = [os.environ[name] for name in _ASSEMBLERS if os.environ.get(name)]
    if named:
        return named[0] if all(fits(path) for path in named) else ""
    folder = triton_folder / "backends" / "nvidia" / "bin"
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = (folder / "ptxas", folder / "ptxas-blackwell", shutil.which("ptxas"), f"{toolkit}/bin/ptxas")
    return next((str(path) for path in found if fits(path)), "")


@contextlib.contextmanager
def watch(library: str | None = None):
    """Triton's kernels compiled inside are watched. Raises ImportError without Triton, OSError without the library."""
    births = load(library)
    backend = importlib.import_module("triton.backends.nvidia.compiler").CUDABackend
    compiled = importlib.import_module("triton.compiler").CompiledKernel
    knobs = getattr(importlib.import_module("triton"), "knobs", None)
    make_cubin = backend.make_cubin
    enter = knobs.runtime.launch_enter_hook if knobs else compiled.launch_enter_hook
    # The buffer's address stands in the code: kernels of other processes must not be found, nor these by others.
    with tempfile.TemporaryDirectory(prefix="assay-watch-") as cache, contextlib.ExitStack() as undo:
        undo.callback(_set_variable("TRITON_CACHE_DIR", cache))
        triton = getattr(importlib.import_module("triton"), "__file__", None)
        assembler = _assembler_of_ptx_9(pathlib.Path(triton).parent) if triton else ""
        for name in _ASSEMBLERS if assembler else ():
            if not os.environ.get(name):
                undo.callback(_set_variable(name, assembler))
        backend.make_cubin = _hooked(births, make_cubin, bool(assembler))
        undo.callback(setattr, backend, "make_cubin", make_cubin)
        if hasattr(enter, "add"):
            enter.add(births.launching)
            undo.callback(enter.remove, births.launching)
        else:
            holder = knobs.runtime if knobs else compiled
            holder.launch_enter_hook = births.launching
            undo.callback(setattr, holder, "launch_enter_hook", enter)
        try:
            yield births
        finally:
            births.look()


def _set_variable(name: str, value: str):
    """Sets a variable of the environment; what puts it back."""
    before = os.environ.get(name)
    os.environ[name] = value
    return lambda: os.environ.pop(name, None) if before is None else os.environ.update({name: before})
