"""Triton kernels of triton_test.py. Triton reads their source, so they lie in a file."""
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def copy_without_mask(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at))  # the line that reads too far


@triton.jit
def first_of_each(table, out, n):
    at = tl.program_id(0)
    tl.store(out + at, tl.load(tl.load(table + at).to(tl.pointer_type(tl.float32))))


@triton.autotune([triton.Config({"BLOCK": block}) for block in (32, 64)], key=["n"])
@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def says(x):
    tl.device_print("value", tl.load(x))


@triton.jit
def asserts(x):
    tl.device_assert(tl.load(x) > 0, "must be positive")
