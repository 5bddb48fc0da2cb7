// assay decode FILE...: what PTX texts hold, as the machine reads them: of each entry its parameters, memory,
// forms with their status, and what is refused of it; then the status is 1. Also of fat binaries, objects and
// programs that carry PTX.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/fatbin.h"
#include "src/base/ptx/program.h"
#include "src/base/tensor/tensor_file.h"
#include "src/cli/commands.h"
#include "src/cli/decoded_module.h"

namespace assay::cli {
namespace {

using nlohmann::json;

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

/// "exact", or "sm_80 absent, sm_89 absent, sm_90 measured" where they differ.
std::string status_text(const json& status) {
  std::set<std::string> kinds;
  std::string text;
  for (const auto& [architecture, kind] : status.items()) {
    kinds.insert(kind.get<std::string>());
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", architecture, kind.get<std::string>());
  }
  return kinds.size() == 1 ? *kinds.begin() : text;
}

void print_entry(const json& entry) {
  fmt::print("entry {}\n", entry["name"].get<std::string>());
  for (const json& p : entry["parameters"])
    fmt::print("  {}  {} bytes at {}, aligned to {}\n", p["name"].get<std::string>(),
               p["bytes"].get<int64_t>(), p["offset"].get<int64_t>(), p["alignment"].get<int64_t>());
  if (entry.contains("shared_bytes"))
    fmt::print(
        "  shared memory {} bytes{}, local memory {} bytes a thread\n", entry["shared_bytes"].get<int64_t>(),
        entry["dynamic_shared"].get<bool>() ? " and dynamic" : "", entry["local_bytes"].get<int64_t>());
  if (entry.contains("block"))
    fmt::print("  blocks of {} threads\n", fmt::join(entry["block"].get<std::vector<int>>(), " x "));
  if (entry.contains("most_threads")) fmt::print("  at most {} threads\n", entry["most_threads"].get<int>());
  fmt::print("  {} instructions of {} forms\n", entry["instructions"].get<size_t>(), entry["forms"].size());
  for (const json& form : entry["forms"])
    fmt::print("  {:>6}  {}  {}\n", form["count"].get<size_t>(), form["form"].get<std::string>(),
               status_text(form["status"]));
  for (const json& r : entry["refused"]) {
    const auto lines = r["lines"].get<std::vector<int>>();
    if (lines.empty())
      fmt::print("  refused  {}\n", r["what"].get<std::string>());
    else
      fmt::print("  refused  {}  {} times, first on line {}\n", r["what"].get<std::string>(), lines.size(),
                 *std::min_element(lines.begin(), lines.end()));
  }
}

void print_listing(const json& f) {
  fmt::print("{} {}\n", f["entry"].get<bool>() ? "entry" : "function", f["name"].get<std::string>());
  for (const json& in : f["instructions"]) {
    std::string text = fmt::format("  {:>6}  {}", in["ptx_line"].get<int>(), in["opcode"].get<std::string>());
    if (in.contains("source")) text += "  " + in["source"].get<std::string>();
    if (in.contains("refused")) text += "  the machine has no such form";
    if (in.contains("signature")) text += "\n          " + text_of(in["signature"]);
    fmt::print("{}\n", text);
  }
}

struct DecodeCommand {
  std::vector<std::string> files;
  std::string to;
  bool listing = false, signatures = false;

  int run() const {
    json all{{"files", json::array()}};
    size_t entries = 0, refused = 0;
    for (const std::string& file : files) {
      const json read = decoded(file);
      if (read.contains("refused")) ++refused, fmt::print("{}\n", read["refused"].get<std::string>());
      for (const json& module : read["modules"]) {
        fmt::print("{}  {}, PTX {}\n", module["text"].get<std::string>(), module["target"].get<std::string>(),
                   module["version"].get<std::string>());
        for (const json& entry : module["entries"]) {
          print_entry(entry);
          ++entries, refused += !entry["refused"].empty();
        }
        if (listing || signatures)
          for (const json& function : module["functions"]) print_listing(function);
      }
      all["files"].push_back(read);
    }
    all["entries"] = entries, all["refused"] = refused;
    fmt::print("{} entries of {} files, {} refused\n", entries, files.size(), refused);
    if (!to.empty()) write_file(to, all.dump(1) + "\n");
    return refused == 0 ? 0 : 1;
  }

 private:
  /// A file that cannot be read is refused as a whole; alone it is bad input.
  json decoded(const std::string& file) const {
    json made{{"file", file}, {"modules", json::array()}};
    try {
      const std::string bytes = read_file(file);
      std::vector<ptx::EmbeddedText> texts{{file, bytes}};
      if (ptx::is_container(bytes)) texts = ptx::embedded_texts(bytes, file);
      for (const ptx::EmbeddedText& text : texts)
        made["modules"].push_back(
            decoded_module(std::make_shared<const ptx::Module>(ptx::parse_functions(text.text, text.path)),
                           listing || signatures, signatures));
    } catch (const BadInput& reason) {
      if (files.size() == 1) throw;
      made["refused"] = reason.what();
    }
    return made;
  }
};

}  // namespace

void add_decode(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("decode", "Shows what the machine reads in PTX, and refuses of it");
  const auto options = std::make_shared<DecodeCommand>();
  command->add_option("FILE", options->files, "PTX files; fat binaries, objects and programs that carry PTX")
      ->required();
  command->add_flag("--listing", options->listing, "Every instruction, with its source line");
  command->add_flag("--signatures", options->signatures, "What each reads, writes and reaches");
  command->add_option("--json", options->to, "Writes the same as JSON to this file");
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
