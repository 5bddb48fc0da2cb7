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


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    shifted = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * n + at, shifted / tl.sum(shifted, axis=0), mask=at < n)


@triton.jit
def softmax_with_tail(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0).to(tl.float32)
    shifted = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * n + at, shifted / tl.sum(shifted, axis=0), mask=at < n)


@triton.jit
def softmax_unshifted(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    grown = tl.exp(row)
    tl.store(out + tl.program_id(0) * n + at, grown / tl.sum(grown, axis=0), mask=at < n)


@triton.jit
def doubled_by(x, out, n, factor, BLOCK: tl.constexpr):
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(out + at, factor * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def recurrence(q, k, v, g, o, scale, T, H, K, V, BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr):
    b, h = tl.program_id(0) // H, tl.program_id(0) % H
    keys, values = tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_V)
    state = tl.zeros([BLOCK_K, BLOCK_V], tl.float32)
    for t in range(0, T):
        row = (b * T + t) * H + h
        decay = tl.exp(tl.load(g + row * K + keys, mask=keys < K, other=0.0))
        key = tl.load(k + row * K + keys, mask=keys < K, other=0.0)
        value = tl.load(v + row * V + values, mask=values < V, other=0.0)
        query = tl.load(q + row * K + keys, mask=keys < K, other=0.0) * scale
        state = state * decay[:, None] + key[:, None] * value[None, :]
        tl.store(o + row * V + values, tl.sum(state * query[:, None], axis=0), mask=values < V)


@triton.jit
def add_first(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(x), mask=at < n)
    tl.store(x + at, tl.load(out + at, mask=at < n), mask=at < n)
