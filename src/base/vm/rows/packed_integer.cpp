// Packed integers (PTX ISA 9.7.1, 9.7.16): 16-bit pairs, byte and half-word dot products, byte differences.
#include "src/base/vm/rows/lane_rows.h"

namespace assay::vm::ASSAY_LANES {
namespace {

/// Op on both 16-bit parts of two registers.
template <class V, class Op>
struct Pairwise {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const auto low = static_cast<uint16_t>(Op{}(static_cast<V>(a), static_cast<V>(b))),
               high = static_cast<uint16_t>(Op{}(static_cast<V>(a >> 16), static_cast<V>(b >> 16)));
    return static_cast<uint32_t>(high) << 16 | low;
  }
};
struct Sum {
  int operator()(int a, int b) const { return a + b; }
};
struct Least {
  int operator()(int a, int b) const { return a < b ? a : b; }
};
struct Most {
  int operator()(int a, int b) const { return a < b ? b : a; }
};
template <class Op>
struct Positive {
  int operator()(int a, int b) const {
    const int x = Op{}(a, b);
    return x < 0 ? 0 : x;
  }
};

template <class V, class Op>
void add_pair(std::vector<Row>& rows, const char* form, Op) {
  binary<B32, B32, B32>(rows, Flow::integer, {form}, Pairwise<V, Op>{});
}

/// dp4a and dp2a with signed or unsigned parts; `shift` selects the half of b that dp2a reads.
template <class A, class B, int parts, int shift>
struct Dot {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int i = 0; i < parts; ++i)
      c += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a >> (32 / parts * i)))) *
           static_cast<uint32_t>(static_cast<int32_t>(static_cast<B>(b >> (8 * i + shift))));
    return c;
  }
};
template <class F>
void add_dot(std::vector<Row>& rows, const char* form, F f) {
  ternary<B32, B32, B32, B32>(rows, Flow::integer, {form}, f);
}

uint32_t byte_difference(uint32_t a, uint32_t b, int i) {
  const uint32_t x = (a >> (8 * i)) & 0xff, y = (b >> (8 * i)) & 0xff;
  return x < y ? y - x : x - y;
}

}  // namespace

void add_packed_integer_rows(std::vector<Row>& rows) {
  add_pair<uint16_t>(rows, "add.{u16x2,s16x2}", Sum{});
  add_pair<uint16_t>(rows, "min.u16x2", Least{});
  add_pair<uint16_t>(rows, "max.u16x2", Most{});
  add_pair<int16_t>(rows, "min.s16x2", Least{});
  add_pair<int16_t>(rows, "max.s16x2", Most{});
  add_pair<int16_t>(rows, "{min.relu.s16x2,min.s16x2.relu}", Positive<Least>{});
  add_pair<int16_t>(rows, "{max.relu.s16x2,max.s16x2.relu}", Positive<Most>{});
  binary<S32, S32, S32>(rows, Flow::integer, {"{min.relu.s32,min.s32.relu}"}, Positive<Least>{});
  binary<S32, S32, S32>(rows, Flow::integer, {"{max.relu.s32,max.s32.relu}"}, Positive<Most>{});
  add_dot(rows, "dp4a.s32.u32", Dot<int8_t, uint8_t, 4, 0>{});
  add_dot(rows, "dp4a.u32.s32", Dot<uint8_t, int8_t, 4, 0>{});
  add_dot(rows, "dp2a.lo.u32.u32", Dot<uint16_t, uint8_t, 2, 0>{});
  add_dot(rows, "dp2a.lo.u32.s32", Dot<uint16_t, int8_t, 2, 0>{});
  add_dot(rows, "dp2a.lo.s32.u32", Dot<int16_t, uint8_t, 2, 0>{});
  add_dot(rows, "dp2a.lo.s32.s32", Dot<int16_t, int8_t, 2, 0>{});
  add_dot(rows, "dp2a.hi.u32.u32", Dot<uint16_t, uint8_t, 2, 16>{});
  add_dot(rows, "dp2a.hi.u32.s32", Dot<uint16_t, int8_t, 2, 16>{});
  add_dot(rows, "dp2a.hi.s32.u32", Dot<int16_t, uint8_t, 2, 16>{});
  add_dot(rows, "dp2a.hi.s32.s32", Dot<int16_t, int8_t, 2, 16>{});
  // The third operand fills bytes that a mask leaves out; without a mask there is none.
  ternary<B32, B32, B32, B32>(rows, Flow::integer, {"vabsdiff4.u32.u32.u32"},
                              [](uint32_t a, uint32_t b, uint32_t) {
                                uint32_t result = 0;
                                for (int i = 0; i < 4; ++i) result |= byte_difference(a, b, i) << (8 * i);
                                return result;
                              });
  ternary<B32, B32, B32, B32>(rows, Flow::integer, {"vabsdiff4.u32.u32.u32.add"},
                              [](uint32_t a, uint32_t b, uint32_t c) {
                                for (int i = 0; i < 4; ++i) c += byte_difference(a, b, i);
                                return c;
                              });
}

}  // namespace assay::vm::ASSAY_LANES
