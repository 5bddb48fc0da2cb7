"""The CUDA driver, as far as launches need it: opened when it is asked for, by libcuda's own names."""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Sequence

from .errors import BadInput

_SHARED_BYTES, _NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute
_COOPERATIVE, _CLUSTER = 2, 4  # CUlaunchAttributeID
_DEFAULT_SHARED = 48 * 1024
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6  # CUjit_option


class _Attribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("padding", c_uint), ("value", c_uint * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", c_uint),
    ]


class DriverError(RuntimeError):
    """A call that the driver refused. `code`: CUresult."""

    def __init__(self, what: str, code: int, name: str):
        super().__init__(f"{what}: {name}")
        self.code = code


class Calls:
    """libcuda's functions, in whatever context a thread has. Raises OSError where there is no driver."""

    def __init__(self) -> None:
        self.path = os.environ.get("ASSAY_CUDA_DRIVER") or "libcuda.so.1"
        self._library = ctypes.CDLL(self.path)

    def code(self, function: str, *arguments: Any) -> int:
        """What it returns; 0 is success."""
        returned: int = getattr(self._library, function)(*arguments)
        return returned

    def call(self, function: str, *arguments: Any) -> None:
        """Raises DriverError unless it succeeds."""
        code = self.code(function, *arguments)
        if code:
            text = c_char_p()
            named = self._library.cuGetErrorName(code, byref(text)) == 0 and text.value
            raise DriverError(function, code, named.decode() if named else f"error {code}")


class Driver(Calls):
    """libcuda with the first GPU's primary context: torch's own, where torch uses it. Raises BadInput without a GPU."""

    #: Whether the device writes to pinned memory of the host.
    pins = True

    def __init__(self) -> None:
        try:
            super().__init__()
        except OSError:
            path = os.environ.get("ASSAY_CUDA_DRIVER") or "libcuda.so.1"
            raise BadInput(f"no GPU: the NVIDIA driver's {path} cannot be opened; use backend=\"machine\"") from None
        device, count = c_int(), c_int()
        self._functions: dict[tuple[bytes, str], tuple[c_void_p, int]] = {}
        self._modules: dict[bytes, c_void_p] = {}
        self._lock = threading.Lock()
        try:
            self.call("cuInit", 0)
            self.call("cuDeviceGetCount", byref(count))
            self.call("cuDeviceGet", byref(device), 0)
            self.context = c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(self.context), device)
        except DriverError as error:
            raise BadInput(f"no GPU: {error}") from None
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        major, minor = c_int(), c_int()
        self.call("cuDeviceGetAttribute", byref(major), 75, device)
        self.call("cuDeviceGetAttribute", byref(minor), 76, device)
        #: "NVIDIA H200", "sm_90"
        self.name, self.arch = name.value.decode(), f"sm_{major.value}{minor.value}"

    def enter(self) -> None:
        """Makes the context this thread's."""
        self.call("cuCtxSetCurrent", self.context)

    def function(self, image: bytes, entry: str) -> c_void_p:
        """An entry of PTX or of a cubin, which is loaded once. Raises BadInput with the driver's log."""
        with self._lock:
            found = self._functions.get((image, entry))
            if found is None:
                function = c_void_p()
                self.call("cuModuleGetFunction", byref(function), self._module(image), entry.encode())
                found = self._functions[image, entry] = (function, _DEFAULT_SHARED)
        return found[0]

    def _module(self, image: bytes) -> c_void_p:
        module = self._modules.get(image)
        if module is None:
            module, log = c_void_p(), ctypes.create_string_buffer(4096)
            options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
            values = (c_void_p * 2)(ctypes.addressof(log), len(log))
            try:
                self.call("cuModuleLoadDataEx", byref(module), image + b"\0", 2, options, values)
            except DriverError as error:
                said = " ".join(log.value.decode(errors="replace").split())
                raise BadInput(f"the driver refuses this PTX: {error}: {said}") from None
            self._modules[image] = module
        return module

    def _allow_shared(self, key: tuple[bytes, str], shared_bytes: int) -> None:
        function, allowed = self._functions[key]
        if shared_bytes > allowed:
            self.call("cuFuncSetAttribute", function, _SHARED_BYTES, shared_bytes)
            self._functions[key] = (function, shared_bytes)

    def launch(
        self,
        image: bytes,
        entry: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[bytes],
        *,
        cluster: Sequence[int] | None = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
        stream: int = 0,
    ) -> None:
        """Enqueues a launch; `grid` counts blocks."""
        function = self.function(image, entry)
        self._allow_shared((image, entry), shared_bytes)
        kept = [ctypes.create_string_buffer(bytes(argument), max(1, len(argument))) for argument in arguments]
        pointers = (c_void_p * max(1, len(kept)))(*(ctypes.addressof(value) for value in kept))
        attributes = []
        if cluster and tuple(cluster) != (1, 1, 1):
            attributes.append(_Attribute(_CLUSTER, 0, (c_uint * 16)(*cluster)))
            if cluster[0] * cluster[1] * cluster[2] > 8:
                self.call("cuFuncSetAttribute", function, _NON_PORTABLE_CLUSTER, 1)
        if cooperative:
            attributes.append(_Attribute(_COOPERATIVE, 0, (c_uint * 16)(1)))
        if attributes:
            given = (_Attribute * len(attributes))(*attributes)
            config = _Config((c_uint * 3)(*grid), (c_uint * 3)(*block), shared_bytes, stream, given, len(attributes))
            self.call("cuLaunchKernelEx", byref(config), function, pointers, None)
        else:
            sizes = [c_uint(n) for n in (*grid, *block, shared_bytes)]
            self.call("cuLaunchKernel", function, *sizes, c_void_p(stream), pointers, None)

    def wait(self) -> None:
        self.call("cuCtxSynchronize")

    def allocate(self, nbytes: int) -> int:
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(max(1, nbytes)))
        return address.value

    def free(self, address: int) -> None:
        self.call("cuMemFree_v2", c_uint64(address))

    def copy(self, to: int, from_: int, nbytes: int, stream: int) -> None:
        """On the device, behind what the stream has."""
        self.call("cuMemcpyDtoDAsync_v2", c_uint64(to), c_uint64(from_), c_size_t(nbytes), c_void_p(stream))

    def upload(self, to: int, content: Any, nbytes: int) -> None:
        """`content`: bytes, or an address."""
        if nbytes:
            self.call("cuMemcpyHtoD_v2", c_uint64(to), content if isinstance(content, bytes) else c_void_p(content), c_size_t(nbytes))

    def download(self, address: int, nbytes: int) -> bytes:
        content = ctypes.create_string_buffer(max(1, nbytes))
        if nbytes:
            self.call("cuMemcpyDtoH_v2", content, c_uint64(address), c_size_t(nbytes))
        return content.raw[:nbytes]


_opened: Driver | None = None
_opening = threading.Lock()


def opened() -> Driver:
    """The driver of this process."""
    global _opened
    with _opening:
        if _opened is None:
            _opened = Driver()
        return _opened
