"""Gated linear attention in chunks of BT tokens; one program per sequence, head and BV value channels.

    S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T,    o_t = scale S_t^T q_t

q, k, g: [B, T, H, K]; v, o: [B, T, H, V]; initial_state, final_state: fp32 [N, H, K, V]; K <= BK. Packed sequences: B = 1
and cu_seqlens, int64 [N + 1]; where it is null, N = B sequences have T tokens each.

Every decay is the exponential of a sum of log decays over exactly the tokens that it spans. Such a sum is never positive, so
that no exponential exceeds 1, and its rounding is small against the decay itself, however strong the gates around it are.
"""
import triton
import triton.language as tl
from scores import scores_of


@triton.jit
def gla_chunk(q, k, v, g, initial_state, o, final_state, cu_seqlens, T, H, K, V, scale,
              BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, PRECISION: tl.constexpr):
    head, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * BV
    sequence = head // H
    if cu_seqlens.to(tl.int64) != 0:
        begin = tl.load(cu_seqlens + sequence)
        length = (tl.load(cu_seqlens + sequence + 1) - begin).to(tl.int32)
    else:
        begin = sequence * T
        length = T
    first = begin * H + head % H
    stride_k, stride_v = H.to(tl.int64) * K, H.to(tl.int64) * V
    q, k, g = q + first * K, k + first * K, g + first * K
    v, o = v + first * V, o + first * V

    state = tl.make_block_ptr(initial_state + head * K * V, (K, V), (V, 1), (0, column), (BK, BV), (1, 0))
    b_S = tl.load(state, boundary_check=(0, 1), padding_option="zero")
    for t in range(0, length, BT):
        tile_k = tl.make_block_ptr(k, (length, K), (stride_k, 1), (t, 0), (BT, BK), (1, 0))
        tile_q = tl.make_block_ptr(q, (length, K), (stride_k, 1), (t, 0), (BT, BK), (1, 0))
        tile_g = tl.make_block_ptr(g, (length, K), (stride_k, 1), (t, 0), (BT, BK), (1, 0))
        tile_v = tl.make_block_ptr(v, (length, V), (stride_v, 1), (t, column), (BT, BV), (1, 0))
        tile_o = tl.make_block_ptr(o, (length, V), (stride_v, 1), (t, column), (BT, BV), (1, 0))
        b_q = tl.load(tile_q, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b_k = tl.load(tile_k, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b_g = tl.load(tile_g, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b_v = tl.load(tile_v, boundary_check=(0, 1), padding_option="zero")
        b_after = tl.load(tl.advance(tile_g, (1, 0)), boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b_after = tl.where(tl.arange(0, BT)[:, None] < BT - 1, b_after, 0.0)

        since_begin = tl.exp(tl.cumsum(b_g, axis=0))
        until_end = tl.exp(tl.cumsum(b_after, axis=0, reverse=True))
        b_o = tl.dot((b_q * since_begin).to(b_v.dtype), b_S.to(b_v.dtype), input_precision=PRECISION)
        b_A = scores_of(b_q, b_k, b_g, k, g, stride_k, t, length, K, BT, BK)
        b_o = tl.dot(b_A.to(b_v.dtype), b_v, b_o, input_precision=PRECISION)
        tl.store(tile_o, (b_o * scale).to(o.dtype.element_ty), boundary_check=(0, 1))

        b_S *= tl.exp(tl.sum(b_g, axis=0))[:, None]
        b_S = tl.dot(tl.trans((b_k * until_end).to(b_v.dtype)), b_v, b_S, input_precision=PRECISION)
    state = tl.make_block_ptr(final_state + head * K * V, (K, V), (V, 1), (0, column), (BK, BV), (1, 0))
    tl.store(state, b_S, boundary_check=(0, 1))
