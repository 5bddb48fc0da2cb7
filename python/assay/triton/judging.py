"""What a launch wrote, judged on the device: one flag, no waiting; what the launch had is kept on the device, too, if that says so."""
from __future__ import annotations

import ctypes
import struct
from ctypes import c_uint, c_uint64, c_void_p
from typing import Any

#: Tensors of a launch at most.
MOST = 64
_HEAD, _ROW = 40, 40
BYTES = _HEAD + MOST * _ROW

#: The table, by value: u64 rows, number of the launch, addresses of the flag, of two words of the host, of a count that no
#: other stream has; then rows of u64 from, to, bytes; u32 exponents of even words, of odd words, of low halves, nothing.
#: Sets the flag to the launch's number, where it is 0, if a word holds an exponent that is all ones. The block that is done
#: last tells the host flag and number, and copies the rows that have a `to` if the flag is this number: once in a run.
PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry judge(.param .align 8 .b8 table[%(bytes)d])
{
  .reg .pred %%p<8>; .reg .b32 %%r<32>; .reg .b64 %%d<20>;
  .shared .align 4 .b8 last[4];
  mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%ntid.x; mov.u32 %%r2, %%tid.x; mov.u32 %%r3, %%nctaid.x;
  mad.lo.u32 %%r4, %%r0, %%r1, %%r2;
  mul.lo.u32 %%r5, %%r1, %%r3;
  cvt.u64.u32 %%d10, %%r4; cvt.u64.u32 %%d11, %%r5;
  ld.param.u64 %%d1, [table];
  ld.param.u32 %%r23, [table+8];
  ld.param.u64 %%d13, [table+16];
  mov.u64 %%d3, table;
  mov.u64 %%d2, 0;
  mov.u32 %%r20, 0;
ROW:
  setp.ge.u64 %%p0, %%d2, %%d1;
  @%%p0 bra JUDGED;
  ld.param.u64 %%d4, [%%d3+40];
  ld.param.u64 %%d6, [%%d3+56];
  ld.param.u32 %%r6, [%%d3+64]; ld.param.u32 %%r7, [%%d3+68]; ld.param.u32 %%r8, [%%d3+72];
  or.b32 %%r9, %%r6, %%r7; or.b32 %%r9, %%r9, %%r8;
  setp.eq.u32 %%p0, %%r9, 0;
  @%%p0 bra NEXT;
  setp.eq.u32 %%p0, %%r6, 0; selp.b32 %%r16, 1, %%r6, %%p0;
  setp.eq.u32 %%p0, %%r7, 0; selp.b32 %%r17, 1, %%r7, %%p0;
  setp.eq.u32 %%p0, %%r8, 0; selp.b32 %%r18, 1, %%r8, %%p0;
  shr.u64 %%d7, %%d6, 4;
  mov.u64 %%d8, %%d10;
VECTOR:
  setp.ge.u64 %%p1, %%d8, %%d7;
  @%%p1 bra TAIL;
  shl.b64 %%d9, %%d8, 4; add.s64 %%d9, %%d9, %%d4;
  ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%d9];
%(vector)s
  add.s64 %%d8, %%d8, %%d11;
  bra VECTOR;
TAIL:
  setp.ne.u32 %%p1, %%r4, 0;
  @%%p1 bra NEXT;
  shl.b64 %%d8, %%d7, 4;
  mov.u32 %%r15, 0;
WORD:
  setp.ge.u64 %%p1, %%d8, %%d6;
  @%%p1 bra NEXT;
  add.s64 %%d9, %%d8, %%d4;
  ld.global.u16 %%r10, [%%d9];
  add.s64 %%d12, %%d8, 4;
  setp.gt.u64 %%p2, %%d12, %%d6;
  mov.u32 %%r11, 0;
  @%%p2 bra HALF;
  ld.global.u16 %%r11, [%%d9+2];
HALF:
  shl.b32 %%r11, %%r11, 16;
  or.b32 %%r10, %%r10, %%r11;
  setp.eq.u32 %%p2, %%r15, 0;
  selp.b32 %%r21, %%r6, %%r7, %%p2; selp.b32 %%r22, %%r16, %%r17, %%p2;
  and.b32 %%r14, %%r10, %%r21; setp.eq.u32 %%p3, %%r14, %%r22;
  @%%p3 mov.u32 %%r20, 1;
  and.b32 %%r14, %%r10, %%r8; setp.eq.u32 %%p3, %%r14, %%r18;
  @%%p3 mov.u32 %%r20, 1;
  xor.b32 %%r15, %%r15, 1;
  mov.u64 %%d8, %%d12;
  bra WORD;
NEXT:
  add.s64 %%d3, %%d3, %(row)d;
  add.s64 %%d2, %%d2, 1;
  bra ROW;
JUDGED:
  setp.eq.u32 %%p0, %%r20, 0;
  @%%p0 bra COUNT;
  atom.global.cas.b32 %%r24, [%%d13], 0, %%r23;
COUNT:
  membar.gl;
  bar.sync 0;
  setp.ne.u32 %%p4, %%r2, 0;
  @%%p4 bra COUNTED;
  ld.param.u64 %%d14, [table+32];
  sub.u32 %%r25, %%r3, 1;
  atom.global.inc.u32 %%r24, [%%d14], %%r25;
  membar.gl;
  setp.eq.u32 %%p5, %%r24, %%r25; selp.b32 %%r26, 1, 0, %%p5;
  st.shared.u32 [last], %%r26;
COUNTED:
  bar.sync 0;
  ld.shared.u32 %%r26, [last];
  setp.eq.u32 %%p5, %%r26, 0;
  @%%p5 ret;
  atom.global.cas.b32 %%r11, [%%d13], 0, 0;
  @%%p4 bra TOLD;
  ld.param.u64 %%d15, [table+24];
  st.global.v2.u32 [%%d15], {%%r11, %%r23};
TOLD:
  setp.ne.u32 %%p0, %%r11, %%r23;
  @%%p0 ret;
  cvt.u64.u32 %%d10, %%r2; cvt.u64.u32 %%d11, %%r1;
  mov.u64 %%d3, table;
  mov.u64 %%d2, 0;
COPY:
  setp.ge.u64 %%p0, %%d2, %%d1;
  @%%p0 ret;
  ld.param.u64 %%d4, [%%d3+40]; ld.param.u64 %%d5, [%%d3+48]; ld.param.u64 %%d6, [%%d3+56];
  setp.eq.u64 %%p0, %%d5, 0;
  @%%p0 bra COPIED;
  shr.u64 %%d7, %%d6, 4;
  mov.u64 %%d8, %%d10;
SIXTEEN:
  setp.ge.u64 %%p1, %%d8, %%d7;
  @%%p1 bra REST;
  shl.b64 %%d9, %%d8, 4; add.s64 %%d16, %%d9, %%d4; add.s64 %%d17, %%d9, %%d5;
  ld.global.v4.u32 {%%r10, %%r12, %%r13, %%r14}, [%%d16];
  st.global.v4.u32 [%%d17], {%%r10, %%r12, %%r13, %%r14};
  add.s64 %%d8, %%d8, %%d11;
  bra SIXTEEN;
REST:
  shl.b64 %%d8, %%d7, 4; add.s64 %%d8, %%d8, %%d10;
BYTE:
  setp.ge.u64 %%p1, %%d8, %%d6;
  @%%p1 bra COPIED;
  add.s64 %%d16, %%d8, %%d4; add.s64 %%d17, %%d8, %%d5;
  ld.global.u8 %%r6, [%%d16];
  st.global.u8 [%%d17], %%r6;
  add.s64 %%d8, %%d8, %%d11;
  bra BYTE;
COPIED:
  add.s64 %%d3, %%d3, %(row)d;
  add.s64 %%d2, %%d2, 1;
  bra COPY;
}
""" % {
    "bytes": BYTES,
    "row": _ROW,
    "vector": "\n".join(
        f"  and.b32 %r14, %r{word}, %r{mask}; setp.eq.u32 %p3, %r14, %r{value};\n  @%p3 mov.u32 %r20, 1;"
        for word in (10, 11, 12, 13)
        for mask, value in ((6 + word % 2, 16 + word % 2), (8, 18))
    ),
}

#: Exponents of even words, odd words, low halves.
EXPONENTS = {
    "fp32": (0x7F800000, 0x7F800000, 0),
    "fp64": (0, 0x7FF00000, 0),
    "bf16": (0x7F800000, 0x7F800000, 0x7F80),
    "fp16": (0x7C000000, 0x7C000000, 0x7C00),
}


_NONE = (0, 0, 0)
_ONE = struct.Struct("<QQQIII")


class Table(ctypes.Structure):
    """What the kernel is given."""

    class Row(ctypes.Structure):
        _fields_ = [
            ("from_", ctypes.c_uint64),
            ("to", ctypes.c_uint64),
            ("nbytes", ctypes.c_uint64),
            ("even", ctypes.c_uint32),
            ("odd", ctypes.c_uint32),
            ("low", ctypes.c_uint32),
            ("nothing", ctypes.c_uint32),
        ]

    _fields_ = [
        ("rows", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("flag", ctypes.c_uint64),
        ("host", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("row", Row * MOST),
    ]


class Judgement:
    """The judge's launch behind launches with the same tensors: but for its number it is made once."""

    __slots__ = ("_call", "_number", "_arguments", "_table")

    def __init__(self, driver, function, blocks: int, table: Table, stream: int):
        self._call, self._table = driver.call, table
        self._number = c_uint64.from_buffer(table, Table.number.offset)
        sizes = [c_uint(n) for n in (blocks, 1, 1, 256, 1, 1, 0)]
        self._arguments = (function, *sizes, c_void_p(stream), (c_void_p * 1)(ctypes.addressof(table)), None)

    def launch(self, number: int) -> None:
        """The driver copies the table."""
        self._number.value = number
        self._call("cuLaunchKernel", *self._arguments)


class Judge:
    """The kernel in this process's context."""

    def __init__(self, driver, flag: int, host: int, blocks: int = 264):
        self._driver, self._blocks, self._flag, self._host = driver, blocks, flag, host
        self._function = driver.function(PTX.encode(), "judge")

    def prepared(self, rows: list[Any], count: int, stream: int) -> Judgement:
        """`rows`: anything, from, to or 0, bytes, a format to judge or "". `count`: address of the stream's own count."""
        table = Table(rows=len(rows), flag=self._flag, host=self._host, count=count)
        for i, (_, from_, to, nbytes, dtype) in enumerate(rows):
            _ONE.pack_into(table, _HEAD + i * _ROW, from_, to, nbytes, *EXPONENTS.get(dtype, _NONE))
        return Judgement(self._driver, self._function, self._blocks, table, stream)
