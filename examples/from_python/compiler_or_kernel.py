"""A gradient that is wrong on Hopper and right elsewhere: kernel, compiler or assembler? Without a GPU, of flash-linear-attention's
issue 640: pip install torch triton flash-linear-attention.

The PTX's values are right, so the kernel's formula is, and what a GPU makes of it need not be: shared memory is written while a
wgmma that may still be in flight reads it. The kernel says nothing of shared memory: the compiler gave that tile one buffer.
"""
import torch
import triton

import assay.triton

with assay.triton.machine("sm_90", checks="all") as machine:
    from fla.ops.common import chunk_o

    chunk_o.TRITON_ABOVE_3_7_1 = True  # the library refuses the versions in question
    chunk_o.check_shared_mem = lambda which, index=None: which == "ada"  # the tiles of 64 of that issue
    tuner = chunk_o.chunk_bwd_kernel_dqkwg
    while not hasattr(tuner, "configs"):
        tuner = tuner.fn
    tuner.configs = [triton.Config({}, num_warps=4, num_stages=2)]

    torch.manual_seed(1)
    q, k, v, do, w, dv = (torch.randn(1, 128, 1, 100, dtype=torch.float16, device="cuda") for _ in range(6))
    h, dh = (torch.randn(1, 2, 1, 100, 100, dtype=torch.float16, device="cuda") for _ in range(2))
    g = -torch.rand(1, 2, 64, 1, device="cuda").cumsum(2).view(1, 128, 1)
    dq, dk, dw, dg = chunk_o.chunk_bwd_dqkwg(q, k, v, do, h, dh, w=w, g=g, dv=dv, scale=0.1)

    exact = -torch.einsum("ntv,nkv->ntk", dv.double().view(2, 64, 100), h.double().view(2, 100, 100)).view(1, 128, 1, 100)
    print(f"Triton {triton.__version__}: dw is off by {float((dw - exact).norm() / exact.norm()):.1e} of its size")
print(machine.text())
