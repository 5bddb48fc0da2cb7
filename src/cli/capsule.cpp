// assay capsule: a program with its values in one file, made, shown and packed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "reports/console.h"
#include "reports/markup.h"
#include "src/base/tensor/tensor_summary.h"
#include "src/capsule/capsule_file.h"
#include "src/cli/commands.h"
#include "src/cli/program_options.h"

namespace assay::cli {
namespace {

struct NewCommand {
  ProgramOptions program;
  std::string out;

  int run() {
    const Capsule capsule = program.load(true);  // values pass through
    write_capsule(program.file(), capsule, out);
    fmt::print("{}: {}, {} with values; assay check {}\n", out,
               counted(static_cast<int64_t>(capsule.program.launches.size()), "launch", "launches"),
               counted(static_cast<int64_t>(capsule.inputs.size()), "tensor", "tensors"), out);
    return 0;
  }
};

struct ShowCommand {
  ProgramOptions program;

  int run() {
    const Capsule capsule = program.load();
    const Console console(stdout);
    console.line(capsule.name);
    for (const auto& [name, value] : capsule.sizes) console.line(fmt::format("  size {} = {}", name, value));
    for (const Module& module : capsule.program.modules)
      console.line(fmt::format("  ptx {} ({} bytes)", module.path, module.ptx->size()));
    std::vector<std::vector<std::string>> rows{{"tensor", "use", "shape", "values"}};
    for (const auto& [name, tensor] : capsule.inputs) {
      const TensorSummary s = summary_of(tensor);
      rows.push_back({name, capsule.fixed.contains(name) ? "in" : "in, may be written", shape(tensor),
                      fmt::format("{:.6g} to {:.6g}", s.min.value_or(0), s.max.value_or(0))});
    }
    for (const ProgramOutput& o : capsule.program.outputs)
      if (!capsule.inputs.contains(o.name)) {
        Tensor tensor;
        tensor.dtype = o.dtype, tensor.axes = o.axes;
        rows.push_back({o.name, capsule.partly.contains(o.name) ? "out, partly" : "out", shape(tensor),
                        capsule.recorded.contains(o.name) ? "recorded" : ""});
      }
    for (const Workspace& w : capsule.program.workspaces)
      rows.push_back({w.name, "workspace", fmt::format("{} bytes", w.bytes), ""});
    console.table(rows, 3);
    for (const Launch& launch : capsule.program.launches)
      console.line(
          fmt::format("  launch {}: {} x {} x {} blocks of {} x {} x {} threads, {} bytes of shared memory",
                      launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                      launch.block[1], launch.block[2], launch.shared_bytes));
    return 0;
  }
  static std::string shape(const Tensor& tensor) {
    return tensor.shape_text() + " " + std::string(format(tensor.dtype).name);
  }
};

}  // namespace

void add_capsule(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("capsule", "A program with its PTX and its values in one file");
  command->require_subcommand(1);
  const auto made = std::make_shared<NewCommand>();
  CLI::App* sub =
      command->add_subcommand("new", "Makes one of a launch file, with concrete sizes and values");
  made->program.add_to(*sub);
  sub->add_option("--out", made->out, "The capsule")->type_name("FILE")->required();
  sub->callback([made, &status] { status = made->run(); });

  const auto shown = std::make_shared<ShowCommand>();
  sub = command->add_subcommand("show", "What a capsule or a launch file holds");
  shown->program.add_to(*sub);
  sub->callback([shown, &status] { status = shown->run(); });

  const auto names = std::make_shared<std::pair<std::string, std::string>>();
  sub = command->add_subcommand("pack", "The files that a folder's launch.json names, as one capsule");
  sub->add_option("FOLDER", names->first, "With a launch.json")->required()->check(CLI::ExistingDirectory);
  sub->add_option("--out", names->second, "The capsule")->type_name("FILE")->required();
  sub->callback([names, &status] {
    pack_capsule(names->first, names->second);
    status = 0;
  });
}

}  // namespace assay::cli
