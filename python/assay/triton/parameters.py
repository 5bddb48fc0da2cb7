"""A launch's arguments as the entry's parameters: one `bytes` for each.

Triton describes arguments by a signature ("*bf16", "i32", "constexpr", "tensordesc<bf16[64, 64]>", tuples of
these). What an argument becomes in PTX is asked of the entry, so that versions of Triton need not be told apart.
"""

from __future__ import annotations

import ctypes
import re
import struct

_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_TMA_FORMATS = ("u8", "u16", "u32", "s32", "u64", "s64", "fp16", "fp32", "fp64", "bf16", "fp32-ftz", "tf32", "tf32-ftz")
# The compiler numbers some formats otherwise than the driver does.
_TMA_FORMAT_OF_COMPILER = {8: 10, 9: 8, 10: 9}


class ArgumentError(TypeError):
    """An argument that no GPU could be launched with."""


class NotOnDevice(ValueError):
    """A pointer to a tensor that the program left on the CPU; the sentence is Triton's."""


def flatten(signature, names, values, tensor_maps):
    """Pairs (name, type, value) in the entry's order, without what was compiled in.

    `tensor_maps`: what the compiler says of each descriptor; empty where descriptors are passed as pointers.
    """
    maps = iter(tensor_maps or ())
    yield from _flatten(list(signature), list(names), list(values), maps, bool(tensor_maps))


def _flatten(signature, names, values, maps, mapped):
    for kind, name, value in zip(signature, names, values):
        if isinstance(kind, tuple):
            inner = [f"{name}[{i}]" for i in range(len(kind))]
            yield from _flatten(kind, inner, value, maps, mapped)
        elif kind == "constexpr":
            continue
        elif kind.startswith("tensordesc"):
            yield from _descriptor(name, kind, value, next(maps) if mapped else None)
        else:
            yield name, kind, value


def _descriptor(name, kind, value, compiled):
    """A descriptor made on the host: a tensor map, or pointer, shape and strides; then shape and strides again."""
    shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
    if compiled is None:
        yield name, "*" + re.match(r"tensordesc(?:_im2col)?<([^[>]*)", kind).group(1), value.base
        for n in shape + strides:
            yield name, "i64", n
        if hasattr(value, "padding"):
            yield name, "i1", value.padding == "nan"
        if hasattr(value, "round_f32_to_tf32"):
            yield name, "i1", value.round_f32_to_tf32
    else:
        yield name, "nvTmaDesc", (value, compiled)
    for n in shape:
        yield name, "i32", n
    for n in strides:
        yield name, "i64", n


def pointer(name, value, storages):
    """The address that `value` stands for: an integer, None, or what has `data_ptr`."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    ask = getattr(value, "data_ptr", None)
    if ask is None:
        raise ArgumentError(f"argument {name}: a pointer must be an integer or have data_ptr(), not {type(value).__name__}")
    base = getattr(value, "base", value)  # Triton's TensorWrapper
    if storages.is_left_on_cpu(base):
        raise NotOnDevice(f"Pointer argument {name} cannot be accessed from Triton (cpu tensor?)")
    return ask()


def pack(name, kind, value, size, storages, tensor_map):
    """The bytes of one parameter of `size` bytes."""
    if kind.startswith("*"):
        return pointer(name, value, storages).to_bytes(8, "little")
    if kind == "nvTmaDesc":
        return _tensor_map(name, value, storages, tensor_map)
    if kind in _FLOATS or kind == "bf16":
        return _float(name, kind, value, size)
    try:
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    except (TypeError, ValueError):
        raise ArgumentError(f"argument {name}: expected an integer ({kind}), got {type(value).__name__}") from None


def _float(name, kind, value, size):
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"argument {name}: expected a number ({kind}), got {type(value).__name__}") from None
    if kind == "fp64":
        return struct.pack("<d", value)
    as_fp32 = ctypes.c_float(value)  # overflows to infinity, as a C cast does
    if kind == "bf16":  # truncated, as Triton's launchers do
        return bytes(as_fp32)[2:]
    if kind == "fp16":
        try:
            return struct.pack("<e", value)
        except OverflowError:
            raise ArgumentError(f"argument {name}: {value} does not fit fp16") from None
    return bytes(as_fp32)[:size]


def _tensor_map(name, value, storages, tensor_map):
    if hasattr(value, "tma_desc_cpu_ptr"):  # made by hand, in memory of the host
        return ctypes.string_at(value.tma_desc_cpu_ptr(), 128)
    descriptor, compiled = value
    shape = [int(n) for n in descriptor.shape]
    strides = [int(n) for n in descriptor.strides]
    if compiled.get("is_im2col"):
        raise ArgumentError(f"argument {name}: im2col descriptors made on the host are not known to the machine")
    element = compiled["elem_size"]
    if compiled["fp4_padded"]:
        shape[-1] *= 2
    number = compiled["elem_type"]
    number = _TMA_FORMAT_OF_COMPILER.get(number, number)
    if getattr(descriptor, "round_f32_to_tf32", False):
        number = 11
    box = list(compiled["block_size"])
    return tensor_map(
        pointer(name, descriptor.base, storages),
        _TMA_FORMATS[number],
        shape[::-1],
        [n * element for n in strides[-2::-1]],
        box[::-1],
        swizzle=compiled["swizzle"],
        fill="nan" if getattr(descriptor, "padding", "zero") == "nan" else "zeros",
    )
