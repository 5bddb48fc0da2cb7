"""Compiles kernel.py to PTX; no GPU is needed, only triton 3.6: python build.py [OUT]"""
import importlib
import pathlib
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = pathlib.Path(__file__).resolve().parent
ELEMENTS = {"bf16": "*bf16", "fp32": "*fp32"}
# A folder with a plan.json each. Its block is 32 warps threads, its dynamic shared memory is printed below.
BUILDS = {
    "sm_80": dict(scores="scores", dtypes=["bf16", "fp32"], arch=80, warps=2, stages=2, BT=16, BK=64, BV=32),
    "overflowing": dict(scores="scores_overflowing", dtypes=["bf16"], arch=80, warps=1, stages=1, BT=16, BK=16, BV=16),
}


def gla_chunk(scores):
    """The kernel, its scores taken from that module."""
    for name in ("scores", "kernel"):
        sys.modules.pop(name, None)
    sys.modules["scores"] = importlib.import_module(scores)
    return importlib.import_module("kernel").gla_chunk


def compiled(function, dtype, arch, warps, stages, sizes):
    element = ELEMENTS[dtype]
    constants = dict(sizes, PRECISION="tf32x3" if dtype == "fp32" else "tf32")
    signature = dict(q=element, k=element, v=element, g="*fp32", initial_state="*fp32", o=element, final_state="*fp32",
                     cu_seqlens="*i64", T="i32", H="i32", K="i32", V="i32", scale="fp32",
                     **{name: "constexpr" for name in constants})
    return triton.compile(ASTSource(function, signature, constants), target=GPUTarget("cuda", arch, 32),
                          options=dict(num_warps=warps, num_stages=stages))


def portable(ptx):
    """Without the DWARF sections and with paths that hold on any machine; .loc and every instruction stay."""
    text = ptx.split("\n\t.section\t.debug_")[0] + "\n"
    return text.replace(str(HERE), f"examples/{HERE.name}").replace(str(pathlib.Path(triton.__file__).parent), "triton")


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE)
    sys.path.insert(0, str(HERE))
    for name, build in BUILDS.items():
        function = gla_chunk(build.pop("scores"))
        (out / name).mkdir(parents=True, exist_ok=True)
        for dtype in build.pop("dtypes"):
            arch, warps, stages, *_ = build.values()
            made = compiled(function, dtype, arch, warps, stages, {key: build[key] for key in ("BT", "BK", "BV")})
            (out / name / f"gla_chunk.{dtype}.ptx").write_text(portable(made.asm["ptx"]))
            print(f"{name} {dtype}: {32 * warps} threads, {made.metadata.shared} bytes of shared memory")
