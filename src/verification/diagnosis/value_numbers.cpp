#include "src/verification/diagnosis/value_numbers.h"

#include <unordered_map>

namespace assay {
namespace {

struct Hash {
  size_t operator()(const std::vector<uint64_t>& key) const {
    uint64_t hash = 0xcbf29ce484222325;
    for (const uint64_t word : key) hash = (hash ^ word) * 0x9e3779b97f4a7c15, hash ^= hash >> 29;
    return hash;
  }
};

}  // namespace

std::vector<uint32_t> value_numbers(const vm::ValueSlice& slice) {
  enum : uint64_t { made, input, other };
  const size_t count = slice.instances.size();
  std::vector<uint32_t> same(count);  ///< of literals too
  std::vector<uint8_t> is_of_source(count);
  std::unordered_map<std::vector<uint64_t>, uint32_t, Hash> known;
  std::vector<uint64_t> key;
  for (size_t n = count; n-- > 0;) {  // producers stand behind their consumers
    const vm::SliceInstance& i = slice.instances[n];
    key.assign({static_cast<uint64_t>(i.launch), static_cast<uint64_t>(i.function),
                static_cast<uint64_t>(i.instruction), i.half, i.bits});
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const vm::SliceOperand& from = slice.operands[o];
      const auto maker = static_cast<size_t>(from.made_by);
      if (from.made_by >= 0)
        key.insert(key.end(), {made, same[maker]}), is_of_source[n] |= is_of_source[maker];
      else if (from.input >= 0)
        key.insert(key.end(), {input, static_cast<uint64_t>(from.input)}), is_of_source[n] = 1;
      else
        key.insert(key.end(), {other, from.bits});
    }
    same[n] = known.try_emplace(key, static_cast<uint32_t>(n)).first->second;
  }
  std::vector<uint32_t> numbers(count);
  for (size_t n = 0; n < count; ++n) numbers[n] = is_of_source[n] ? same[n] : static_cast<uint32_t>(n);
  return numbers;
}

}  // namespace assay
