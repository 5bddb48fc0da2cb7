"""Launches of a process on the GPU, whoever makes them: told by libassay_capture.so, which CUPTI tells of the driver's calls."""
from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import re
import sys
import tempfile
import threading
from ctypes import byref, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from functools import lru_cache
from typing import Any, Iterator

from . import _engine, cuda_driver, machine, ptx_accesses

_NEVER_AGAIN = (1 << 64) - 1
_TEXT, _FAT, _UNKNOWN = 0, 1, 4
#: Libraries that are not searched for the PTX of a kernel.
_OF_VENDORS = re.compile(r"/lib(torch|c10|cu|nv|nccl|cudnn|triton)[^/]*$|/(nvidia|triton)/|^/(usr/)?lib")


class CannotKeep(Exception):
    """Why a launch cannot be written down."""


class _Told(ctypes.Structure):
    """assay_told_launch (src/preload/launch_listener.h)."""

    _fields_ = [
        ("name", c_char_p),
        ("image", c_void_p),
        ("image_bytes", c_uint64),
        ("kind", c_int32),
        ("cooperative", c_int32),
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("cluster", c_uint32 * 3),
        ("shared_bytes", c_uint32),
        ("stream", c_void_p),
        ("parameters", c_uint32),
        ("offsets", ctypes.POINTER(c_uint32)),
        ("sizes", ctypes.POINTER(c_uint32)),
        ("arguments", ctypes.POINTER(c_void_p)),
        ("packed", c_void_p),
        ("packed_bytes", c_uint64),
    ]


_Before = ctypes.CFUNCTYPE(c_uint64, ctypes.POINTER(_Told))
_After = ctypes.CFUNCTYPE(None, c_uint64, c_int32)

#: Of PyTorch's own kernels, which are machine code.
_OF_TORCH = re.compile(r"N2at6native|N2at4cuda|N3c10|at_cuda_detail")


class _ToldOtherwise(threading.local):
    """`now(True)`: launches of this thread are told otherwise, until `now(False)`."""

    _word: Any = None

    def now(self, value: bool) -> None:
        if self._word is None:
            if listener._library is None:
                return
            self._word = c_int32.from_address(listener._library.assay_tell_otherwise())
        self._word.value = value


told_otherwise = _ToldOtherwise()


class DriverStorage(machine.Storage):
    """Memory of the GPU. `read` gives its bytes now; the caller waits for what was launched."""

    __slots__ = ("calls",)

    def __init__(self, calls: cuda_driver.Calls, address: int, nbytes: int, name: str, dtype: str | None):
        width = {"fp64": 8, "fp32": 4}.get(dtype or "", 2)
        dtype = dtype if nbytes % width == 0 else None
        super().__init__(address, nbytes, name, dtype=dtype, shape=(nbytes // width,) if dtype else None)
        self.calls = calls

    def read(self) -> bytes:
        content = ctypes.create_string_buffer(self.nbytes)
        self.calls.call("cuMemcpyDtoH_v2", content, c_uint64(self.address), c_size_t(self.nbytes))
        return content.raw


class DriverLaunch:
    """A launch that the driver is about to get."""

    def __init__(self, calls: cuda_driver.Calls, told: _Told):
        self._calls, self._told = calls, told
        self.name = (told.name or b"").decode("utf-8", "replace")

    @property
    def is_captured_into_a_graph(self) -> bool:
        captures = c_int()
        self._calls.call("cuStreamIsCapturing", c_void_p(self._told.stream), byref(captures))
        return captures.value != 0

    def wait(self) -> None:
        """For what was launched before."""
        self._calls.call("cuCtxSynchronize")

    def launching(self) -> machine.Launching:
        """As the machine's watchers are told. Raises CannotKeep."""
        told, arch = self._told, self._arch()
        module = _module(told, self.name, int(arch[3:]))
        entry = module.entries[self.name]
        arguments = self._arguments(entry)
        storages: dict[int, machine.Storage] = {}
        formats = element_formats(module.text, self.name)
        for slot, value in zip(entry.parameters, arguments):
            for address in _words(value):
                found = self._allocation(address)
                if found and found[0] not in storages:
                    storages[found[0]] = DriverStorage(self._calls, *found, slot.name, formats.get(slot.name))
        cluster = tuple(told.cluster) if any(told.cluster) else None
        return machine.Launching(
            module, self.name, self.name, tuple(told.grid), tuple(told.block), cluster, told.shared_bytes, bool(told.cooperative),
            arguments, list(storages.values()), arch,
        )

    def _arch(self) -> str:
        device, major, minor = c_int(), c_int(), c_int()
        self._calls.call("cuCtxGetDevice", byref(device))
        for value, number in ((major, 75), (minor, 76)):
            self._calls.call("cuDeviceGetAttribute", byref(value), number, device)
        return f"sm_{major.value}{minor.value}"

    def _arguments(self, entry: machine.Entry) -> list[bytes]:
        """One by one, by the driver's word on where each lies, which must be the PTX's."""
        told, slots = self._told, entry.parameters
        said = [(told.offsets[i], told.sizes[i]) for i in range(told.parameters)]
        if said and said != [(slot.offset, slot.bytes) for slot in slots]:
            raise CannotKeep("its parameters are others than those of the PTX of that name")
        if told.packed:
            packed = ctypes.string_at(told.packed, told.packed_bytes)
            return [packed[slot.offset : slot.offset + slot.bytes].ljust(slot.bytes, b"\0") for slot in slots]
        if slots and not told.arguments:
            raise CannotKeep("it was given no arguments")
        return [ctypes.string_at(told.arguments[i], slot.bytes) for i, slot in enumerate(slots)]

    def _allocation(self, address: int) -> tuple[int, int] | None:
        """(begin, bytes) of the memory of the GPU around it: a block of torch's allocator, else what the driver gave."""
        base, size = c_uint64(), c_size_t()
        if not address or self._calls.code("cuMemGetAddressRange_v2", byref(base), byref(size), c_uint64(address)):
            return None
        for begin, nbytes in _torch_blocks(base.value):
            if begin <= address < begin + nbytes:
                return begin, nbytes
        return base.value, size.value


def _words(value: bytes) -> Iterator[int]:
    for at in range(0, len(value) - 7, 8):
        yield int.from_bytes(value[at : at + 8], "little")


def _torch_blocks(segment: int) -> Iterator[tuple[int, int]]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for row in torch.cuda.memory_snapshot():
        if row["address"] == segment:
            at = segment
            for block in row["blocks"]:
                if block["state"] != "inactive":
                    yield at, block["size"]
                at += block["size"]


# ---- the PTX of a kernel ----


def _module(told: _Told, name: str, arch: int) -> machine.Module:
    if told.kind == _TEXT:
        texts = [ctypes.string_at(told.image, told.image_bytes)]
    elif told.kind == _FAT:
        texts = list(_texts_in(told.image, told.image_bytes))
    else:
        texts = list(_texts_with(name))
    best = None
    for text in texts:
        target = re.search(rb"^\s*\.target\s+sm_(\d+)", text, re.M)
        number = int(target.group(1)) if target else 0
        if number <= arch and (best is None or number > best[0]) and re.search(rb"\.entry\s+" + re.escape(name.encode()) + rb"\b", text):
            best = number, text
    if best is None:
        raise CannotKeep("its PTX was not seen: the capture began after its module was loaded" if told.kind == _UNKNOWN else "no PTX in it is for this GPU")
    module = machine.Module(best[1], path=name + ".ptx")
    if name not in module.entries:
        raise CannotKeep("its PTX does not define it")
    return module


@lru_cache(maxsize=256)
def _texts_in(address: int, nbytes: int) -> tuple[bytes, ...]:
    given = machine.Storage(address, nbytes)._array
    return tuple(row["text"].encode() for row in _engine.call("embedded_texts", {}, [given]).value["texts"])


_searched: dict[str, tuple[bytes, ...]] = {}


def _texts_with(name: str) -> Iterator[bytes]:
    """PTX in the libraries of this process, without those of vendors, that names the entry."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = dict.fromkeys(line.split(None, 5)[5].rstrip() for line in maps if line.count("/"))
    for path in paths:
        if path not in _searched:
            _searched[path] = ()
            if not _OF_VENDORS.search(path) and os.path.isfile(path):
                with open(path, "rb") as file:
                    holds = b".nv_fatbin" in file.read()
                if holds:
                    _searched[path] = tuple(row["text"].encode() for row in _engine.call("embedded_texts", {"file": path}).value["texts"])
        yield from (text for text in _searched[path] if name.encode() in text)


@lru_cache(maxsize=1024)
def element_formats(text: bytes, entry: str) -> dict[str, str]:
    """Formats of floats that an entry loads and stores through its parameters, where the PTX leaves no doubt."""
    halves = {kind for kind in ("bf16", "f16") if re.search(rf"[.\s]{kind}(x2)?\b".encode(), text)}
    names = {"f32": "fp32", "f64": "fp64", "b16": "", "u16": ""}
    if len(halves) == 1:
        names["b16"] = names["u16"] = {"bf16": "bf16", "f16": "fp16"}[halves.pop()]
    found = {}
    for parameter, types in ptx_accesses.element_types(text, entry).items():
        (kind,) = types if len(types) == 1 else ("",)
        if names.get(kind):
            found[parameter] = names[kind]
    return found


# ---- who is told ----


class Listener:
    """Tells watchers of launches: `watcher.driver_before(DriverLaunch)` gives what `driver_after(that)` is called with, or None;
    one that raises CannotKeep("...") for a kernel whose PTX is nowhere is told of it once."""

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        self._watchers: list[Any] = []
        self._lock = threading.Lock()
        self._running: dict[int, list[tuple[Any, Any]]] = {}
        self._numbers = 0
        self._callbacks = _Before(self._before), _After(self._after)

    def add(self, watcher: Any) -> str:
        """"", or why nothing will be told."""
        with self._lock:
            if not self._watchers:
                why = self._start()
                if why:
                    return why
            self._watchers.append(watcher)
        return ""

    def remove(self, watcher: Any) -> int:
        """How many launches of kernels without PTX there were since the first watcher came."""
        assert self._library is not None
        with self._lock:
            self._watchers.remove(watcher)
            without: int = self._library.assay_launches_without_ptx()
            if not self._watchers:
                self._library.assay_tell_no_launches()
            return without

    def _start(self) -> str:
        try:
            self._calls = cuda_driver.Calls()
            self._library = ctypes.CDLL(library_path())
        except OSError as error:
            return str(error)
        self._library.assay_tell_launches.restype = c_char_p
        self._library.assay_launches_without_ptx.restype = c_uint64
        self._library.assay_tell_otherwise.restype = c_void_p
        why: bytes | None = self._library.assay_tell_launches(*self._callbacks, _cupti())
        return why.decode() if why else ""

    def _before(self, pointer: Any) -> int:
        launch = DriverLaunch(self._calls, pointer.contents)
        if pointer.contents.kind == _UNKNOWN and _OF_TORCH.search(launch.name):
            return _NEVER_AGAIN
        kept, lost = [], False
        for watcher in list(self._watchers):
            try:
                state = watcher.driver_before(launch)
            except CannotKeep:
                lost = pointer.contents.kind == _UNKNOWN
                continue
            if state is not None:
                kept.append((watcher, state))
        if not kept:
            return _NEVER_AGAIN if lost else 0
        with self._lock:
            self._numbers += 1
            self._running[self._numbers] = kept
            return self._numbers

    def _after(self, number: int, status: int) -> None:
        with self._lock:
            kept = self._running.pop(number)
        for watcher, state in kept if status == 0 else ():
            watcher.driver_after(state)


@contextlib.contextmanager
def cupy_makes_ptx() -> Iterator[None]:
    """CuPy compiles to PTX inside, as for a GPU newer than itself, in place of machine code; what it has compiled before stays."""
    compiler = sys.modules.get("cupy.cuda.compiler")
    chosen = getattr(compiler, "_get_arch_for_options_for_nvrtc", None)
    if compiler is None or chosen is None:
        yield
        return

    def choose(*arguments: Any) -> tuple[str, str]:
        option, _ = chosen(*arguments)
        return option.replace("sm_", "compute_"), "ptx"

    before = os.environ.get("CUPY_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="assay-cupy-") as folder:  # the cache does not tell PTX from machine code
        os.environ["CUPY_CACHE_DIR"] = folder
        compiler._get_arch_for_options_for_nvrtc = choose  # type: ignore[attr-defined]
        try:
            yield
        finally:
            compiler._get_arch_for_options_for_nvrtc = chosen  # type: ignore[attr-defined]
            if before is None:
                del os.environ["CUPY_CACHE_DIR"]
            else:
                os.environ["CUPY_CACHE_DIR"] = before


def has_driver() -> bool:
    """Whether the NVIDIA driver can be opened, as the program may do it only later."""
    try:
        cuda_driver.Calls()
    except OSError:
        return False
    return True


def wait() -> None:
    """For all that was launched in this thread's context."""
    cuda_driver.Calls().call("cuCtxSynchronize")


def library_path() -> str:
    """What CUDA_INJECTION64_PATH may name: the one that it does name, else the wheel's or the build's."""
    here = pathlib.Path(__file__).absolute().parent
    injected = os.environ.get("CUDA_INJECTION64_PATH", "")
    candidates = [injected] if injected.endswith("libassay_capture.so") else []
    candidates += [str(folder / "libassay_capture.so") for folder in (here / "lib" / "standin", here.parent.parent / "standin")]
    for path in candidates:
        if os.path.exists(path):
            return path
    raise OSError("libassay_capture.so is not beside the package")


def _cupti() -> bytes:
    """A file of CUPTI's that pip has installed, or b""."""
    for folder in sys.path:
        for pattern in ("nvidia/cu13/lib/libcupti.so.1*", "nvidia/cuda_cupti/lib/libcupti.so.1*", "triton/backends/nvidia/lib/cupti/libcupti.so.1*"):
            for path in sorted(pathlib.Path(folder or ".").glob(pattern)) if folder else ():
                return str(path).encode()
    return b""


listener = Listener()
