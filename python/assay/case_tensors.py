"""Cases as tensors of PyTorch or arrays of NumPy."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Sequence

from . import _engine, _tensors
from .errors import BadInput


class InTorch:
    """Cases as tensors of PyTorch."""

    def __init__(self, torch: Any, device: str):
        self.torch, self.device = torch, device

    def of(self, array: _engine.Array, name: str) -> Any:
        """A copy, with the strides that the case gives it."""
        torch = self.torch
        dtype = {
            "fp64": torch.float64,
            "fp32": torch.float32,
            "fp16": torch.float16,
            "bf16": torch.bfloat16,
            "i64": torch.int64,
            "i32": torch.int32,
        }[_tensors.FORMATS[array.format]]
        rank = array.rank
        shape, strides = tuple(array.shape[:rank]), tuple(array.strides[:rank])
        host = torch.empty(array.bytes, dtype=torch.uint8)
        if array.bytes:
            ctypes.memmove(host.data_ptr(), array.address, array.bytes)
        storage = host.to(self.device) if self.device != "cpu" else host
        return torch.as_strided(storage.view(dtype), shape, strides, array.offset)

    def changed(self, tensor: Any, array: _engine.Array) -> None:
        """What the function left of an input, to the engine, where that is another."""
        if not array.bytes:
            return
        storage = tensor.detach().as_strided((array.bytes // tensor.element_size(),), (1,), 0)
        host = storage.contiguous().cpu()
        ctypes.memmove(array.address, host.data_ptr(), array.bytes)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.torch.Tensor)

    def permuted(self, tensor: Any, order: Sequence[int]) -> Any:
        return tensor.permute(*order).contiguous()

    def back(self, tensor: Any, order: Sequence[int]) -> Any:
        return tensor.permute(*[order.index(i) for i in range(len(order))])

    def host(self, tensor: Any) -> Any:
        return tensor.detach().cpu() if _tensors._device_of_torch(tensor).type != "cpu" else tensor.detach()


class InNumpy:
    """Cases as arrays of NumPy; no bf16."""

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy
        self._storages: dict[str, Any] = {}

    def of(self, array: _engine.Array, name: str) -> Any:
        names = {"fp64": "f8", "fp32": "f4", "fp16": "f2", "i64": "i8", "i32": "i4"}
        kind = self.numpy.dtype(names[_tensors.FORMATS[array.format]])
        storage = self.numpy.empty(array.bytes // kind.itemsize, kind)
        if array.bytes:
            ctypes.memmove(storage.ctypes.data, array.address, array.bytes)
        self._storages[name] = storage
        rank = array.rank
        strides = [step * kind.itemsize for step in array.strides[:rank]]
        return self.numpy.lib.stride_tricks.as_strided(storage[array.offset :], array.shape[:rank], strides)

    def changed(self, tensor: Any, array: _engine.Array) -> None:
        if array.bytes:
            ctypes.memmove(array.address, self._storages[array.name.decode()].ctypes.data, array.bytes)

    def is_tensor(self, value: Any) -> bool:
        return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")

    def permuted(self, tensor: Any, order: Sequence[int]) -> Any:
        return self.numpy.ascontiguousarray(tensor.transpose(order))

    def back(self, tensor: Any, order: Sequence[int]) -> Any:
        return self.numpy.asarray(tensor).transpose([order.index(i) for i in range(len(order))])

    def host(self, tensor: Any) -> Any:
        return tensor


def tensors_for(kind: str | None, backend: str) -> Any:
    torch = sys.modules.get("torch")
    if kind is None:
        kind = "torch" if torch is not None else "numpy"
    if kind == "numpy":
        return InNumpy()
    if kind != "torch":
        raise BadInput(f"tensors: {kind}: torch or numpy")
    import torch

    return InTorch(torch, "cuda" if backend in ("machine", "cuda") else "cpu")
