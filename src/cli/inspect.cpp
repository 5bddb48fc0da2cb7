// assay inspect FILE: what the tensors of a file are, and which operators they can be the inputs of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/print_inspection.h"
#include "src/base/tensor/tensor_file.h"
#include "src/case/layouts.h"
#include "src/case/operator_fit.h"
#include "src/cli/commands.h"
#include "src/cli/tensor_names.h"
#include "src/cli/whole_number.h"
#include "src/result/inspection.h"

namespace assay::cli {
namespace {

struct InspectCommand {
  std::string file, json;
  std::vector<std::string> map, layout;
  int64_t heads = 0;

  int run() const {
    const TensorMap tensors = renamed(read_tensors(file), map, file);
    Case base;
    base.kernel = "inspect";
    base.layout = layout_text(parse_layout(fmt::format("{}", fmt::join(layout, ","))));
    const nlohmann::json inspection =
        to_json(inspect(file, tensors, fit_operators(tensors, base, heads, file)));
    print_inspection(Console(json == "-" ? stderr : stdout), inspection);
    const std::string text = inspection.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (json == "-") fmt::print("{}", text);
    if (!json.empty() && json != "-") write_file(json, text);
    return 0;
  }
};

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Says what the tensors of a file hold, and which operators they can be the inputs of");
  const auto options = std::make_shared<InspectCommand>();
  command->add_option("FILE", options->file, "FILE.safetensors, FILE.npz or a folder of .npy")
      ->required()
      ->check(not_empty());
  command
      ->add_option(
          "--map", options->map,
          "Names in that file: q=query_states takes its tensor query_states as q, o=attn_output as o")
      ->delimiter(',')
      ->type_name("NAME=TENSOR");
  command->add_option("--layout", options->layout, "How the file holds inputs, as in heads-first,k=dense")
      ->delimiter(',');
  command->add_option("-H,--heads", options->heads, "Heads, where the shapes leave them open")
      ->check(whole_number(1, int64_t{1} << 40));
  command->add_option("--json", options->json, "All of it as JSON; - for standard output")->type_name("FILE");
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
