#include "tests/ptx/front_end.h"

#include <cctype>
#include <memory>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/printable.h"
#include "src/base/ptx/program.h"
#include "src/base/ptx/rewrite.h"
#include "src/base/vm/code.h"

namespace assay::ptx {
namespace {

const std::string path = "fuzz.ptx";

/// "path:line:column: what" in one printable line (what is wrong with a whole entry has no position).
void expect_position(const std::string& message) {
  size_t at = path.size();
  if (!message.starts_with(path + ":")) throw Broken("a message without the path: " + message);
  if (message.substr(at, 8) != ": entry ") {
    for (int number = 0; number < 2; ++number) {
      ++at;
      const size_t digits = message.find_first_not_of("0123456789", at) - at;
      if (digits == 0 || digits > 9 || message[at + digits] != ':')
        throw Broken("a message without a position: " + message);
      at += digits;
    }
  }
  for (const char c : message)
    if (std::iscntrl(static_cast<unsigned char>(c)) || printable(message) != message)
      throw Broken("a message that does not print: " + message);
}

/// The same instructions, but for the rounding of float arithmetic.
void expect_same(const Module& module, const Module& rewritten) {
  if (module.functions.size() != rewritten.functions.size()) throw Broken("rewriting changed the functions");
  for (size_t f = 0; f < module.functions.size(); ++f) {
    const auto &before = module.functions[f].body, &after = rewritten.functions[f].body;
    if (before.size() != after.size()) throw Broken("rewriting changed the number of instructions");
    for (size_t i = 0; i < before.size(); ++i) {
      if (after[i].opcode != make_rounding_explicit(before[i].opcode))
        throw Broken("rewriting made " + after[i].opcode + " of " + before[i].opcode);
      if (before[i].operands.size() != after[i].operands.size())
        throw Broken("rewriting changed the operands");
    }
  }
}

}  // namespace

std::string front_end(std::string_view text) {
  const std::string rewritten = make_rounding_explicit(text);
  if (make_rounding_explicit(rewritten) != rewritten) throw Broken("rewriting twice is not rewriting once");
  std::shared_ptr<const Module> module;
  try {
    module = std::make_shared<const Module>(parse(text, path));
  } catch (const BadInput& error) {
    expect_position(error.what());
    return error.what();
  }
  expect_same(*module, parse(rewritten, path));
  std::string said;
  for (const Function& function : module->functions) {
    if (!function.entry || !function.defined) continue;
    try {
      vm::decode(module, function.name);
    } catch (const BadInput& error) {
      expect_position(error.what());
      said += error.what() + std::string("\n");
    }
  }
  return said;
}

}  // namespace assay::ptx
