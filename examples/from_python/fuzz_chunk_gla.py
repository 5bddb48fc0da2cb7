"""flash-linear-attention's chunk_gla, forward and backward, without a GPU: pip install torch triton flash-linear-attention."""
import assay
import assay.triton

with assay.triton.machine("sm_90"):
    from fla.ops.gla import chunk_gla

    def gla(q, k, v, g, scale, initial_state=None, cu_seqlens=None):
        return chunk_gla(q, k, v, g, scale, initial_state, output_final_state=True, cu_seqlens=cu_seqlens)

    print(assay.fuzz("gla", gla, arithmetic="triton-chunk", gate_min=-16, sizes={"K": [32, 64], "V": [32, 64]}, time=120))
