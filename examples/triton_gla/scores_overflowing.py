"""Scores inside a chunk as one product of scaled matrices, a known mistake: exp(-(g_1 + .. + g_s)) overflows."""
import triton
import triton.language as tl


@triton.jit
def scores_of(b_q, b_k, b_g, k, g, stride, t, length, K, BT: tl.constexpr, BK: tl.constexpr):
    """[BT, BT]: sum over the channels of q_i k_s exp(g_{s+1} + .. + g_i) for s <= i, else 0."""
    row = tl.arange(0, BT)
    since_begin = tl.cumsum(b_g, axis=0)
    scaled_q = b_q * tl.exp(since_begin)
    scaled_k = b_k * tl.exp(-since_begin)
    scores = tl.dot(scaled_q.to(tl.bfloat16), tl.trans(scaled_k.to(tl.bfloat16)))
    return tl.where(row[:, None] >= row[None, :], scores, 0.0)
