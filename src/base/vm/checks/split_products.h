// A run in which every product is rounded before its sum: fma.rn.f32 is mul.rn and add.rn. Of a sum that two
// lanes both make, a b from one and c d from the other, compilers fuse each lane's own product, so that the
// two hold one number with different roundings, and store both to one place. Which stays is not said, and
// does not matter: where products are split, they store the same bits. What differs there too is a fault.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include "src/base/vm/code.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/trace.h"
#include "src/base/vm/warp.h"

namespace assay::vm {

class SplitProducts : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::before | hook::after;

  void before(Warp& warp, const Op& op, uint32_t mask) {
    const Signature& s = warp.block->context->code->signature(op);
    splits_ = s.form.operation == ptx::Operation::fma && s.meaning->result == ptx::Type::f32 &&
              !s.form.packed && !s.form.saturates && s.form.rounding == ptx::Rounding::rn;
    if (!splits_) return;
    const auto kept = [&](uint32_t bits) {
      return s.form.ftz && (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
    };
    const auto rounded = [&](float x) { return std::bit_cast<float>(kept(std::bit_cast<uint32_t>(x))); };
    each_lane(mask, [&](int lane) {
      const auto source = [&](int i) { return std::bit_cast<float>(kept(warp.word(op.s[i])[lane])); };
      const float product = rounded(source(0) * source(1));
      results_[static_cast<size_t>(lane)] = std::bit_cast<uint32_t>(rounded(product + source(2)));
    });
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    if (splits_)
      each_lane(mask, [&](int lane) { warp.word(op.d)[lane] = results_[static_cast<size_t>(lane)]; });
  }

 private:
  bool splits_ = false;
  std::array<uint32_t, 32> results_{};
};

}  // namespace assay::vm
