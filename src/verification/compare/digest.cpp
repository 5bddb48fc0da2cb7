#include "src/verification/compare/digest.h"

#include <cmath>
#include <string_view>

namespace assay {
namespace {

struct Fnv1a {
  uint64_t state = 0xcbf29ce484222325;
  void byte(uint8_t b) { state = (state ^ b) * 0x100000001b3; }
  void word(uint64_t w) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(w >> (8 * i)));
  }
  void text(std::string_view t) {
    for (char c : t) byte(static_cast<uint8_t>(c));
    byte(0);
  }
};

}  // namespace

uint64_t digest(const TensorMap& outputs) {
  Fnv1a hash;
  for (const auto& [name, tensor] : outputs) {
    hash.text(name);
    hash.text(format(tensor.dtype).name);
    for (const Axis& axis : tensor.axes) hash.word(static_cast<uint64_t>(axis.size));
    for (int64_t i = 0; i < tensor.size(); ++i)
      hash.word(std::isnan(tensor.value(i)) ? ~uint64_t{0} : tensor.bits(i));
  }
  return hash.state;
}

}  // namespace assay
