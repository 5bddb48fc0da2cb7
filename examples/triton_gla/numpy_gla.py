"""gla in NumPy, float64 throughout: python numpy_gla.py [OUT] writes inputs and exact-to-float64 outputs as safetensors.

tests/data/triton_gla_{bf16,fp32}.{inputs,numpy}.safetensors come from here (NumPy 2.4, seed 20)."""
import json
import pathlib
import struct
import sys

import numpy as np

B, T, H, K, V = 1, 40, 2, 24, 20


def gla(q, k, v, g, initial_state, scale):
    """S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T, o_t = scale S_t^T q_t; q, k, g: [B, T, H, K], v: [B, T, H, V]."""
    S = initial_state.astype(np.float64)
    o = np.empty(v.shape)
    for t in range(q.shape[1]):
        S = np.exp(g[:, t])[..., None] * S + k[:, t][..., None] * v[:, t][..., None, :]
        o[:, t] = scale * np.einsum("bhk,bhkv->bhv", q[:, t], S)
    return o, S


def rounded(x, dtype):
    """float64 -> (float64 values of the format, stored bytes); bf16 by round to nearest even of the upper half of fp32."""
    x = x.astype(np.float32)
    if dtype == "fp32":
        return x.astype(np.float64), x.tobytes()
    bits = x.view(np.uint32)
    high = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return (high.astype(np.uint32) << 16).view(np.float32).astype(np.float64), high.tobytes()


def write(path, tensors):
    """tensors: name -> (safetensors type, shape, bytes)."""
    header, data = {}, b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = dict(dtype=kind, shape=list(shape), data_offsets=[len(data), len(data) + len(raw)])
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for dtype in ("bf16", "fp32"):
        draw = np.random.default_rng(20)
        raw = dict(q=draw.standard_normal((B, T, H, K)), k=draw.standard_normal((B, T, H, K)), v=draw.standard_normal((B, T, H, V)))
        # Gates of all strengths: mostly mild, some that forget everything, some that do nothing.
        strength = draw.choice([0, 0.01, 1, 8, 90, 1e4], size=(B, T, H, K), p=[0.1, 0.4, 0.4, 0.06, 0.03, 0.01])
        raw |= dict(g=-strength * draw.random((B, T, H, K)), initial_state=draw.standard_normal((B, H, K, V)))
        values, files = {}, {}
        for name, x in raw.items():
            kept = dtype if name in "qkv" else "fp32"
            values[name], stored = rounded(x, kept)
            files[name] = ("BF16" if kept == "bf16" else "F32", x.shape, stored)
        o, S = gla(**values, scale=K ** -0.5)
        write(out / f"triton_gla_{dtype}.inputs.safetensors", files)
        write(out / f"triton_gla_{dtype}.numpy.safetensors",
              dict(o=("F64", o.shape, o.tobytes()), final_state=("F64", S.shape, S.tobytes())))
