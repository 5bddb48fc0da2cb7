#include "src/verification/diagnosis/origin_sentence.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "src/base/program/source_place.h"

namespace assay {
namespace {

std::string opcode(const std::string& instruction) {
  return instruction.substr(0, instruction.find(' '));
}

std::string operand_values(const Origin& origin) {
  std::string text;
  for (const OriginOperand& o : origin.operands)
    text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", o.value);
  return text;
}

/// How far an input is from the value that keeps the output finite: |log| of their quotient.
double distance_to_finite(const InputElement& e) {
  if (e.nearest_finite.empty()) return INFINITY;
  const double quotient = std::strtod(e.nearest_finite.c_str(), nullptr) / e.value;
  return quotient > 0 ? std::fabs(std::log(quotient)) : std::numeric_limits<double>::max();
}

/// The input that need change least for a finite output, and its nearest such value; where no single input
/// helps, the one of largest magnitude.
std::string blamed_input(const Origin& origin) {
  if (origin.inputs.empty()) return "";
  const InputElement* blamed = &origin.inputs.front();
  for (const InputElement& e : origin.inputs)
    if (distance_to_finite(e) < distance_to_finite(*blamed)) blamed = &e;
  const std::string several =
      origin.inputs.size() > 8 ? fmt::format("of {} inputs, as ", origin.inputs.size()) : "";
  std::string text = fmt::format(" because {}{} = {:.6g}", several, blamed->element, blamed->value);
  if (!blamed->nearest_finite.empty()) text += fmt::format(" ({} would be finite)", blamed->nearest_finite);
  return text;
}

std::string missing_store_sentence(const MissingStore& missing, const Origin& origin, const ChainLink* read) {
  const std::string at = source_place(missing.at.where);
  std::string what = read ? fmt::format("{} at {} read memory that nothing wrote, on the way to {}",
                                        opcode(read->instruction), source_place(read->where), origin.element)
                          : fmt::format("{} was never written", origin.element);
  if (missing.why == MissingStore::Why::guarded)
    return what +
           fmt::format(
               ": the guard at {} turned thread ({},{},{}) of block ({},{},{}) away from the store at {}", at,
               missing.thread[0], missing.thread[1], missing.thread[2], missing.block[0], missing.block[1],
               missing.block[2], source_place(missing.store->where));
  if (missing.why == MissingStore::Why::early)
    return what + fmt::format(
                      ": thread ({},{},{}) of the block writes it at {}, and at {} no thread of another "
                      "warp is waited for",
                      missing.thread[0], missing.thread[1], missing.thread[2],
                      source_place(missing.store->where), at);
  if (missing.why == MissingStore::Why::misread)
    return what + fmt::format(
                      ": block ({},{},{}) was turned away from the store at {} by what it read from {}, "
                      "of which no thread reads some rows; which row is made at {}",
                      missing.block[0], missing.block[1], missing.block[2],
                      source_place(missing.store->where), missing.table, at);
  if (missing.why == MissingStore::Why::none)
    return what + fmt::format(": nothing in {} stores there; of {} no instruction is left",
                              missing.at.where.function, at);
  what += ": the stores at " + source_place(missing.store->where);
  what += missing.reached.empty() ? " go to other elements, some of them more than once"
                                  : " reach only " + missing.reached;
  return at == source_place(missing.store->where) ? what : what + ", by the index made at " + at;
}

}  // namespace

std::string origin_sentence(const OriginTrace& trace) {
  const Origin& origin = trace.origin;
  if (trace.missing)
    return missing_store_sentence(*trace.missing, origin,
                                  trace.unwritten_read ? &*trace.unwritten_read : nullptr);
  if (origin.kind == OriginKind::unwritten_memory && origin.instruction.empty())
    return fmt::format("{} was never written", origin.element);
  const std::string at = source_place(origin.where);
  const bool has_address = origin.instruction.find('[') != std::string::npos;
  if (origin.kind == OriginKind::unwritten_memory)
    return fmt::format("{} at {} {} that nothing wrote, on the way to {}", opcode(origin.instruction), at,
                       has_address ? "read memory" : "used a value", origin.element);
  if (origin.kind == OriginKind::input)
    return fmt::format("{} at {} took a value that is not finite from an input{}, on the way to {}",
                       opcode(origin.instruction), at, blamed_input(origin), origin.element);
  if (origin.kind == OriginKind::literal)
    return fmt::format("{} at {} used a literal that is not finite, on the way to {}",
                       opcode(origin.instruction), at, origin.element);
  std::string then;
  if (std::isinf(origin.result) && trace.nan_kind)
    then = fmt::format("; {} at {} made it NaN", name_of(*trace.nan_kind), source_place(trace.nan_at.where));
  return fmt::format("{} at {} got {} and gave {}{}{}, on the way to {}", opcode(origin.instruction), at,
                     operand_values(origin), origin.result, blamed_input(origin), then, origin.element);
}

}  // namespace assay
