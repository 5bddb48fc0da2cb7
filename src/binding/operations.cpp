#include "src/binding/operations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fuzz/properties.h"
#include "kernels/proposed_arithmetic.h"
#include "reports/html.h"
#include "reports/markdown.h"
#include "reports/print_fuzz.h"
#include "reports/print_inspection.h"
#include "reports/print_shadow.h"
#include "reports/print_sweep.h"
#include "reports/print_verification.h"
#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/program/tile_map_bytes.h"
#include "src/base/ptx/fatbin.h"
#include "src/base/ptx/printable.h"
#include "src/base/ptx/program.h"
#include "src/base/ptx/rewrite.h"
#include "src/base/tensor/tensor_file.h"
#include "src/binding/arrays.h"
#include "src/binding/given_case.h"
#include "src/case/names.h"
#include "src/case/operator_fit.h"
#include "src/case/output_element.h"
#include "src/result/inspection.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/check_program.h"
#include "src/verification/verify/explain.h"
#include "src/verification/verify/given_outputs.h"
#include "src/verification/verify/program_choice.h"
#include "src/verification/verify/reference_run.h"

namespace assay::binding {

using nlohmann::json;

void Request::tell(const std::string& line) const {
  if (control && control->progress) control->progress(control->user, ptx::printable(line).c_str());
}

namespace {

/// About ten seconds of shadow execution on two cores; a longer run goes without.
constexpr uint64_t kPrecisionInstructions = 500'000'000;

// ---- results for people ----

class TextConsole {
 public:
  TextConsole() : stream_(open_memstream(&text_, &bytes_)), console(stream_) {}
  ~TextConsole() {
    if (stream_) std::fclose(stream_);
    std::free(text_);
  }
  TextConsole(const TextConsole&) = delete;
  TextConsole& operator=(const TextConsole&) = delete;
  std::string text() {
    std::fflush(stream_);
    return {text_, bytes_};
  }

 private:
  char* text_ = nullptr;
  size_t bytes_ = 0;
  std::FILE* stream_;

 public:
  const Console console;
};

void print_result(const Console& console, const json& result) {
  const std::string kind = result.at("kind");
  if (kind == "verification") {
    const Verification v = verification_from_json(result);
    if (v.verdict == Verdict::domain && v.outputs.empty())
      return console.line(fmt::format("out of the domain of {}: {}; nothing was launched", v.kernel,
                                      fmt::join(v.domain, "; ")));
    print_verification(console, v);
    if (v.shadow) print_shadow(console, v);
  } else if (kind == "fuzz") {
    print_fuzz_run(console, fuzz_run_from_json(result), false);
  } else if (kind == "sweep") {
    print_sweep(console, sweep_from_json(result));
  } else if (kind == "inspection") {
    print_inspection(console, result);
  } else {
    console.text(render_markdown(result));
  }
}

json text(const Request& request) {
  TextConsole to;
  print_result(to.console, request.given.at("result"));
  return {{"text", to.text()}};
}

json html(const Request& request) {
  return {{"html", render_html(request.given.at("result"))}};
}

// ---- operators ----

TensorMap as_given(const Request& request) {
  TensorMap tensors;
  for (const assay_array& array : request.arrays) {
    Tensor tensor = elements_of(array);
    for (Axis& axis : tensor.axes) axis.name.clear();
    tensors.emplace(array.name ? array.name : "", std::move(tensor));
  }
  return tensors;
}

json inspect_tensors(const Request& request) {
  const json& given = request.given;
  const TensorMap tensors = as_given(request);
  Case base;
  base.kernel = "inspect";
  base.layout = given.value("layout", "");
  const std::string source = "assay.inspect";
  return to_json(
      inspect(source, tensors, fit_operators(tensors, base, given.value("heads", int64_t{0}), source)));
}

Tensor numbers(const std::string& name, const std::vector<Axis>& axes, const std::vector<double>& values) {
  Tensor tensor(name, Dtype::fp64, axes);
  std::memcpy(tensor.data.data(), values.data(), values.size() * sizeof(double));
  return tensor;
}

/// The ladder goes on until radii are 2^-10 of the bound, which an arithmetic that rounds states and outputs
/// makes of values.
constexpr double kOfBound = 0x1p-10;

json reference(const Request& request) {
  const CaseOfTensors made = case_of_tensors(request);
  const ResolvedCase resolved = resolve(made.given.case_, *made.op);
  const double roundoff = request.given.value("precision", 0x1p-40) / kOfBound;
  if (!(roundoff > 0 && roundoff < 1))
    throw BadInput("precision: a share of the value below 2^-10 was expected");
  Claim claim{.of = &resolved};
  for (Arithmetic* part : {&claim.arithmetic, &claim.adjoint.state, &claim.adjoint.adjoint})
    part->output_roundoff = part->step = roundoff;
  claim.adjoint.gate_output_roundoff = roundoff;
  require_memory(resolved);
  request.tell(fmt::format("evaluating {} ...", made.op->name));
  const ReferenceResult result = evaluate_reference(
      resolved, declared_problem(claim, made.given.inputs, request.given.value("threads", 0)));
  json outputs = json::array();
  for (const ReferenceOutput& output : result.outputs) {
    std::vector<std::string> axes;
    for (const Axis& axis : output.axes) axes.push_back(axis.name);
    outputs.push_back({{"name", output.name},
                       {"axes", axes},
                       {"rung", output.rung},
                       {"wide", output.wide},
                       {"undecided", output.undecided}});
    request.answer.arrays.push_back(numbers(output.name, output.axes, output.mid));
    request.answer.arrays.push_back(numbers(output.name, output.axes, output.rad));
  }
  return {{"operator", made.op->name},
          {"outputs", outputs},
          {"notes", made.given.notes},
          {"scale", resolved.scale},
          {"seconds", result.seconds}};
}

std::string call_text(const char* function, const Request& request) {
  std::string names;
  for (const assay_array& array : request.arrays) names += fmt::format(", {}=..", array.name);
  return fmt::format("assay.{}(\"{}\"{}) with the same tensors", function,
                     request.given.at("name").get<std::string>(), names);
}

json with_notes(const Verification& v, const std::vector<std::string>& notes) {
  return {{"result", to_json(v)}, {"notes", notes}};
}

/// The kernel's own run on the tensors.
Verification run_kernel(const char* function, const Request& request, const CaseOfTensors& made,
                        VerifyOptions options) {
  BackendOptions where;
  where.arch = options.origin.machine.arch, where.threads = options.threads;
  const auto machine = make_vm_backend(where);
  options.inputs = &made.given.inputs, options.expected = &made.given.expected;
  request.tell(fmt::format("verifying {} on {} ...", made.kernel->name, machine->name()));
  Verification v = verify(made.given.case_, *made.kernel, *machine, options);
  v.token.clear();
  v.replay = call_text(function, request);
  return v;
}

json verify_tensors(const Request& request) {
  const CaseOfTensors made = case_of_tensors(request);
  VerifyOptions options = verify_options(request);
  const bool judged = request.given.value("judge_outputs", false);
  if (!judged && !made.kernel)
    throw BadInput(
        fmt::format("{}: an operator has no launches: give outputs={{...}} to be judged, or name a "
                    "kernel, as in {}.chunk",
                    made.op->name, made.op->name));
  if (!judged) return with_notes(run_kernel("verify", request, made, options), made.given.notes);
  if (made.given.expected.empty()) throw BadInput(fmt::format("{}: outputs: none is given", made.op->name));
  const Kernel declares = declaring_kernel(request, made);
  options.meaning_seconds = request.given.value("diagnose", true) ? options.meaning_seconds : 0;
  request.tell(fmt::format("judging {} outputs of {} ...", made.given.expected.size(), made.op->name));
  Verification v = judge_outputs(made.given.case_, declares, made.given.inputs, made.given.expected, options);
  v.replay = call_text("verify", request);
  return with_notes(v, made.given.notes);
}

// ---- kernels ----

VerifyOptions trace_options(const Request& request) {
  VerifyOptions options = verify_options(request);
  options.twice = false;
  options.shadow_instructions = kPrecisionInstructions;
  options.first = request.given.value("first", false);
  options.all_origins = request.given.value("all", false);
  options.slice = true;
  return options;
}

void choose_element(const Request& request, const Case& c, const Operator& op, VerifyOptions& options) {
  const std::string element = request.given.value("element", "");
  if (!element.empty()) options.element = parse_element(element, c, op);
}

struct Replayed {
  Case case_;
  Kernel kernel;
  std::unique_ptr<Backend> machine;
};

Replayed replayed(const Request& request, const std::string& token, const VerifyOptions& options) {
  Replayed made{parse_token(token), {}, nullptr};
  made.kernel = find_kernel(made.case_.kernel);
  BackendOptions where;
  where.arch = options.origin.machine.arch, where.threads = options.threads;
  made.machine = make_vm_backend(where);
  request.tell(fmt::format("verifying {} on {} ...", made.kernel.name, made.machine->name()));
  return made;
}

json trace(const Request& request) {
  VerifyOptions options = trace_options(request);
  const std::string name = request.given.at("name");
  if (name.find('/') != name.npos) {
    const Replayed made = replayed(request, name, options);
    choose_element(request, made.case_, find_operator(made.kernel.operator_name), options);
    return with_notes(verify(made.case_, made.kernel, *made.machine, options), {});
  }
  const CaseOfTensors made = case_of_tensors(request);
  if (!made.kernel)
    throw BadInput(
        fmt::format("{}: name a kernel, as in {}.chunk, or the token of a case", name, made.op->name));
  choose_element(request, made.given.case_, *made.op, options);
  return with_notes(run_kernel("trace", request, made, options), made.given.notes);
}

json replay(const Request& request) {
  const VerifyOptions options = verify_options(request);
  const Replayed made = replayed(request, request.given.at("token"), options);
  Verification v = verify(made.case_, made.kernel, *made.machine, options);
  const bool values_right = v.verdict == Verdict::pass;
  std::vector<DerivedRun> derived;
  if (was_run(v)) derived = judge_properties(v, made.kernel, *made.machine);
  if (values_right && v.verdict == Verdict::finding)
    explain_properties(made.kernel, *made.machine, options, derived, v);
  return with_notes(v, {});
}

// ---- programs ----

json check(const Request& request) {
  const json& given = request.given;
  ProgramChoice choice;
  choice.path = given.at("file");
  choice.ptx = given.value("ptx", std::vector<std::string>());
  const json sizes = given.value("sizes", json::object());
  for (const auto& [name, value] : sizes.items()) choice.sizes.emplace_back(name, value.get<int64_t>());
  choice.vary = given.value("vary", "");
  choice.seed = given.value("seed", uint64_t{1});
  Capsule capsule = choice.load();
  capsule.program.blocks = given.value("blocks", "");
  ProgramCheckOptions options;
  options.machine = options.origin.machine = machine_options(request);
  options.checks = vm::parse_checks(given.value("checks", std::string("all")));
  if (!capsule.recorded.empty()) options.recorded = &capsule.recorded;
  options.partly = capsule.partly, options.fixed = capsule.fixed;
  options.orders = options.poison = options.architectures = given.value("repeats", true);
  options.shadow_instructions = given.value("precision", false) ? kPrecisionInstructions : 0;
  const TensorMap expected = as_given(request);
  if (!expected.empty()) options.expected = &expected;
  options.tolerance = given.value("tolerance", 0.0);
  json printed = json::array();
  options.ran = [&](const Outcome& outcome) { printed = outcome.printed; };
  request.tell(fmt::format("checking {} on vm {} ...", capsule.name, options.machine.arch));
  Verification v = check_program(capsule.name, capsule.program, capsule.inputs, options);
  for (const json& line : printed) request.tell("printed  " + line.get<std::string>());
  choice.describe(capsule, v);
  return with_notes(v, {});
}

json arithmetic(const Request& request) {
  std::vector<ptx::Module> modules;
  for (const json& text : request.given.at("texts"))
    modules.push_back(ptx::parse_functions(text.at("text").get_ref<const std::string&>(), text.at("path")));
  const ProposedArithmetic proposal = propose_arithmetic(modules, request.given.value("operator", ""),
                                                         request.given.value("declared", json()));
  json made = to_json(proposal);
  made["text"] = text_of(proposal);
  return made;
}

/// Of a file, or of the first array's memory; none where it holds none.
json embedded_texts(const Request& request) {
  std::string file;
  std::string_view bytes;
  const std::string path = request.given.value("file", "fat binary");
  if (!request.arrays.empty())
    bytes = {reinterpret_cast<const char*>(request.arrays[0].address), request.arrays[0].bytes};
  else
    bytes = file = read_file(path);
  json texts = json::array();
  try {
    if (ptx::is_container(bytes))
      for (ptx::EmbeddedText& text : ptx::embedded_texts(bytes, path))
        texts.push_back({{"path", std::move(text.path)}, {"text", std::move(text.text)}});
  } catch (const BadInput&) {  // machine code alone
  }
  return {{"texts", std::move(texts)}};
}

json explicit_rounding(const Request& request) {
  return {{"text", ptx::make_rounding_explicit(request.given.at("text").get_ref<const std::string&>())}};
}

/// As cuTensorMapEncodeTiled writes it; axes innermost first.
json tensor_map(const Request& request) {
  const json& given = request.given;
  static constexpr const char* kElements[] = {"u8",  "u16", "u32",  "i32",     "u64",  "i64",     "f16",
                                              "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};
  const auto number = [&](const char* key, const char* name, int64_t most) {
    const int64_t value = given.value(key, int64_t{0});
    if (value < 0 || value > most)
      throw BadInput(fmt::format("tensor map: {} {}: 0 to {} are possible", name, value, most));
    return static_cast<uint8_t>(value);
  };
  TileMap map;
  const std::string element = given.at("element");
  const auto* const row = std::find(std::begin(kElements), std::end(kElements), element);
  if (row == std::end(kElements))
    throw BadInput(
        fmt::format("tensor map: no element {}; there are {}", element, fmt::join(kElements, ", ")));
  map.element = static_cast<TileMap::Element>(row - std::begin(kElements));
  given.at("sizes").get_to(map.sizes);
  given.at("strides").get_to(map.strides);
  given.at("box").get_to(map.box);
  given.at("steps").get_to(map.steps);
  if (map.box.empty() || map.box.size() != map.sizes.size() || map.steps.size() != map.sizes.size() ||
      map.strides.size() + 1 != map.sizes.size())
    throw BadInput(
        fmt::format("tensor map: {} sizes, {} strides, {} of the box and {} steps do not go together",
                    map.sizes.size(), map.strides.size(), map.box.size(), map.steps.size()));
  map.swizzle = static_cast<TileMap::Swizzle>(number("swizzle", "swizzle", 3));
  map.interleave = static_cast<TileMap::Interleave>(number("interleave", "interleave", 2));
  map.outside = static_cast<TileMap::Outside>(number("outside", "fill", 1));
  const uint64_t address = given.at("address");
  if (const std::string fault = fault_of(map, address); !fault.empty())
    throw BadInput("tensor map: " + fault);
  std::byte bytes[TileMap::bytes];
  encode_tile_map(map, address, bytes);
  json list = json::array();
  for (const std::byte byte : bytes) list.push_back(static_cast<int>(byte));
  return {{"bytes", list}};
}

const Operation kOperations[] = {
    {"text", "what the command line prints of a result", text},
    {"html", "the page of a result", html},
    {"inspect", "what tensors hold, and which operators they can be the inputs of", inspect_tensors},
    {"reference", "an operator's outputs: midpoints and radii", reference},
    {"verify", "a kernel's run, or given outputs, against the reference", verify_tensors},
    {"trace", "where a non-finite element was born, what stands behind any", trace},
    {"replay", "a case from its token, with every property", replay},
    {"tensor_map", "the 128 bytes that a kernel is given", tensor_map},
    {"arithmetic", "what modules may declare of their roundings", arithmetic},
    {"embedded_texts", "the PTX in a file of nvcc's or a linker's, or in memory", embedded_texts},
    {"explicit_rounding", "PTX whose roundings an assembler keeps apart", explicit_rounding},
    {"operator", "its inputs, outputs and parameters", operator_of},
    {"fuzz", "a function of the caller's, on cases of an operator", fuzz_function},
    {"check_function", "one call of a function that no operator describes", check_function},
    {"replay_function", "a case of it again, with every property", replay_function},
    {"check", "a launch file or a capsule, whatever it computes", check},
};

}  // namespace

const Operation& operation_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Operation& operation : kOperations) {
    if (operation.name == name) return operation;
    names.emplace_back(operation.name);
  }
  throw BadInput(unknown_name("operation", name, names));
}

}  // namespace assay::binding
