"""Tensors of the caller as the engine takes them: where their storage lies, their format, shape and strides.

NumPy arrays are read directly, PyTorch's by their own methods (nothing is imported), everything else by DLPack.
"""
from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

import numpy

from . import _engine
from .errors import BadInput

#: The engine's names of formats, in its order: "fp64", "fp32", ..., "i64", "u8".
FORMATS: tuple[str, ...] = tuple(row["name"] for row in _engine.about()["formats"])
FORMAT_BYTES: dict[str, int] = {row["name"]: row["bytes"] for row in _engine.about()["formats"]}
_INDEX = {name: index for index, name in enumerate(FORMATS)}

#: Names of element types in NumPy, ml_dtypes and PyTorch. Of integers the size counts alone.
_FORMAT_OF = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "int8": "u8",
    "uint8": "u8",
    "bool": "u8",
}


def format_name(dtype: Any) -> str | None:
    """"bf16" of torch.bfloat16, numpy.dtype("float32") and the like; None where the engine has no such format."""
    name = str(dtype).rsplit(".", 1)[-1]
    if name in _INDEX:
        return name
    found = _FORMAT_OF.get(name)
    return found if found in _INDEX else None


@dataclass
class Lies:
    """A tensor where it lies: all in bytes but `shape`, `strides` and `offset` (elements)."""

    address: int
    nbytes: int
    format: str | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    writable: bool
    keep: Any
    dtype: str


def _of_numpy(array: numpy.ndarray) -> Lies:
    owner = array
    while isinstance(owner.base, numpy.ndarray):
        owner = owner.base
    low, high = _byte_bounds(owner)
    if array.size and not low <= array.__array_interface__["data"][0] < max(high, low + 1):
        low, high = _byte_bounds(array)  # a view that leaves its base, as stride tricks make
    elif array.size:
        first, last = _byte_bounds(array)
        low, high = min(low, first), max(high, last)
    item = array.itemsize
    if any(step % item for step in array.strides) or (array.__array_interface__["data"][0] - low) % item:
        raise BadInput("an array whose elements do not lie whole elements apart: copy it first, as with numpy.array(x)")
    return Lies(
        low,
        high - low,
        format_name(array.dtype) if array.dtype.isnative else None,
        array.shape,
        tuple(step // item for step in array.strides),
        (array.__array_interface__["data"][0] - low) // item,
        array.flags.writeable,
        array,
        str(array.dtype),
    )


def _byte_bounds(array: numpy.ndarray) -> tuple[int, int]:
    first = array.__array_interface__["data"][0]
    if array.size == 0:
        return first, first
    low = first + sum((n - 1) * step for n, step in zip(array.shape, array.strides) if step < 0)
    high = first + sum((n - 1) * step for n, step in zip(array.shape, array.strides) if step > 0)
    return low, high + array.itemsize


def _of_torch(tensor: Any) -> Lies:
    if str(tensor.layout) != "torch.strided":
        raise BadInput(f"a tensor of layout {tensor.layout}: make it dense, as with x.to_dense()")
    if tensor.device.type == "meta":
        raise BadInput("a tensor on the device meta, which has no values")
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    storage = tensor.untyped_storage()
    return Lies(
        storage.data_ptr(),
        storage.nbytes(),
        format_name(tensor.dtype),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        True,
        tensor,
        str(tensor.dtype).rsplit(".", 1)[-1],
    )


def _device_of_torch(tensor: Any) -> Any:
    """Where it lies: on the machine (assay.triton) tensors in the processor's memory say that they are on the GPU."""
    return sys.modules["torch"]._C.TensorBase.device.__get__(tensor)


def is_torch(value: Any) -> bool:
    """A tensor of PyTorch, told without importing it."""
    return hasattr(value, "untyped_storage") and hasattr(value, "storage_offset") and hasattr(value, "stride")


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

#: DLDataTypeCode: signed, unsigned, float, bfloat, bool; 10 and 12 are e4m3fn and e5m2.
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_CPU = {1, 3, 11}  # the processor's memory, pinned for CUDA or ROCm too


def _of_dlpack(value: Any) -> Lies:
    device = value.__dlpack_device__()
    if int(device[0]) not in _CPU:
        raise BadInput(f"a tensor of {type(value).__module__} on a device (DLPack's number {int(device[0])}): bring it to the processor's memory first")
    capsule = value.__dlpack__()  # unversioned: read while it lives, and never taken over
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    else:
        strides = tuple(int(numpy.prod(shape[i + 1 :], dtype=numpy.int64)) for i in range(len(shape)))
    name = {10: "float8_e4m3fn", 12: "float8_e5m2"}.get(tensor.code) or f"{_CODES.get(tensor.code, 'type')}{tensor.bits}"
    if name == "bool8":
        name = "bool"
    width = (tensor.bits * tensor.lanes + 7) // 8
    first = (tensor.data or 0) + tensor.byte_offset
    low = first + width * sum((n - 1) * step for n, step in zip(shape, strides) if n > 1 and step < 0)
    high = first + width * (1 + sum((n - 1) * step for n, step in zip(shape, strides) if n > 1 and step > 0))
    if 0 in shape:
        low = high = first
    return Lies(
        low,
        high - low,
        format_name(name) if tensor.lanes == 1 else None,
        shape,
        strides,
        (first - low) // width if width else 0,
        True,
        (value, capsule),
        name,
    )


def lies(value: Any) -> Lies:
    """Where a tensor lies. Raises BadInput for what is none, or lies where it cannot be read."""
    if isinstance(value, numpy.ndarray):
        return _of_numpy(value)
    if is_torch(value):
        device = _device_of_torch(value)
        if device.type != "cpu":
            raise BadInput(f"a tensor on {device}: bring it to the processor's memory first, as with x.cpu()")
        return _of_torch(value)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _of_dlpack(value)
    raise BadInput(f"a {type(value).__name__} is no tensor: a NumPy array or an object with DLPack was expected")


def array_of(
    name: str,
    address: int,
    nbytes: int,
    *,
    format: str | None,
    shape: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
    offset: int = 0,
    writable: bool = True,
    axes: tuple[str, ...] | None = None,
) -> _engine.Array:
    """assay_array. Without a format: bytes of any kind."""
    array = _engine.Array(
        struct_bytes=ctypes.sizeof(_engine.Array),
        name=name.encode("utf-8", "replace"),
        address=address,
        bytes=nbytes,
        writable=writable,
        format=-1 if format is None else _INDEX[format],
    )
    if format is None:
        return array
    if len(shape) > len(array.shape):
        raise BadInput(f"{name}: {len(shape)} axes; at most {len(array.shape)} are possible")
    array.rank, array.offset = len(shape), offset
    array.shape[: len(shape)], array.strides[: len(strides)] = shape, strides
    if axes:
        array.axes = ",".join(axes).encode()
    return array


def kept_array(name: str, host: Any, function: str) -> _engine.Array:
    """assay_array of a tensor on the host, which lives as long; `function` is whose tensor cannot be read."""
    try:
        at = lies(host)
        array = array_of(
            name, at.address, at.nbytes, format=at.format, shape=at.shape, strides=at.strides, offset=at.offset
        )
    except BadInput as error:
        raise BadInput(f"{function}: {name}: {error}") from None
    array.keep = host
    return array
