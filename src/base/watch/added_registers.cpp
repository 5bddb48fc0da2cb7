#include "src/base/watch/added_registers.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::watch {
namespace {

constexpr const char* kPrefix[] = {"%assay_h", "%assay_r", "%assay_l", "%assay_p"};
constexpr const char* kTypes[] = {".b16", ".b32", ".b64", ".pred"};

}  // namespace

void Code::line(std::string_view instruction) {
  text += fmt::format("\t{};\n", instruction);
  ++instructions;
}

void Code::label(std::string_view name) {
  text += fmt::format("{}:\n", name);
}

AddedRegisters::Class AddedRegisters::class_of(ptx::Type type) {
  using enum Class;
  if (type == ptx::Type::pred) return predicate;
  const int bytes = ptx::bytes_of(type);
  return bytes == 8 ? wide : bytes == 4 ? word : half;
}

const char* AddedRegisters::type_of(Class of) {
  return kTypes[static_cast<size_t>(of)];
}

std::string AddedRegisters::make(Class of) {
  const auto i = static_cast<size_t>(of);
  most_[i] = std::max(most_[i], ++used_[i]);
  return kPrefix[i] + std::to_string(used_[i] - 1);
}

std::string AddedRegisters::declarations() const {
  std::string text;
  for (size_t i = 0; i < most_.size(); ++i)
    if (most_[i]) text += fmt::format("\t.reg {} {}<{}>;\n", kTypes[i], kPrefix[i], most_[i]);
  return text;
}

}  // namespace assay::watch
