// assay arithmetic FILE...: what programs of PTX may declare of their roundings, each with its line;
// whether what somebody declares is far looser: then the status is 1.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "kernels/proposed_arithmetic.h"
#include "reference/operator.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/fatbin.h"
#include "src/base/ptx/program.h"
#include "src/base/tensor/tensor_file.h"
#include "src/cli/commands.h"

namespace assay::cli {
namespace {

using nlohmann::json;

struct ArithmeticCommand {
  std::vector<std::string> files;
  std::string op, declared, to;

  int run() const {
    if (!op.empty()) find_operator(op);
    std::vector<ptx::Module> modules;
    for (const std::string& file : files) {
      const std::string bytes = read_file(file);
      std::vector<ptx::EmbeddedText> texts{{file, bytes}};
      if (ptx::is_container(bytes)) texts = ptx::embedded_texts(bytes, file);
      for (const ptx::EmbeddedText& text : texts)
        modules.push_back(ptx::parse_functions(text.text, text.path));
    }
    const ProposedArithmetic proposal = propose_arithmetic(modules, op, declaration());
    fmt::print("{}\n", text_of(proposal));
    if (!to.empty()) write_file(to, to_json(proposal).dump(1) + "\n");
    return proposal.looser.empty() ? 0 : 1;
  }

 private:
  /// A preset's name, or an object as a plan has it.
  json declaration() const {
    if (declared.empty()) return {};
    if (declared.front() != '{') return declared;
    json object = json::parse(declared, nullptr, false);
    if (object.is_discarded())
      throw BadInput(fmt::format("--declared {}: neither a preset's name nor a JSON object", declared));
    return object;
  }
};

}  // namespace

void add_arithmetic(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "arithmetic", "Proposes what a program may declare of its roundings, each with its line");
  const auto options = std::make_shared<ArithmeticCommand>();
  command
      ->add_option("FILE", options->files,
                   "PTX files of one program; fat binaries, objects and programs that carry PTX")
      ->required();
  command->add_option("--operator", options->op, "The operator that it computes: it chooses the preset");
  command->add_option(
      "--declared", options->declared,
      "A preset, or a JSON object as a plan's \"arithmetic\": said where it is far too loose");
  command->add_option("--json", options->to, "Writes the same as JSON to this file");
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
