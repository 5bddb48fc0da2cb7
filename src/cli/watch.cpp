// assay watch FILE: PTX that notes where NaN and infinities are born, written out, or run on the machine.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/markup.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/watch/birth_json.h"
#include "src/base/watch/watched_program.h"
#include "src/cli/commands.h"
#include "src/cli/engine_options.h"
#include "src/cli/output_options.h"
#include "src/cli/program_options.h"
#include "src/cli/started_program.h"

namespace assay::cli {
namespace {

using nlohmann::json;

struct WatchCommand {
  ProgramOptions program;
  EngineOptions engines;
  OutputOptions output;
  std::vector<std::string> words;
  std::string written, compiled, on = "auto";
  int kept = watch::WatchOptions().kept_registers;
  int registers = 0;
  bool marks_cold = false;

  watch::WatchOptions options() const {
    watch::WatchOptions made;
    made.kept_registers = kept;
    made.own_registers = registers;
    made.marks_cold_code = marks_cold;
    return made;
  }

  static std::string shares(const json& counts) {
    const auto instructions = counts.at("instructions").get<int64_t>(),
               added = counts.at("added").get<int64_t>();
    return fmt::format(
        "{} of {} instructions watched; {} added ({:.1f} %), {} aside", counts.at("watched").get<int64_t>(),
        instructions, added,
        100.0 * static_cast<double>(added) / static_cast<double>(std::max<int64_t>(instructions, 1)),
        counts.at("added_aside").get<int64_t>());
  }

  /// The text alone.
  int rewrite(const std::string& path) const {
    std::ifstream in(path);
    if (!in || std::filesystem::is_directory(path))
      throw BadInput(
          fmt::format("{}: cannot be read: {}", path,
                      std::filesystem::exists(path) ? "not a readable file" : "there is no such file"));
    if (written.empty())
      throw BadInput(fmt::format("{}: --output FILE says where it goes with the watch in it", path));
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const watch::WatchedText made = watch::rewritten(text, ptx::parse_functions(text, path), options());
    write_file(written, made.ptx);
    const json counts = watch::to_json(made.counts);
    output.console().line(fmt::format("{}: {}", written, shares(counts)));
    for (const std::string& opcode : made.unwatched) output.console().line("  not watched: " + opcode);
    output.write({{"counts", counts}, {"unwatched", made.unwatched}});
    return 0;
  }

  void print(const json& births) const {
    for (const json& b : births) {
      const auto triple = [&](const char* name) {
        return fmt::format("({})", fmt::join(b.at(name).get<std::vector<uint32_t>>(), ","));
      };
      output.console().line(fmt::format(
          "{} at {}, launch {}\n  {}  {}\n  block {}, thread {}; {} in all", b.at("kind").get<std::string>(),
          b.at("place").get<std::string>(), b.at("launch").get<uint32_t>(),
          b.at("instruction").get<std::string>(), b.at("example").get<std::string>(), triple("block"),
          triple("thread"), b.at("count").get<uint32_t>()));
    }
  }

  /// A launch file's program, on the machine.
  int run_file(const std::string& path) {
    program.choose(path, "", "");
    Capsule capsule = program.load();
    const watch::WatchedProgram watched = watch::watched(capsule.program, options());
    const vm::MachineOptions machine = engines.make().machine;
    const Outcome plain = vm::run(capsule.program, capsule.inputs, machine);
    capsule.inputs[watch::kBufferName] = watched.buffer;
    const Outcome outcome = vm::run(watched.program, capsule.inputs, machine);
    if (outcome.trap) output.console().line("trap  " + outcome.trap->message);
    json births = json::array();
    if (outcome.outputs.contains(watch::kBufferName))
      for (const watch::NotedBirth& birth :
           watch::noted_births(watched.modules, outcome.outputs.at(watch::kBufferName).data))
        births.push_back(watch::to_json(birth));
    print(births);
    const json counts = watch::to_json(watched.counts);
    const double more = static_cast<double>(outcome.lane_instructions) /
                            static_cast<double>(std::max<uint64_t>(plain.lane_instructions, 1)) -
                        1;
    output.console().line(fmt::format("{}; {}; {:.1f} % more lane-instructions",
                                      counted(static_cast<int64_t>(births.size()), "birth", "births"),
                                      shares(counts), 100 * more));
    output.write({{"births", births}, {"counts", counts}, {"unwatched", watched.unwatched}, {"more", more}});
    return births.empty() && !outcome.trap ? 0 : 1;
  }

  bool on_machine() const {
    if (on != "auto") return on == "vm";
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    const auto begin = driver ? reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit")) : nullptr;
    return !begin || begin(0) != 0;
  }

  /// A program, on the GPU or on the machine.
  int run_program() const {
    const AnswerFile file;
    const std::string folder = standin_folder().string();
    std::map<std::string, std::string> variables = {
        {"ASSAY_WATCH",
         json{{"result", file.path().string()},
              {"kept", kept},
              {"compiled", compiled.empty() ? "" : std::filesystem::absolute(compiled).string()}}
             .dump()},
        {"LD_PRELOAD", folder + "/libassay_watch.so"}};
    const bool machine = on_machine();
    if (machine) variables["ASSAY_RUN"] = json{{"checks", "none"}}.dump();
    const int status = start_program(words, variables, machine ? folder : "");
    const json answer = file.read();
    if (answer.is_null())
      throw BadInput(fmt::format("{}: {}; it left no answer", words[0], ending_text(status)));
    const json& births = answer.at("births");
    print(births);
    const auto launches = answer.at("launches").get<uint32_t>();
    output.console().line(fmt::format(
        "{} in {} on {}; {}; {}: {}", counted(static_cast<int64_t>(births.size()), "birth", "births"),
        counted(launches, "launch", "launches"), machine ? "the machine" : "the GPU",
        shares(answer.at("counts")), words[0], ending_text(status)));
    const auto modules = answer.at("modules").get<size_t>();
    const auto left_out = answer.at("left_out").get<int64_t>();
    output.console().line(fmt::format("{} watched; {} not: machine code, or of a library",
                                      counted(static_cast<int64_t>(modules), "module", "modules"), left_out));
    for (const json& line : answer.at("unwatched"))
      output.console().line("  not watched: " + line.get<std::string>());
    output.write(answer);
    return births.empty() && status == 0 ? 0 : 1;
  }

  int run() {
    const std::string& first = words.at(0);
    if (first.ends_with(".ptx")) return rewrite(first);
    const bool file =
        first.ends_with(".json") || first.ends_with(".capsule") || std::filesystem::is_directory(first);
    return file ? run_file(first) : run_program();
  }
};

}  // namespace

void add_watch(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "watch",
      "Notes where NaN and infinities are born while a program runs, at little cost: first births by line");
  const auto o = std::make_shared<WatchCommand>();
  command
      ->add_option(
          "PROGRAM", o->words,
          "And its arguments, behind --; or a launch file, run on the machine; or PTX, written with the "
          "watch in it")
      ->required();
  command->add_option("--on", o->on, "Where a program runs: cuda, vm (the machine), or auto")
      ->check(CLI::IsMember({"auto", "cuda", "vm"}))
      ->capture_default_str();
  command->add_option("--output", o->written, "Where PTX goes")->type_name("FILE.ptx");
  command
      ->add_option(
          "--compiled", o->compiled,
          "Where machine code of a program's watched modules is kept, so that the next start need not "
          "compile them: HASH.ptx, and HASH.sm_90.cubin of it")
      ->type_name("FOLDER");
  command->add_option("--kept", o->kept, "Registers that a test may keep longer than the program does")
      ->capture_default_str();
  command->add_option(
      "--registers", o->registers,
      "What the compiler gives the PTX as it is: with --ptx-9 the watched one may have as many as "
      "leave room for half as many blocks on a multiprocessor");
  command->add_flag(
      "--ptx-9", o->marks_cold,
      "Writes PTX 9.0, whose compilers (CUDA 13.0 and later) lay the watch's code out behind the "
      "program's own: faster");
  o->program.add_drawing_to(*command, true);
  o->engines.add_to(*command);
  o->output.add_to(*command);
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
