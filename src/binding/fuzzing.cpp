// Functions of the caller's under fuzzing.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "fuzz/properties.h"
#include "src/base/numerics/abandon.h"
#include "src/base/numerics/bad_input.h"
#include "src/binding/function.h"
#include "src/binding/given_case.h"
#include "src/binding/operations.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/explain.h"

namespace assay::binding {
namespace {

using nlohmann::json;

class TellingListener : public Listener {
 public:
  explicit TellingListener(const Request& request) : request_(request) {}
  void progress(const FuzzProgress& p) override { request_.tell(text_of(p)); }
  void found(const Verification& v) override { request_.tell(fmt::format("found {}  {}", v.cause, v.token)); }

 private:
  const Request& request_;
};

/// Small cases of sizes that programs take, the most usual first, to see what the function gives at all.
std::vector<Case> probing_cases(const Kernel& kernel, const Operator& op) {
  std::vector<Case> cases;
  for (const int64_t width : {64, 32, 16, 128, 1})
    for (const Dtype dtype : kernel.limits.dtypes) {
      Case c;
      c.kernel = kernel.name;
      c.T = 64, c.H = 2, c.M = std::min(usual_slots(op), kernel.limits.max_M);
      c.K = std::min<int64_t>(width, kernel.limits.max_K);
      c.V = std::min<int64_t>(width, kernel.limits.max_V);
      c.dtype = dtype, c.gate_dtype = kernel.limits.gate_dtypes.front();
      c.decay = "mild";
      for (const ArgumentSpec& input : op.inputs)
        if (input.optional) c.without.insert(std::string(input.name));
      Case all = c;
      all.without.clear();
      for (Case& each : {std::ref(all), std::ref(c)}) {
        for (const auto& [axis, sizes] : kernel.sizes) {
          if (sizes.empty()) continue;
          int64_t* const size = axis == "T"   ? &each.T
                                : axis == "H" ? &each.H
                                : axis == "K" ? &each.K
                                : axis == "V" ? &each.V
                                              : nullptr;
          if (size) *size = sizes.front();
        }
        cases.push_back(each);
      }
    }
  return cases;
}

/// What a first run says; throws BadInput where the function fails on all of them.
json probe(FunctionBackend& backend, const Kernel& kernel, const Operator& op) {
  std::string why;
  for (const Case& c : probing_cases(kernel, op)) try {
      Kernel forward = kernel;
      if (!forward.arithmetic) forward.arithmetic = [](const ResolvedCase&) { return Arithmetic(); };
      const ResolvedCase resolved = accepted(c, forward);
      const TensorMap inputs = draw_inputs(resolved);
      json said = backend.probe(program_of(kernel, resolved, inputs), inputs);
      if (!said.contains("refused")) return said;
      if (why.empty()) why = said.at("refused");
    } catch (const BadInput& refused) {
      if (why.empty()) why = refused.what();
    }
  throw BadInput(why.starts_with(kernel.name + ": ") ? why : fmt::format("{}: {}", kernel.name, why));
}

struct Subject {
  Kernel kernel;
  const Operator& op;
  std::vector<std::string> notes;
};

/// The kernel that the request describes, its directions those that the function can go.
Subject subject_of(const Request& request, FunctionBackend& backend) {
  Subject made{
      function_kernel(request.given), find_operator(request.given.at("operator").get<std::string>()), {}};
  const json said = probe(backend, made.kernel, made.op);
  if (!request.given.contains("arithmetic") && said.contains("arithmetic")) {
    json given = request.given;
    given["arithmetic"] = said.at("arithmetic");
    made.kernel = function_kernel(given);
    made.notes.push_back(said.at("why"));
  }
  const bool chosen = request.given.contains("directions");
  if (!said.value("differentiable", false)) {
    if (chosen && !made.kernel.arithmetic)
      throw BadInput(fmt::format("{}: its outputs carry no gradients", made.kernel.name));
    made.kernel.adjoint_arithmetic = nullptr;
    if (chosen && request.given.at("directions") != "forward")
      throw BadInput(fmt::format("{}: its outputs carry no gradients", made.kernel.name));
    made.notes.push_back("forward only: the outputs carry no gradients");
  }
  for (const ArgumentSpec& output : made.op.outputs) {
    const json& given = said.at("outputs");
    if (std::find(given.begin(), given.end(), output.name) == given.end())
      made.notes.push_back(fmt::format("{} is not returned, and not judged", output.name));
  }
  return made;
}

std::string replay_text(const std::string& token, const Subject& subject) {
  return fmt::format("assay.replay(\"{}\", {}, op=\"{}\", ..) with the same options", token,
                     subject.kernel.name, subject.op.name);
}

FuzzOptions fuzz_options(const Request& request) {
  FuzzOptions options;
  options.cases = request.given.value("cases", int64_t{0});
  options.time_s = request.given.value("time", 60.0);
  options.seed = request.given.at("seed");
  options.jobs = request.given.value("jobs", 0);
  options.db = request.given.value("db", std::string());
  options.known_first = request.given.value("known_first", false);
  options.shrink_evaluations = request.given.value("shrink", options.shrink_evaluations);
  options.interrupted = abandon_flag;
  options.origin.machine = machine_options(request);
  return options;
}

}  // namespace

json fuzz_function(const Request& request) {
  if (!request.function) throw BadInput("fuzz: no function is given");
  FunctionBackend backend(*request.function, request.given.value("backend", std::string("a function")));
  const Subject subject = subject_of(request, backend);
  const FuzzOptions options = fuzz_options(request);
  TellingListener listener(request);
  FuzzRun run = fuzz({&subject.kernel}, backend, options, listener);
  require_wanted();
  for (Verification& v : run.findings) v.replay = replay_text(v.token, subject);
  return {{"result", to_json(run)}, {"notes", subject.notes}};
}

json replay_function(const Request& request) {
  if (!request.function) throw BadInput("replay: no function is given");
  FunctionBackend backend(*request.function, request.given.value("backend", std::string("a function")));
  const Subject subject = subject_of(request, backend);
  VerifyOptions options = verify_options(request);
  Case c = parse_token(request.given.at("token"));
  c.kernel = subject.kernel.name;
  Verification v = verify(c, subject.kernel, backend, options);
  const bool values_right = v.verdict == Verdict::pass;
  std::vector<DerivedRun> derived;
  if (was_run(v)) derived = judge_properties(v, subject.kernel, backend);
  if (values_right && v.verdict == Verdict::finding)
    explain_properties(subject.kernel, backend, options, derived, v);
  v.replay = replay_text(v.token, subject);
  return {{"result", to_json(v)}, {"notes", subject.notes}};
}

json operator_of(const Request& request) {
  const Operator& op = find_operator(request.given.at("name").get<std::string>());
  const auto listed = [](const std::vector<ArgumentSpec>& specs) {
    json list = json::array();
    for (const ArgumentSpec& spec : specs)
      list.push_back({{"name", spec.name}, {"axes", spec.axes}, {"optional", spec.optional}});
    return list;
  };
  json parameters = json::array();
  for (const ParameterSpec& parameter : op.parameters) parameters.push_back(parameter.name);
  return {{"inputs", listed(op.inputs)},
          {"outputs", listed(op.outputs)},
          {"parameters", parameters},
          {"takes_scale", op.takes_scale}};
}

}  // namespace assay::binding
