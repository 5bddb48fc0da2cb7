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
import subprocess
import tempfile


_LIBRARY = "libassay_watch.so"


class Births:
    """What the watch has noted in this process."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        library.assay_watch_ptx.restype = library.assay_watch_result.restype = ctypes.c_char_p
        library.assay_watch_ptx.argtypes = [ctypes.c_char_p, ctypes.c_int]

    def watched(self, ptx: str, marks_cold: bool = False) -> str:
        """PTX with the watch in it, for this process alone; as it was where it cannot be watched. `marks_cold`: as PTX 9.0, whose
        compilers (CUDA 13.0 and later) lay the watch's code out behind the kernel's own."""
        return self._library.assay_watch_ptx(ptx.encode(), marks_cold).decode()

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
    """Triton's step from PTX to machine code, with the watch put in before."""

    def make(self, source, metadata, *rest, **named):
        return make_cubin(self, births.watched(source, marks_cold), metadata, *rest, **named)

    return make


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
