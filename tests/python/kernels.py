"""PTX that the tests launch, and how."""
import numpy

from assay.machine import Module, Storage, run

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"

#: p[i] = f * p[i], i < n
SCALE = r"""
.visible .entry scale(.param .u64 p, .param .u32 n, .param .f32 f) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [f];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1; @%p1 bra L;
  mul.wide.s32 %rd2, %r5, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3]; mul.rn.f32 %f3, %f2, %f1; st.global.f32 [%rd3], %f3;
L: ret;
}
"""
#: *(float**)table[1] = 7, followed from a table of addresses
FOLLOW = r"""
.visible .entry follow(.param .u64 table) {
  .reg .b64 %rd<4>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [table]; ld.global.u64 %rd2, [%rd1+8];
  mov.f32 %f1, 0f40E00000; st.global.f32 [%rd2], %f1;
  ret;
}
"""
SPIN = r"""
.visible .entry spin() { L: bra L; }
"""
UNKNOWN = r"""
.visible .entry unknown() { .reg .f32 %f<2>; frobnicate.f32 %f1; ret; }
"""

MODULE = Module(HEAD + SCALE + FOLLOW + SPIN)


def word(value, size=8):
    return int(value).to_bytes(size, "little")


def scale(x, n, factor=2.0, *, storages=None, **options):
    """The launch on 8 blocks of 128 threads."""
    return run(
        MODULE,
        "scale",
        grid=(8, 1, 1),
        block=(128, 1, 1),
        arguments=[word(x.ctypes.data), word(n, 4), numpy.float32(factor).tobytes()],
        storages=[Storage.of(x, "x")] if storages is None else storages,
        **options,
    )
