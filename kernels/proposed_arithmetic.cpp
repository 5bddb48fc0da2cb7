#include "kernels/proposed_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "kernels/declared_arithmetic.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/form.h"
#include "src/base/vm/matrix_form.h"

namespace assay {
namespace {

using nlohmann::json;

/// One token after the other; dg as libraries sum it, q dq - k dk over the tokens from its own to the end:
/// dq and dk are sums of V products with the scale, (V + 2) 2^-24 each, their products with q and k round
/// once, T terms are added.
constexpr const char* kRecurrentText = R"({
  "preset": "fp32-recurrent",
  "backward": {"gate_sums": "(V + T + 4) * 2^-24"}
})";
/// The same of delta rules: v - S^T k rounds twice and is a sum of K products. For gradients it is stored
/// in the inputs' format, and S made of it again; the first part of dk, dv on its way into the second, and
/// the parts of dq, dk, dv by blocks are stored, too.
constexpr const char* kRuleRecurrent = R"({
  "preset": "fp32-recurrent",
  "write": "2 * 2^-24",
  "removal": "(K + 3) * 2^-24",
  "backward": {
    "state": {"write": "u + 3 * 2^-24", "removal": "u + (K + 4) * 2^-24", "readout": "u + (V + 8) * 2^-24"},
    "adjoint": {"readout": "2 * u + (V + 8) * 2^-24"},
    "value_readout": "u + (K + 4) * 2^-24",
    "inner": "u + (K + V + 8) * 2^-24"
  }
})";

/// Operators that presets describe whole: where matrices are multiplied, and where none are ("": not known).
struct OperatorRow {
  std::string_view op;
  const char *chunked, *recurrent;
};
constexpr OperatorRow kOperatorRows[] = {
    {"gla", "triton-chunk", kRecurrentText},
    {"simple_gla", "triton-chunk", kRecurrentText},
    {"retention", "triton-chunk", kRecurrentText},
    {"lightning_attn", "triton-chunk", kRecurrentText},
    {"linear_attn", "triton-chunk", kRecurrentText},
    {"rwkv6", "triton-chunk", kRecurrentText},
    {"delta_rule", "triton-delta-chunk", kRuleRecurrent},
    {"gated_delta_rule", "triton-delta-chunk", kRuleRecurrent},
    {"kda", "triton-kda-chunk", kRuleRecurrent},
    {"gsa", "triton-gsa-chunk", ""},
};

/// What rounds: its fields of arithmetic.def, and in words.
enum class Source { product, rounding, exponential, quotient, scan };
struct SourceRow {
  Source kind;
  const char *field, *words;
};
constexpr SourceRow kSources[] = {
    {Source::product, "readout, write, removal", "products of matrices of {0}, summed in {1}"},
    {Source::rounding, "readout, write: u for each on an operand's way", "rounded to {0}"},
    {Source::exponential, "decay, or write_decayed and readout_decayed: 2^-22", "an exponential, 2 ulp"},
    {Source::quotient, "divide: 2^-22", "a quotient"},
    {Source::scan, "prefix_per_nat, gate_prefix, chunk",
     "a sum over tokens, by shuffles between lanes: decays, or a gate's gradient, are differences of such "
     "sums"},
};

struct Rounded {
  Source kind;
  std::string first, second;  ///< formats
};

/// Of a type that is narrower than fp32; "" of others.
std::string narrow(ptx::Type type) {
  switch (type) {
    case ptx::Type::bf16:
    case ptx::Type::bf16x2:
      return "bf16";
    case ptx::Type::f16:
    case ptx::Type::f16x2:
      return "fp16";
    case ptx::Type::tf32:
      return "tf32";
    default:
      return "";
  }
}

std::optional<Rounded> conversion_of(const ptx::Form& form) {
  // Formats of 8 bits are no types of a register: the one named is the other's; values saturate into them.
  if (form.type_count == 1 && form.saturates && ptx::is_float(form.type()))
    return Rounded{Source::rounding, "8 bits", ""};
  if (form.type_count < 2 || !ptx::is_float(form.type())) return std::nullopt;
  const std::string into = narrow(form.types[0]);
  if (into.empty() || into == narrow(form.type())) return std::nullopt;
  return Rounded{Source::rounding, into, ""};
}

std::optional<Rounded> rounding_of(const ptx::Instruction& in) {
  using ptx::Operation;
  if (vm::is_matrix_product(in.form.operation)) {
    const std::vector<vm::Element> formats = vm::elements_of(in);
    if (formats.size() < 2) return std::nullopt;
    const auto name = [&](size_t i) { return std::string(vm::format_of(formats[i]).name); };
    return Rounded{Source::product, name(1), name(0)};
  }
  switch (in.form.operation) {
    case Operation::cvt:
      return conversion_of(in.form);
    case Operation::ex2:
      return Rounded{Source::exponential, "", ""};
    case Operation::rcp:
    case Operation::div:
      if (in.form.type() != ptx::Type::f32) return std::nullopt;
      return Rounded{Source::quotient, "", ""};
    case Operation::shfl:  // from a lane below
      if (ptx::with_part(in.opcode, "up", "") == in.opcode) return std::nullopt;
      return Rounded{Source::scan, "", ""};
    default:
      return std::nullopt;
  }
}

std::string line_of(const ptx::Module& module, const ptx::Instruction& in) {
  if (in.line < 0) return "";
  const ptx::Line& at = module.lines[static_cast<size_t>(in.line)];
  if (at.file < 0) return "";
  const std::string& file = module.files[static_cast<size_t>(at.file)];
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), at.line);
}

struct Found {
  Rounded rounded;
  RoundingPlace place;
};

/// Every place once, in the order of the text, whichever launches share its module.
std::vector<Found> places_of(const std::vector<ptx::Module>& modules) {
  std::vector<Found> found;
  for (const ptx::Module& module : modules) {
    const size_t first = found.size();
    for (const ptx::Function& f : module.functions) {
      if (!f.refused.empty()) throw BadInput(f.refused);
      for (const ptx::Instruction& in : f.body) {
        const auto rounding = rounding_of(in);
        if (!rounding) continue;
        const SourceRow& row = kSources[static_cast<size_t>(rounding->kind)];
        RoundingPlace place{f.name,
                            line_of(module, in),
                            in.opcode,
                            1,
                            fmt::format(fmt::runtime(row.words), rounding->first, rounding->second),
                            row.field};
        const auto same = [&](const Found& other) {
          return other.place.kernel == place.kernel && other.place.line == place.line &&
                 other.place.instruction == place.instruction;
        };
        const auto known =
            std::find_if(found.begin() + static_cast<std::ptrdiff_t>(first), found.end(), same);
        if (known != found.end())
          ++known->place.count;
        else
          found.push_back({*rounding, std::move(place)});
      }
    }
  }
  return found;
}

const Found* first_of(const std::vector<Found>& found, Source kind) {
  const auto at =
      std::find_if(found.begin(), found.end(), [&](const Found& f) { return f.rounded.kind == kind; });
  return at == found.end() ? nullptr : &*at;
}

void choose_preset(const std::string& op, const std::vector<Found>& found, ProposedArithmetic& made) {
  const auto* const row = std::find_if(std::begin(kOperatorRows), std::end(kOperatorRows),
                                       [&](const auto& r) { return r.op == op; });
  const Found* const product = first_of(found, Source::product);
  const bool known = row != std::end(kOperatorRows);
  const std::string_view preset = !known ? "" : product ? row->chunked : row->recurrent;
  if (op.empty())
    made.why = "say which operator it computes";
  else if (preset.empty())
    made.why = fmt::format("{} has none for these launches", op);
  else if (product)
    made.arithmetic = preset,
    made.why = fmt::format("matrices of {} are multiplied{}", product->rounded.first,
                           product->place.line.empty() ? "" : " at " + product->place.line);
  else
    made.arithmetic = json::parse(preset), made.why = "no launch multiplies matrices";
}

/// A misspelt preset or field, or what is no expression in sizes, is BadInput, as it is in a plan.
void require_declaration(const std::string& op, const json& declared) {
  const json plan{
      {"operator", op.empty() ? "gla" : op},
      {"dtypes", {"bf16"}},
      {"arithmetic", declared},
      {"launches", {{{"function", "f"}, {"grid", 1}, {"block", 1}, {"arguments", json::array()}}}}};
  ExpressionScope scope;
  for (const char* size : {"B", "T", "H", "K", "V", "M", "N", "longest", "bytes", "gate_bytes", "scale"})
    scope.variables[size] = 64;
  scope.variables["u"] = 0x1p-8, scope.variables["u_gate"] = 0x1p-24;
  declared_adjoint_arithmetic(parse_plan_document(plan.dump(), "declared"), scope);
}

/// From what is declared and never happens.
std::string looser_than(const std::vector<Found>& found, const json& declared) {
  const std::string preset = declared.is_string()   ? declared.get<std::string>()
                             : declared.is_object() ? declared.value("preset", "")
                                                    : "";
  if (preset.rfind("triton-", 0) == 0 && !first_of(found, Source::product))
    return preset +
           " covers operands of matrix products cut to 10 bits of fraction, and no launch multiplies "
           "matrices";
  if (declared.is_object() && declared.contains("divide") && !first_of(found, Source::quotient))
    return "divide is declared, and nothing divides";
  if (declared.is_object() && declared.contains("prefix_per_nat") && !first_of(found, Source::scan))
    return "prefix_per_nat is declared, and no sums over tokens are made by shuffles";
  return "";
}

json to_json(const RoundingPlace& place) {
  return {{"kernel", place.kernel}, {"line", place.line}, {"instruction", place.instruction},
          {"count", place.count},   {"of", place.of},     {"field", place.field}};
}

}  // namespace

ProposedArithmetic propose_arithmetic(const std::vector<ptx::Module>& modules, const std::string& op,
                                      const json& declared) {
  const std::vector<Found> found = places_of(modules);
  ProposedArithmetic made;
  choose_preset(op, found, made);
  for (const Found& f : found)
    if (std::find(made.places.begin(), made.places.end(), f.place) == made.places.end())
      made.places.push_back(f.place);
  if (!declared.is_null()) require_declaration(op, declared), made.looser = looser_than(found, declared);
  return made;
}

std::string text_of(const ProposedArithmetic& p) {
  std::string text = p.arithmetic.is_null()
                         ? "no preset is known to fit: " + p.why
                         : fmt::format("\"arithmetic\": {}, since {}", p.arithmetic.dump(), p.why);
  for (const RoundingPlace& place : p.places)
    text += fmt::format("\n  {}: {} ({} {}): {}", place.line.empty() ? place.kernel : place.line, place.of,
                        place.count, place.instruction, place.field);
  if (!p.looser.empty()) text += "\ndeclared too loosely: " + p.looser;
  return text;
}

json to_json(const ProposedArithmetic& p) {
  json places = json::array();
  for (const RoundingPlace& place : p.places) places.push_back(to_json(place));
  return {{"arithmetic", p.arithmetic}, {"why", p.why}, {"evidence", places}, {"looser", p.looser}};
}

}  // namespace assay
