#include "fuzz/trial_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/compile_ptx.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using nlohmann::json;
using Kernels = std::vector<const Kernel*>;

const Kernel* kernel_named(const Kernels& kernels, const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  if (found == kernels.end())
    throw BadInput(fmt::format("{} is no kernel of this member: start all with the same command", name));
  return *found;
}

json written(const Trial& trial) {
  json names = json::array();
  for (const Property* property : trial.properties) names.push_back(property->name);
  return {{"index", trial.index},      {"kernel", trial.kernel->name}, {"case", token_of(trial.case_)},
          {"properties", names},       {"rerun", trial.rerun},         {"shrunk", trial.shrunk},
          {"diagnose", trial.diagnose}};
}

Trial read_trial(const json& text, const Kernels& kernels) {
  Trial trial;
  trial.index = text.at("index");
  trial.kernel = kernel_named(kernels, text.at("kernel"));
  trial.case_ = parse_token(text.at("case"));
  for (const std::string name : text.at("properties")) trial.properties.push_back(&find_property(name));
  trial.rerun = text.at("rerun"), trial.shrunk = text.at("shrunk"), trial.diagnose = text.at("diagnose");
  return trial;
}

/// With the branches, from which drawing learns, and which no result has.
json written(const Verification& v) {
  json branches = json::array();
  for (const BranchSides& one : v.branches) branches.push_back({one.function, one.sides});
  return {{"document", to_json(v)}, {"branches", branches}};
}

Verification read_verification(const json& text) {
  Verification v = verification_from_json(text.at("document"));
  for (const json& one : text.at("branches"))
    v.branches.push_back({one.at(0), one.at(1).get<std::vector<uint8_t>>()});
  return v;
}

/// A trial that was not judged has no verification.
json written(const TrialReport& report) {
  json outcomes = json::array();
  for (const PropertyOutcome& outcome : report.outcomes)
    outcomes.push_back({outcome.property->name, outcome.failure ? json(*outcome.failure) : json()});
  const bool judged = report.rejected.empty() && !report.too_large;
  return {{"trial", written(report.trial)},
          {"rejected", report.rejected},
          {"too_large", report.too_large},
          {"verification", judged ? written(report.verification) : json()},
          {"plain_cause", report.plain_cause},
          {"property", report.property != nullptr ? json(report.property->name) : json()},
          {"outcomes", outcomes},
          {"seconds", report.seconds}};
}

TrialReport read_report(const json& text, const Kernels& kernels) {
  TrialReport report;
  report.trial = read_trial(text.at("trial"), kernels);
  report.rejected = text.at("rejected"), report.too_large = text.at("too_large");
  if (!text.at("verification").is_null()) report.verification = read_verification(text.at("verification"));
  report.plain_cause = text.at("plain_cause");
  if (const json& name = text.at("property"); !name.is_null())
    report.property = &find_property(name.get<std::string>());
  for (const json& outcome : text.at("outcomes")) {
    PropertyOutcome& one = report.outcomes.emplace_back();
    one.property = &find_property(outcome.at(0).get<std::string>());
    if (!outcome.at(1).is_null()) one.failure = outcome.at(1).get<std::string>();
  }
  report.seconds = text.at("seconds");
  return report;
}

/// What a trial throws is thrown where it was asked for.
constexpr const char *kBadInput = "bad_input", *kCannotCompile = "cannot_compile", *kNoMemory = "no_memory";

json asked(Leader& leader, const json& request) {
  json answer = json::parse(leader.ask(request.dump()));
  if (answer.contains(kBadInput)) throw BadInput(answer.at(kBadInput).get<std::string>());
  if (answer.contains(kCannotCompile)) throw CannotCompile(answer.at(kCannotCompile).get<std::string>());
  if (answer.contains(kNoMemory)) throw std::bad_alloc();
  return answer;
}

/// JSON has no infinity.
double as_json(double seconds) {
  return std::min(seconds, 1e9);
}

json answered(TrialRunner& own, const json& request, const Kernels& kernels) {
  if (request.contains("run")) return written(own.run(read_trial(request.at("run"), kernels)));
  const TrialReport original = read_report(request.at("original"), kernels);
  if (request.contains("smallest"))
    return written(
        own.fully_traced(original, read_verification(request.at("smallest")), request.at("seconds")));
  const auto smaller =
      own.with_same_cause(original, parse_token(request.at("smaller")), request.at("seconds"));
  return smaller ? written(*smaller) : json::object();
}

}  // namespace

TrialReport OwnTrials::run(const Trial& trial) {
  return run_trial(trial, backend_, options_);
}

std::optional<Verification> OwnTrials::with_same_cause(const TrialReport& original, const Case& c,
                                                       double seconds) {
  return assay::with_same_cause(original, c, backend_, options_, seconds);
}

Verification OwnTrials::fully_traced(const TrialReport& original, const Verification& smallest,
                                     double seconds) {
  return assay::fully_traced(original, smallest, backend_, options_, seconds);
}

TrialReport SharedTrials::run(const Trial& trial) {
  return read_report(asked(leader_, {{"run", written(trial)}}), kernels_);
}

std::optional<Verification> SharedTrials::with_same_cause(const TrialReport& original, const Case& c,
                                                          double seconds) {
  const json answer = asked(
      leader_, {{"original", written(original)}, {"smaller", token_of(c)}, {"seconds", as_json(seconds)}});
  return answer.empty() ? std::nullopt : std::optional(read_verification(answer));
}

Verification SharedTrials::fully_traced(const TrialReport& original, const Verification& smallest,
                                        double seconds) {
  return read_verification(asked(
      leader_,
      {{"original", written(original)}, {"smallest", written(smallest)}, {"seconds", as_json(seconds)}}));
}

void serve_trials(Team& team, const Kernels& kernels, Backend& backend, const FuzzOptions& options) {
  OwnTrials own(backend, options);
  serve(team, [&](const std::string& request) {
    json answer;
    try {
      answer = answered(own, json::parse(request), kernels);
    } catch (const BadInput& error) {
      answer = {{kBadInput, error.what()}};
    } catch (const CannotCompile& error) {
      answer = {{kCannotCompile, error.what()}};
    } catch (const std::bad_alloc&) {
      answer = {{kNoMemory, true}};
    }
    return answer.dump();
  });
}

}  // namespace assay
