// assay trace KERNEL|TOKEN|FILE: where the non-finite value behind an output element was born, what stands
// behind a finite one, and how far the run is from exact arithmetic; with --at, what a warp holds at a
// source line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "reports/print_shadow.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_summary.h"
#include "src/capsule/launch_folder.h"
#include "src/case/output_element.h"
#include "src/cli/check_options.h"
#include "src/cli/commands.h"
#include "src/cli/print_line_view.h"
#include "src/cli/program_options.h"
#include "src/cli/run_case.h"
#include "src/cli/trace_launch_file.h"
#include "src/cli/whole_number.h"
#include "src/verification/verify/acceptance.h"

namespace assay::cli {
namespace {

/// Of a slice's instances the nearest to the output, so that the JSON stays below a megabyte.
void keep_nearest_nodes(ElementSlice& slice) {
  constexpr size_t kNodes = 1000;
  if (slice.nodes.size() <= kNodes) return;
  slice.nodes.resize(kNodes);
  for (SliceNode& node : slice.nodes)
    for (SliceNodeOperand& operand : node.operands)
      if (operand.made_by >= static_cast<int64_t>(kNodes))
        operand.made_by = -1, operand.source = OperandSource::beyond;
}

/// Values that no kernel made: the first of each class in each input that a file brings along.
void print_given(const Console& console, const TensorMap& inputs) {
  for (const auto& [name, tensor] : inputs) {
    const TensorSummary s = summary_of(tensor);
    for (const ValueClass& values : {s.nan, s.plus_infinity, s.minus_infinity})
      if (values.count)
        console.line(fmt::format("origin: {} = {} is in the inputs already, no kernel made it",
                                 tensor.element_name(values.first), tensor.value(values.first)));
  }
}

/// --at and what belongs to it.
struct LineOptions {
  std::string at, visit = "1";
  std::vector<uint32_t> block;
  std::optional<uint32_t> warp;

  void add_to(CLI::App& app) {
    const std::string group = "A source line";
    CLI::Option* place =
        app.add_option("--at", at, "Show a warp's lanes, registers and exact values at this line")
            ->type_name("FILE:LINE")
            ->check(not_empty())
            ->group(group);
    app.add_option("--block", block, "Block X[,Y,Z] (default: the first that comes there)")
        ->delimiter(',')
        ->expected(1, 3)
        ->check(whole_number(0, 0xffffffff))
        ->needs(place)
        ->group(group);
    app.add_option("--warp", warp, "Warp of the block (default: the first that comes there)")
        ->check(whole_number(0, 31))
        ->needs(place)
        ->group(group);
    app.add_option("--visit", visit, "Which of its visits, from 1, or last")
        ->needs(place)
        ->group(group)
        ->capture_default_str();
    for (const char* other : {"--element", "--first", "--all", "--checks", "--strict-reads", "--formula",
                              "--rounding", "--report", "--junit", "--sarif", "--comment"})
      place->excludes(app.get_option(other));
  }
  vm::LineQuestion question() const {
    vm::LineQuestion asked;
    const size_t colon = at.rfind(':');
    asked.file = at.substr(0, colon);
    const std::string number = colon == at.npos ? "" : at.substr(colon + 1);
    if (asked.file.empty() || !whole_number(1, 1 << 30)(number).empty())
      throw BadInput(fmt::format("--at {}: expected FILE:LINE, as in chunk.cu:142", at));
    asked.line = std::stoi(number);
    if (!block.empty()) {
      asked.block.emplace();
      std::copy(block.begin(), block.end(), asked.block->begin());
    }
    asked.warp = warp;
    asked.visit = vm::kLastVisit;
    if (visit == "last") return asked;
    if (!whole_number(1, uint64_t{1} << 40)(visit).empty())
      throw BadInput(fmt::format("--visit {}: expected a number from 1, or last", visit));
    asked.visit = std::stoull(visit);
    return asked;
  }
};

struct TraceCommand {
  KernelOptions kernel;
  CaseOptions cases;
  EngineOptions engines;
  CheckOptions checks;
  OutputOptions output;
  FindingOptions findings;
  LineOptions line;
  ProgramOptions program;
  std::optional<std::string> element;
  bool first = false, all = false, nodes = false;
  size_t depth = kDefaultDepth;

  /// The case of the options, or of a token in KERNEL's place.
  CaseToRun case_to_run() {
    if (kernel.name().find('/') == std::string::npos) return cases.resolve(kernel.kernel());
    if (const std::string given = cases.first_given(); !given.empty())
      throw BadInput(
          fmt::format("{} and a token: the token says the whole case; leave {} out", given, given));
    return {kernel.case_of_token(kernel.name()), std::nullopt, {}, "", {}};
  }

  /// --at: a warp's lanes at a source line.
  int step(const CaseToRun& run) {
    const Kernel& stepped = kernel.kernel();
    const ResolvedCase resolved = accepted(run.case_, stepped);
    require_memory(resolved);
    const TensorMap inputs = run.inputs ? *run.inputs : draw_inputs(resolved);
    if (const auto faults = domain_faults(inputs, stepped, *resolved.op); !faults.empty())
      throw BadInput(
          fmt::format("out of the domain of {}: {}; nothing was launched", stepped.name, faults.front()));
    vm::LineView view =
        vm::view_line(program_of(stepped, resolved, inputs), inputs, engines.make().machine, line.question());
    return show_line_view(output, view);
  }

  /// A launch file in KERNEL's place: a program that no operator describes.
  int trace_file() {
    for (const std::string& given : cases.all_given())
      if (given != "--seed")
        throw BadInput(fmt::format("{}: {} is of kernels; a launch file takes --size, --vary and --seed",
                                   kernel.name(), given));
    checks.refuse_of_claims(kernel.name());
    program.choose(kernel.name(), kernel.ptx(), kernel.mutant());
    program.set_seed(cases.seed());
    if (!line.at.empty()) return view_line_of(program, line.question(), engines, output);
    return trace_launch_file(program, {element.value_or(""), first, depth, checks}, engines, output,
                             findings);
  }

  int run() {
    findings.check();
    output.check();
    if (is_launch_file(kernel.name())) return trace_file();
    program.refuse_drawing(kernel.name());
    if (!line.at.empty()) {
      const CaseToRun run = case_to_run();
      print_notes(output, run);
      return step(run);
    }
    const CaseToRun run = case_to_run();
    print_notes(output, run);
    VerifyOptions options;
    options.threads = engines.threads();
    checks.apply(options);
    options.twice = false;
    options.shadow_instructions = kShadowInstructions;
    options.first = first, options.all_origins = all;
    options.slice = true;
    if (element) {
      options.element = parse_element(*element, run.case_, find_operator(kernel.kernel().operator_name));
    }
    const Engines on = engines.make();
    Verification result = run_case(kernel, run, on, options);
    if (!nodes && result.slice) keep_nearest_nodes(*result.slice);
    const int status = conclude(output, findings, result, depth);
    if (result.verdict == Verdict::domain && run.inputs) print_given(output.console(), *run.inputs);
    if (!result.origin && !result.slice && !result.trap && result.verdict != Verdict::domain) {
      output.console().line(
          "no output element is non-finite or beyond its bound; --element shows what stands behind one");
    }
    if (result.verdict != Verdict::domain) print_shadow(output.console(), result);
    return status;
  }
};

}  // namespace

void add_trace(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "trace", "Finds where a non-finite output element was born, and what stands behind any element");
  const auto options = std::make_shared<TraceCommand>();
  options->kernel.add_to(*command, "KERNEL|TOKEN|FILE");
  CLI::Option* element =
      command
          ->add_option("--element", options->element,
                       "Output element to walk back from, finite or not, as in \"o[0,16,0,3]\" (default: "
                       "the first non-finite one by "
                       "output and index; where there is none, the one furthest beyond its bound)")
          ->check(not_empty());
  CLI::Option* first =
      command->add_flag("--first", options->first,
                        "Walk back from the element whose non-finite value was born first in the "
                        "order of execution, blocks one after another");
  element->excludes(first);
  CLI::Option* all = command->add_flag(
      "--all", options->all,
      "Every distinct origin: one entry per kind and source line, with the elements behind it");
  element->excludes(all);
  command->add_flag(
      "--nodes", options->nodes,
      "Into the JSON all instances of a slice, up to 16384, not the 1000 nearest to the output");
  command->add_option("--depth", options->depth, "Steps of a chain that are printed; the JSON has all")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  options->cases.add_to(*command);
  options->engines.add_to(*command);
  options->checks.add_to(*command);
  options->output.add_to(*command);
  options->findings.add_to(*command);
  options->line.add_to(*command);
  options->program.add_drawing_to(*command, false);
  command->callback([options, &status] { status = options->run(); });
}

}  // namespace assay::cli
