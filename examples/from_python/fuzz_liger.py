"""Liger's RMS norm, a kernel that no operator describes, without a GPU: pip install torch triton liger-kernel."""
import torch

import assay
import assay.triton

with assay.triton.machine("sm_90"):
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    def norm(x, weight):
        return LigerRMSNormFunction.apply(x, weight, 1e-6, 0.0, "llama", False)

    def exact(x, weight):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight

    inputs = {"x": assay.tensors(("B", "N"), ("fp32", "bf16")), "weight": assay.tensors(("N",), "fp32")}
    print(assay.fuzz(norm, inputs=inputs, reference=exact, sizes={"B": [1, 3], "N": [1, 64, 100, 257]}, time=60))
