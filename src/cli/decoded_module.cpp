#include "src/cli/decoded_module.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/call_graph.h"
#include "src/base/vm/code.h"
#include "src/base/vm/signature.h"

namespace assay::cli {
namespace {

using nlohmann::json;

const char* name_of(vm::Flow flow) {
  static constexpr const char* names[] = {
      "none",    "copy",        "pack",         "unpack",      "select",     "logic",
      "shift",   "permute",     "integer",      "arithmetic",  "conversion", "comparison",
      "address", "exchange",    "vote",         "matrix",      "load",       "store",
      "atomic",  "load_matrix", "store_matrix", "move_matrix", "copy_async", "parameters"};
  return names[static_cast<size_t>(flow)];
}
const char* name_of(vm::Access::Direction direction) {
  static constexpr const char* names[] = {"read", "write", "update"};
  return names[static_cast<size_t>(direction)];
}
const char* name_of(vm::Evidence evidence) {
  static constexpr const char* names[] = {"absent", "exact", "measured", "modelled"};
  return names[static_cast<size_t>(evidence)];
}

std::vector<std::string> register_names(const ptx::Function& f, const std::vector<int32_t>& registers) {
  std::vector<std::string> names;
  for (const int32_t reg : registers) names.push_back(f.registers[static_cast<size_t>(reg)].name);
  return names;
}

json status_of(const vm::Meaning& meaning, const std::string& form) {
  json made;
  for (const int architecture : vm::architectures)
    made[fmt::format("sm_{}", architecture)] = name_of(vm::evidence_of(meaning, form, architecture));
  return made;
}

json json_of(const ptx::Function& f, const ptx::Instruction& in, const vm::TextSignature& s) {
  json made{{"operation", std::string(ptx::name_of(s.form.operation))},
            {"flow", name_of(s.flow())},
            {"reads", register_names(f, s.reads)},
            {"writes", register_names(f, s.writes)}};
  for (const vm::Access& access : s.accesses)
    made["accesses"].push_back({{"direction", name_of(access.direction)},
                                {"space", std::string(ptx::name_of(access.space))},
                                {"bytes", access.bytes}});
  made["status"] = status_of(*s.meaning, vm::spelling_of(in.opcode));
  return made;
}

json listing_of(const ptx::Module& module, const ptx::Function& f, bool signatures) {
  json made{{"name", f.name}, {"entry", f.entry}, {"instructions", json::array()}};
  for (const ptx::Instruction& in : f.body) {
    const vm::TextSignature signature = vm::signature_of(in);
    json line{{"ptx_line", in.ptx_line}, {"opcode", in.opcode}};
    if (in.line >= 0) {
      const ptx::Line& at = module.lines[static_cast<size_t>(in.line)];
      if (at.file >= 0)
        line["source"] = fmt::format("{}:{}", module.files[static_cast<size_t>(at.file)], at.line);
    }
    if (!signature.meaning)
      line["refused"] = true;
    else if (signatures)
      line["signature"] = json_of(f, in, signature);
    made["instructions"].push_back(std::move(line));
  }
  return made;
}

/// Where an entry and what it calls use a form.
struct Uses {
  const vm::Meaning* meaning = nullptr;
  std::vector<int32_t> lines;
};

/// What the machine lacks: forms, bodies that cannot be read; where it is neither, the decoder's reason.
json refusals_of(const std::shared_ptr<const ptx::Module>& module, const ptx::Function& entry,
                 const std::vector<int32_t>& reached, const std::map<std::string, Uses>& forms) {
  json refused = json::array();
  for (const auto& [form, uses] : forms)
    if (!uses.meaning)
      refused.push_back(
          {{"what", form}, {"count", uses.lines.size()}, {"lines", uses.lines}, {"function", ""}});
  for (const int32_t f : reached)
    if (const ptx::Function& called = module->functions[static_cast<size_t>(f)]; !called.refused.empty())
      refused.push_back(
          {{"what", called.refused}, {"count", 1}, {"lines", json::array()}, {"function", called.name}});
  if (!refused.empty()) return refused;
  try {
    vm::decode(module, entry.name);
  } catch (const BadInput& reason) {
    refused.push_back(
        {{"what", reason.what()}, {"count", 1}, {"lines", json::array()}, {"function", entry.name}});
  }
  return refused;
}

json entry_of(const std::shared_ptr<const ptx::Module>& module, const vm::CallGraph& calls, int32_t index) {
  const ptx::Function& entry = module->functions[static_cast<size_t>(index)];
  json made{{"name", entry.name}, {"parameters", json::array()}, {"forms", json::array()}};
  for (const ptx::Parameter& p : entry.parameters)
    made["parameters"].push_back(
        {{"name", p.name}, {"bytes", p.bytes}, {"offset", p.offset}, {"alignment", p.align}});
  if (entry.max_threads > 0) made["most_threads"] = entry.max_threads;
  if (entry.required_block[0] > 0) made["block"] = entry.required_block;
  const std::vector<int32_t> reached = calls.reached_from(index);
  std::map<std::string, Uses> forms;
  size_t instructions = 0;
  for (const int32_t f : reached) {
    const ptx::Function& function = module->functions[static_cast<size_t>(f)];
    if (f != index && function.defined) made["calls"].push_back(function.name);
    for (const ptx::Instruction& in : function.body) {
      Uses& uses = forms[vm::spelling_of(in.opcode)];
      uses.meaning = vm::meaning_of(in);
      uses.lines.push_back(in.ptx_line);
      ++instructions;
    }
  }
  made["instructions"] = instructions;
  for (const auto& [form, uses] : forms)
    if (uses.meaning)
      made["forms"].push_back(
          {{"form", form}, {"count", uses.lines.size()}, {"status", status_of(*uses.meaning, form)}});
  made["refused"] = refusals_of(module, entry, reached, forms);
  try {
    const std::shared_ptr<const vm::Code> memory = vm::lay_out(module, index);
    const auto& areas = memory->shared_areas;
    made["shared_bytes"] = memory->shared_bytes, made["local_bytes"] = memory->local_bytes;
    made["dynamic_shared"] = !areas.empty() && areas.back().dynamic;
  } catch (const BadInput&) {  // among the refusals
  }
  return made;
}

}  // namespace

json decoded_module(const std::shared_ptr<const ptx::Module>& module, bool listing, bool signatures) {
  json made{{"text", module->path},
            {"version", module->version},
            {"target", module->target},
            {"entries", json::array()}};
  const vm::CallGraph calls(*module);
  for (size_t f = 0; f < module->functions.size(); ++f) {
    const ptx::Function& function = module->functions[f];
    if (!function.defined) continue;
    if (function.entry) made["entries"].push_back(entry_of(module, calls, static_cast<int32_t>(f)));
    if (listing) made["functions"].push_back(listing_of(*module, function, signatures));
  }
  return made;
}

}  // namespace assay::cli
