// assay decode FILE.ptx: what a module holds, as the machine reads it: entries, parameters, every instruction
// with its source line and, with --signatures, what it reads, writes and reaches. Forms that the machine
// lacks are listed with their lines; then the status is 1.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/program.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/vm/signature.h"
#include "src/cli/commands.h"

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

json json_of(const ptx::Function& f, const ptx::Instruction& in, const vm::TextSignature& s) {
  json made{{"operation", std::string(ptx::name_of(s.form.operation))},
            {"flow", name_of(s.flow())},
            {"reads", register_names(f, s.reads)},
            {"writes", register_names(f, s.writes)}};
  for (const vm::Access& access : s.accesses)
    made["accesses"].push_back({{"direction", name_of(access.direction)},
                                {"space", std::string(ptx::name_of(access.space))},
                                {"bytes", access.bytes}});
  for (const int architecture : vm::architectures)
    made["status"][fmt::format("sm_{}", architecture)] =
        name_of(vm::evidence_of(*s.meaning, ptx::canonical_form(in.opcode), architecture));
  return made;
}

std::string text_of(const json& signature) {
  auto text = signature["flow"].get<std::string>();
  for (const char* which : {"reads", "writes"})
    if (const auto names = signature[which].get<std::vector<std::string>>(); !names.empty())
      text += fmt::format("; {} {}", which, fmt::join(names, " "));
  if (signature.contains("accesses"))
    for (const json& access : signature["accesses"])
      text += fmt::format("; {} {} bytes {}", access["direction"].get<std::string>(),
                          access["bytes"].get<int>(), access["space"].get<std::string>());
  return text;
}

struct DecodeCommand {
  std::string file, to;
  bool signatures = false;

  int run() const {
    const ptx::Module module = ptx::parse(read_file(file), file);
    json all{{"file", file}, {"target", module.target}, {"functions", json::array()}};
    std::map<std::string, std::vector<int32_t>> refused;  // by form: lines of the text
    for (const ptx::Function& f : module.functions)
      if (f.defined) all["functions"].push_back(function(module, f, refused));
    for (const auto& [form, lines] : refused)
      all["refused"].push_back({{"form", form}, {"count", lines.size()}, {"lines", lines}});
    print(all);
    if (!to.empty() && !(std::ofstream(to) << all.dump(1) << "\n"))
      throw BadInput(to + ": cannot be written");
    return refused.empty() ? 0 : 1;
  }

 private:
  json function(const ptx::Module& module, const ptx::Function& f,
                std::map<std::string, std::vector<int32_t>>& refused) const {
    json made{
        {"name", f.name}, {"entry", f.entry}, {"parameters", json::array()}, {"instructions", json::array()}};
    for (const ptx::Parameter& p : f.parameters)
      made["parameters"].push_back({{"name", p.name}, {"bytes", p.bytes}, {"offset", p.offset}});
    for (const ptx::Instruction& in : f.body) {
      const vm::TextSignature signature = vm::signature_of(in);
      json line{{"ptx_line", in.ptx_line}, {"opcode", in.opcode}};
      if (in.line >= 0) {
        const ptx::Line& at = module.lines[static_cast<size_t>(in.line)];
        if (at.file >= 0)
          line["source"] = fmt::format("{}:{}", module.files[static_cast<size_t>(at.file)], at.line);
      }
      if (!signature.meaning) {
        refused[ptx::canonical_form(in.opcode)].push_back(in.ptx_line);
        line["refused"] = true;
      } else if (signatures) {
        line["signature"] = json_of(f, in, signature);
      }
      made["instructions"].push_back(std::move(line));
    }
    return made;
  }

  void print(const json& all) const {
    for (const json& f : all["functions"]) {
      fmt::print("{} {}\n", f["entry"].get<bool>() ? "entry" : "function", f["name"].get<std::string>());
      for (const json& p : f["parameters"])
        fmt::print("  {}  {} bytes at {}\n", p["name"].get<std::string>(), p["bytes"].get<int64_t>(),
                   p["offset"].get<int64_t>());
      for (const json& in : f["instructions"]) {
        std::string text =
            fmt::format("  {:>6}  {}", in["ptx_line"].get<int>(), in["opcode"].get<std::string>());
        if (in.contains("source")) text += "  " + in["source"].get<std::string>();
        if (in.contains("refused")) text += "  the machine has no such form";
        if (in.contains("signature")) text += "\n          " + text_of(in["signature"]);
        fmt::print("{}\n", text);
      }
    }
    if (!all.contains("refused")) return;
    fmt::print("refused\n");
    for (const json& form : all["refused"])
      fmt::print("  {}  {} times, first on line {}\n", form["form"].get<std::string>(),
                 form["count"].get<size_t>(), form["lines"][0].get<int>());
  }
};

}  // namespace

void add_decode(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("decode", "Shows what the machine reads in a PTX file");
  const auto options = std::make_shared<DecodeCommand>();
  command->add_option("FILE", options->file, "A PTX file")->required();
  command->add_flag("--signatures", options->signatures, "What each instruction reads, writes and reaches");
  command->add_option("--json", options->to, "Writes the same as JSON to this file");
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
