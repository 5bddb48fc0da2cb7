// assay watch FILE: PTX that notes where NaN and infinities are born, written out, or run on the machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/source_place.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/watch/watched_program.h"
#include "src/cli/commands.h"
#include "src/cli/engine_options.h"
#include "src/cli/output_options.h"
#include "src/cli/program_options.h"

namespace assay::cli {
namespace {

using nlohmann::json;

json to_json(const watch::WatchCounts& counts) {
  return {{"instructions", counts.instructions},
          {"watched", counts.watched},
          {"added", counts.added},
          {"added_aside", counts.added_aside}};
}

json to_json(const watch::NotedBirth& birth) {
  const watch::Record& r = birth.record;
  return {{"file", birth.where.file},
          {"line", birth.where.line},
          {"ptx_line", birth.where.ptx_line},
          {"function", birth.where.function},
          {"frames", birth.where.frames},
          {"instruction", birth.instruction},
          {"kind", birth.kind},
          {"example", birth.example},
          {"count", r.count},
          {"launch", r.launch},
          {"nanoseconds", r.nanoseconds},
          {"block", r.block},
          {"thread", r.thread}};
}

struct WatchCommand {
  ProgramOptions program;
  EngineOptions engines;
  OutputOptions output;
  std::string path, written;
  int kept = watch::WatchOptions().kept_registers;

  watch::WatchOptions options() const {
    watch::WatchOptions made;
    made.kept_registers = kept;
    return made;
  }

  std::string shares(const watch::WatchCounts& counts) const {
    return fmt::format("{} of {} instructions watched; {} added ({:.1f} %), {} aside", counts.watched,
                       counts.instructions, counts.added,
                       100.0 * static_cast<double>(counts.added) /
                           static_cast<double>(std::max<int64_t>(counts.instructions, 1)),
                       counts.added_aside);
  }

  /// The text alone.
  int rewrite() {
    std::ifstream in(path);
    if (!in) throw BadInput(path + ": cannot be read");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const watch::WatchedText made = watch::rewritten(text, ptx::parse_functions(text, path), options());
    std::ofstream out(written);
    if (!(out << made.ptx << std::flush)) throw BadInput(written + ": cannot be written");
    output.console().line(fmt::format("{}: {}", written, shares(made.counts)));
    for (const std::string& opcode : made.unwatched) output.console().line("  not watched: " + opcode);
    output.write({{"counts", to_json(made.counts)}, {"unwatched", made.unwatched}});
    return 0;
  }

  int run() {
    if (path.ends_with(".ptx")) {
      if (written.empty()) throw BadInput("--output FILE says where the watched PTX goes");
      return rewrite();
    }
    program.choose(path, "", "");
    Capsule capsule = program.load();
    const watch::WatchedProgram watched = watch::watched(capsule.program, options());
    const vm::MachineOptions machine = engines.make().machine;
    const Outcome plain = vm::run(capsule.program, capsule.inputs, machine);
    capsule.inputs[watch::kBufferName] = watched.buffer;
    const Outcome outcome = vm::run(watched.program, capsule.inputs, machine);
    const Console console = output.console();
    if (outcome.trap) console.line("trap  " + outcome.trap->message);
    json births = json::array();
    if (outcome.outputs.contains(watch::kBufferName))
      for (const watch::NotedBirth& birth :
           watch::noted_births(watched.modules, outcome.outputs.at(watch::kBufferName).data)) {
        births.push_back(to_json(birth));
        const watch::Record& r = birth.record;
        console.line(fmt::format("{} at {}, launch {}\n  {}  {}\n  block ({},{},{}), thread ({},{},{}); {} in all",
                                 birth.kind, place_with_ptx_line(birth.where), r.launch, birth.instruction,
                                 birth.example, r.block[0], r.block[1], r.block[2], r.thread[0], r.thread[1],
                                 r.thread[2], r.count));
      }
    console.line(fmt::format("{} births; {}; {:.1f} % more lane-instructions", births.size(),
                             shares(watched.counts),
                             100.0 * (static_cast<double>(outcome.lane_instructions) /
                                          static_cast<double>(std::max<uint64_t>(plain.lane_instructions, 1)) -
                                      1)));
    output.write({{"births", births}, {"counts", to_json(watched.counts)}, {"unwatched", watched.unwatched}});
    return births.empty() && !outcome.trap ? 0 : 1;
  }
};

}  // namespace

void add_watch(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "watch", "Notes where NaN and infinities are born while a program runs, at little cost: first births by line");
  const auto o = std::make_shared<WatchCommand>();
  command->add_option("FILE", o->path, "A launch file, run on the machine; or PTX, written with the watch in it")
      ->required();
  command->add_option("--output", o->written, "Where PTX goes")->type_name("FILE.ptx");
  command->add_option("--kept", o->kept, "Registers that a test may keep longer than the program does")
      ->capture_default_str();
  o->program.add_drawing_to(*command, true);
  o->engines.add_to(*command);
  o->output.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
