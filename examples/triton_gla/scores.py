"""Scores inside a chunk, pair by pair: each decay is summed over the tokens between the pair."""
import triton
import triton.language as tl


@triton.jit
def scores_of(b_q, b_k, b_g, k, g, stride, t, length, K, BT: tl.constexpr, BK: tl.constexpr):
    """[BT, BT]: sum over the channels of q_i k_s exp(g_{s+1} + .. + g_i) for s <= i, else 0."""
    row, channel = tl.arange(0, BT), tl.arange(0, BK)
    span = tl.zeros([BT, BK], tl.float32)  # g_{s+1} + .. + g_i, from its last token back
    scores = tl.zeros([BT, BT], tl.float32)
    for back in range(BT):
        s = BT - 1 - back
        here = (channel < K) & (t + s < length)
        k_s = tl.load(k + (t + s) * stride + channel, mask=here, other=0.0).to(tl.float32)
        after = (channel < K) & (t + s + 1 < length) & (s + 1 < BT)
        g_after = tl.load(g + (t + s + 1) * stride + channel, mask=after, other=0.0).to(tl.float32)
        span = tl.where(row[:, None] > s, span + g_after[None, :], 0.0)
        column = tl.sum(b_q * k_s[None, :] * tl.exp(span), axis=1)
        scores = tl.where((row[:, None] >= s) & (row[None, :] == s), column[:, None], scores)
    return scores
