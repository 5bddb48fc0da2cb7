#include "src/base/ptx/instruction_text.h"

#include <fmt/format.h>

namespace assay::ptx {
namespace {

std::string operand_text(const Function& f, const Operand& o) {
  using Kind = Operand::Kind;
  switch (o.kind) {
    case Kind::reg:
      return (!o.negated                              ? ""
              : f.registers[o.reg].type == Type::pred ? "!"
                                                      : "-") +
             f.registers[o.reg].name + (o.name.empty() ? "" : "." + o.name);
    case Kind::immediate:
      if (!o.is_float_literal) return std::to_string(static_cast<int64_t>(o.bits));
      return o.bits >> 32 ? fmt::format("0d{:016X}", o.bits) : fmt::format("0f{:08X}", o.bits);
    case Kind::address: {
      const std::string base = o.reg >= 0 ? f.registers[o.reg].name : o.name;
      return o.offset ? fmt::format("[{}+{}]", base, o.offset) : "[" + base + "]";
    }
    case Kind::vector: {
      std::string text;
      for (const Operand& e : o.elements) text += (text.empty() ? "" : ",") + operand_text(f, e);
      return "{" + text + "}";
    }
    default:
      return o.name;
  }
}

}  // namespace

std::string instruction_text(const Function& f, const Instruction& in) {
  std::string text = in.opcode;
  for (size_t i = 0; i < in.operands.size(); i++) text += (i ? ", " : " ") + operand_text(f, in.operands[i]);
  return text;
}

}  // namespace assay::ptx
