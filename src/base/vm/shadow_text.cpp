#include "src/base/vm/shadow_text.h"

#include <algorithm>
#include <memory>

#include "src/base/vm/code.h"

namespace assay::vm {
namespace {

BySlot<char> float_slots(const Code& code) {
  BySlot<char> slots(code);
  for (const Op& op : code.ops)
    for (int k = 0; op.row && k < op.source_count && k < 3; ++k) {
      const ptx::Type type = op.row->sources[static_cast<size_t>(k)];
      if (type == ptx::Type::f32 || (op.row->flow == Flow::copy && type == ptx::Type::b32) ||
          op.row->flow == Flow::select)
        slots.set(op.s[k], 1);
    }
  return slots;
}

bool makes_wide(const Code& code) {
  return std::ranges::any_of(code.ops,
                             [](const Op& op) { return op.row && op.row->result == ptx::Type::f64; });
}

}  // namespace

const ShadowText& shadow_text(const Code& code) {
  std::call_once(code.shadow_text.once, [&] {
    code.shadow_text.made =
        std::make_shared<const ShadowText>(ShadowText{float_slots(code), makes_wide(code)});
  });
  return *code.shadow_text.made;
}

}  // namespace assay::vm
