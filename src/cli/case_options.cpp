#include "src/cli/case_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "kernels/foreign.h"
#include "kernels/mutant.h"
#include "src/base/document/shell_word.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/block_choice.h"
#include "src/base/tensor/element_text.h"
#include "src/base/tensor/tensor_file.h"
#include "src/case/decay_profiles.h"
#include "src/case/given_inputs.h"
#include "src/case/layouts.h"
#include "src/case/names.h"
#include "src/case/parameters.h"
#include "src/case/values.h"
#include "src/cli/tensor_names.h"
#include "src/cli/whole_number.h"

namespace assay::cli {
namespace {

/// Options that say what tensors of a file already say.
constexpr const char* kDrawn[] = {"--batch", "--length",  "--value-heads",   "--key-dim", "--value-dim",
                                  "--slots", "--dtype",   "--gate-dtype",    "--decay",   "--values",
                                  "--seed",  "--without", "--initial-state", "--set"};

/// The groups that the options of a case stand in.
constexpr const char *kSizes = "Sizes", *kDrawing = "Inputs";

template <typename Table>
std::string names_of(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// "0,15,100" as offsets. An option's own list would drop what is empty between two commas.
std::vector<int64_t> parse_offsets(const std::string& text) {
  std::vector<int64_t> offsets;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t offset = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, offset);
    if (error != std::errc() || stop != text.data() + end)
      throw BadInput(fmt::format("--cu-seqlens {}: '{}' is no whole number; write offsets like 0,15,100",
                                 text, text.substr(begin, end - begin)));
    offsets.push_back(offset);
    begin = end + 1;
  }
  return offsets;
}

/// The default, where the kernel takes it, else the first of those that it takes.
Dtype usual(Dtype wanted, const std::vector<Dtype>& taken) {
  return taken.empty() || std::find(taken.begin(), taken.end(), wanted) != taken.end() ? wanted
                                                                                       : taken.front();
}

/// A kernel's name with fields behind it.
bool is_token(const std::string& text) {
  const size_t fields = text.find('/');
  try {
    return fields != text.npos && !find_kernel(text.substr(0, fields)).name.empty();
  } catch (const BadInput&) {
    return false;
  }
}

}  // namespace

void KernelOptions::add_to(CLI::App& app, const std::string& positional, bool mutable_) {
  if (!positional.empty())
    app.add_option(positional, name_,
                   fmt::format("Kernel, as in gla.chunk or gla.chunk@S1 (assay list kernels){}",
                               positional.find("TOKEN") == positional.npos
                                   ? ""
                                   : "; or the token of a case, as replay takes it; or a launch file"));
  app.add_option("--ptx", ptx_, "In place of KERNEL: its PTX (a folder where the plan names files) ...")
      ->type_name("FILE.ptx|DIR")
      ->check(not_empty())
      ->group("A kernel of your own");
  app.add_option("--plan", plan_, "... and its launch plan")
      ->type_name("FILE.json")
      ->group("A kernel of your own");
  if (mutable_)
    app.add_option("--mutant", mutant_, "With one instruction changed, as assay mutate names it")
        ->type_name("ID");
}

const Kernel& KernelOptions::kernel() {
  if (loaded_) return *loaded_;
  if (foreign() && !name_.empty())
    throw BadInput(fmt::format("both KERNEL ({}) and --ptx or --plan given: give one of them", name_));
  if (foreign() && plan_.empty()) throw BadInput("--ptx needs a --plan: give the kernel's launch plan too");
  if (!foreign() && name_.empty())
    throw BadInput("no kernel given: name one (assay list kernels), or give --ptx and --plan");
  if (!foreign() && is_token(name_))
    throw BadInput(
        fmt::format("'{}' is the token of a case, and a kernel is asked; assay replay runs it", name_));
  loaded_ = foreign() ? load_foreign_kernel(ptx_, plan_) : find_kernel(name_);
  if (!mutant_.empty()) loaded_ = with_mutation(*loaded_, mutant_);
  return *loaded_;
}

Case KernelOptions::case_of_token(const std::string& token) {
  Case c = parse_token(token);
  name_ = foreign() ? "" : c.kernel;
  const std::string changed = mutant_.empty() || c.kernel.ends_with("%" + mutant_) ? "" : "%" + mutant_;
  if (changed.empty() && !foreign()) mutant_.clear();  // the token's kernel is that mutant
  if (kernel().name != c.kernel + changed)
    throw BadInput(fmt::format("the token is of kernel {}, the plan of {}", c.kernel, kernel().name));
  c.kernel += changed;
  return c;
}

std::string KernelOptions::replay_suffix() const {
  if (!foreign()) return "";
  return (ptx_.empty() ? "" : " --ptx " + shell_word(ptx_)) + " --plan " + shell_word(plan_) +
         (mutant_.empty() ? "" : " --mutant " + mutant_);
}

void CaseOptions::add_to(CLI::App& app) {
  app_ = &app;
  add_sizes(app);
  add_drawing(app);
}

void CaseOptions::add_sizes(CLI::App& app) {
  const std::string sizes = kSizes;
  app.add_option("-B,--batch", case_.B, "Batches")->check(not_empty())->group(sizes)->capture_default_str();
  app.add_option("-T,--length", case_.T, "Tokens (of all packed sequences together)")
      ->check(not_empty())
      ->group(sizes)
      ->capture_default_str();
  app.add_option("-H,--heads", case_.H, "Heads; with --inputs only where its shapes leave them open")
      ->check(not_empty())
      ->group(sizes)
      ->capture_default_str();
  app.add_option("--value-heads", case_.HV, "Value heads, where the operator has them")
      ->check(not_empty())
      ->group(sizes);
  app.add_option("-K,--key-dim", case_.K, "Key channels; of merge_heads the outputs of the projection")
      ->check(not_empty())
      ->group(sizes)
      ->capture_default_str();
  app.add_option("-V,--value-dim", case_.V, "Value channels, or the channels D of an operator without heads")
      ->check(not_empty())
      ->group(sizes)
      ->capture_default_str();
  app.add_option(
         "-M,--slots", case_.M,
         "Slots, where the operator has them (default: 64); of gated_delta_product the writes per token (2)")
      ->check(not_empty())
      ->group(sizes);
  app.add_option("--cu-seqlens", cu_seqlens_, "Packed sequences: offsets 0,...,T")
      ->type_name("INT,...")
      ->check(not_empty())
      ->group(sizes);
}

void CaseOptions::add_drawing(CLI::App& app) {
  const std::string drawing = kDrawing;
  app.add_option("--dtype", dtype_,
                 "Format of inputs and outputs: bf16, fp16, fp32 (default: bf16 where the kernel takes it)")
      ->group(drawing);
  app.add_option("--gate-dtype", gate_dtype_, "Format of log decays: fp32, bf16, fp16")
      ->group(drawing)
      ->capture_default_str();
  app.add_option("--decay", case_.decay,
                 fmt::format("Decay profile, with arguments as in ladder:8 ({})", names_of(decay_profiles())))
      ->group(drawing)
      ->capture_default_str();
  app.add_option("--values", case_.values, fmt::format("Other values ({})", names_of(value_kinds())))
      ->group(drawing)
      ->capture_default_str();
  app.add_option("--seed", case_.seed, "Seed of the inputs")
      ->check(whole_number(0, UINT64_MAX))
      ->group(drawing)
      ->capture_default_str();
  app.add_option("--scale", scale_, "Scale of the output (default: the operator's)")->group(drawing);
  app.add_option("--parameter", parameters_,
                 "Number of the operator beside its tensors, as in layer_idx=3 (assay list operators)")
      ->delimiter(',')
      ->type_name("NAME=VALUE")
      ->check(not_empty())
      ->group(drawing);
  app.add_option("--layout", layout_,
                 fmt::format("How inputs lie in memory ({}), of all that can or of single ones, as in "
                             "heads-first,q=padded,k=4096:64:64:1 (strides by axis, in elements)",
                             names_of(layouts())))
      ->delimiter(',')
      ->group(drawing);
  app.add_option("--rates", case_.rates,
                 "The largest rate of a delta rule that is drawn, up to 2 (default: what the kernel takes)")
      ->group(drawing);
  app.add_option("--without", without_, "Absent optional inputs, as in g")->delimiter(',')->group(drawing);
  app.add_flag("--initial-state", case_.initial_state, "With an initial state")->group(drawing);
  app.add_option("--set", case_.overrides, "Set single elements, as in \"g[0,16,0,3]=-90\"")->group(drawing);
  app.add_option("--direction", direction_, "forward, backward (gradients) or both")
      ->group(drawing)
      ->capture_default_str();
  app.add_flag("--final-state-gradient", case_.final_state_gradient,
               "With a gradient of the final state (backward)")
      ->group(drawing);
  app.add_option(
         "--blocks", case_.blocks,
         "Run only these blocks of each launch, on the machine, as in 0,5,last or 0..3 or last-7..last; "
         "tensors above 64 MiB are then made on demand, up to 2^40 bytes")
      ->group(kSizes);
  app.add_option(
         "--inputs", inputs_,
         "Inputs from a file; sizes are read from it. Outputs that it holds too (o, final_state, ...) are "
         "held against the reference")
      ->type_name("FILE.safetensors|FILE.npz|DIR of .npy")
      ->check(not_empty())
      ->group(drawing);
  app.add_option(
         "--map", map_,
         "Names in that file: q=query_states takes its tensor query_states as q, o=attn_output as the "
         "expected output o")
      ->delimiter(',')
      ->type_name("NAME=TENSOR")
      ->group(drawing);
}

Case CaseOptions::from_options(const Kernel& kernel) const {
  Case c = case_;
  c.kernel = kernel.name;
  c.dtype = app_->count("--dtype") ? format(dtype_).dtype : usual(format(dtype_).dtype, kernel.limits.dtypes);
  c.direction = direction_of(direction_);
  c.gate_dtype = app_->count("--gate-dtype") ? format(gate_dtype_).dtype
                                             : usual(format(gate_dtype_).dtype, kernel.limits.gate_dtypes);
  c.without = {without_.begin(), without_.end()};
  if (!app_->count("--rates"))
    c.rates = largest_rate(kernel);
  else if (!removes_from_state(find_operator(kernel.operator_name)))
    throw BadInput(fmt::format("--rates: {} has none; leave it out", kernel.operator_name));
  if (app_->count("--scale")) c.scale = scale_;
  c.parameters = parse_parameters(fmt::format("{}", fmt::join(parameters_, ",")));
  c.layout = layout_text(parse_layout(fmt::format("{}", fmt::join(layout_, ","))));
  if (!cu_seqlens_.empty()) c.cu_seqlens = parse_offsets(cu_seqlens_);
  if (!c.cu_seqlens.empty() && !app_->count("--length")) c.T = c.cu_seqlens.back();
  if (!c.blocks.empty()) chosen_blocks(c.blocks, 1);  // throws for what is none
  if (c.values == "exact" && !app_->count("--decay")) c.decay = "none";
  return c;
}

Case CaseOptions::unchecked(const Kernel& kernel) const {
  if (!inputs_.empty()) throw BadInput("--inputs: this command draws its inputs; leave --inputs out");
  return with_slots(from_options(kernel), kernel);
}

/// A case that asks for no slots has the usual number, where its operator has them.
Case CaseOptions::with_slots(Case c, const Kernel& kernel) const {
  if (!app_->count("--slots"))
    c.M = std::min(usual_slots(find_operator(kernel.operator_name)), kernel.limits.max_M);
  return c;
}

CaseToRun CaseOptions::resolve(const Kernel& kernel) const {
  const Operator& op = find_operator(kernel.operator_name);
  Case c = from_options(kernel);
  if (inputs_.empty()) {
    if (!map_.empty()) throw BadInput("--map names tensors of a file: give it with --inputs");
    c = with_slots(c, kernel);
    validate(c, op);
    return {c, std::nullopt, {}, "", {}};
  }
  for (const char* option : kDrawn) {
    if (app_->count(option))
      throw BadInput(
          fmt::format("{} and --inputs: the file already says this; leave {} out", option, option));
  }
  const int64_t heads = app_->count("--heads") ? case_.H : 0;
  if (app_->count("--heads") && heads < 1) throw BadInput(fmt::format("H = {}: must be at least 1", heads));
  GivenInputs given = fit_inputs(c, op, renamed(read_tensors(inputs_), map_, inputs_), inputs_, heads);
  return {given.case_, std::move(given.inputs), std::move(given.expected), options_of_file(),
          std::move(given.notes)};
}

std::vector<std::string> CaseOptions::all_given() const {
  std::vector<std::string> given;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && (option->get_group() == kSizes || option->get_group() == kDrawing))
      given.push_back(option->get_name());
  return given;
}

std::string CaseOptions::first_given() const {
  const std::vector<std::string> given = all_given();
  return given.empty() ? "" : given.front();
}

/// As they were given: of the other options none says what the file says.
std::string CaseOptions::options_of_file() const {
  std::string text = fmt::format(" --inputs {}", inputs_);
  if (!map_.empty()) text += fmt::format(" --map {}", fmt::join(map_, ","));
  if (!layout_.empty()) text += fmt::format(" --layout {}", fmt::join(layout_, ","));
  if (app_->count("--heads")) text += fmt::format(" -H {}", case_.H);
  if (!cu_seqlens_.empty()) text += fmt::format(" --cu-seqlens {}", cu_seqlens_);
  if (!parameters_.empty()) text += fmt::format(" --parameter {}", fmt::join(parameters_, ","));
  if (app_->count("--scale")) text += fmt::format(" --scale {}", scale_);
  if (app_->count("--direction")) text += fmt::format(" --direction {}", direction_);
  if (!case_.blocks.empty()) text += fmt::format(" --blocks {}", case_.blocks);
  return text;
}

}  // namespace assay::cli
