#include "src/verification/verify/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "src/verification/compare/accumulated_decay.h"
#include "src/verification/compare/compare.h"
#include "src/verification/compare/error_statistics.h"
#include "src/verification/compare/formula.h"
#include "src/verification/compare/power.h"
#include "src/verification/compare/rounding.h"
#include "src/verification/diagnosis/diagnose.h"
#include "src/verification/diagnosis/failing_run.h"
#include "src/verification/diagnosis/meaning.h"
#include "src/verification/verify/expected_outputs.h"
#include "src/verification/verify/reference_run.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

/// Judges every output the program writes, in the operator's order. Of an output that the blocks of a partial
/// run say nothing about, nothing is judged.
std::vector<OutputComparison> compare_outputs(const ProgramRun& run, const ReferenceResult& reference,
                                              int threads) {
  std::vector<OutputComparison> comparisons;
  for (const ReferenceOutput& expected : reference.outputs) {
    const auto got = run.outcome.outputs.find(expected.name);
    if (got == run.outcome.outputs.end()) continue;
    if (!run.written) {
      comparisons.push_back(compare_output(got->second, expected, nullptr, 0, threads));
      continue;
    }
    const auto settled = run.written->settled.find(expected.name);
    const bool known = settled != run.written->settled.end();
    const std::vector<uint8_t> none(known ? 0 : expected.mid.size());
    comparisons.push_back(
        compare_output(got->second, expected, known ? &settled->second : &none, 0, threads));
  }
  return comparisons;
}

/// In the order of compare_outputs.
std::vector<ErrorStatistics> statistics_of(const Outcome& outcome, const ReferenceResult& reference) {
  std::vector<ErrorStatistics> statistics;
  for (const ReferenceOutput& expected : reference.outputs) {
    const auto got = outcome.outputs.find(expected.name);
    if (got != outcome.outputs.end()) statistics.push_back(error_statistics(got->second, expected));
  }
  return statistics;
}

/// What the errors of those outputs add up to that are log decays.
std::vector<AccumulatedDecay> accumulate(const Outcome& outcome, const ReferenceResult& reference,
                                         const ResolvedCase& c) {
  std::vector<AccumulatedDecay> sums;
  for (const ArgumentSpec& spec : c.op->outputs)
    for (const ReferenceOutput& expected : reference.outputs) {
      if (spec.role != Role::log_decay || expected.name != spec.name || !outcome.outputs.count(expected.name))
        continue;
      if (auto sum = accumulated_decay(outcome.outputs.at(expected.name), expected, c.case_.cu_seqlens))
        sums.push_back(*std::move(sum));
    }
  return sums;
}

/// Values are judged where the run ended and all its tensors are held.
bool has_values(const TensorMap& inputs, const ProgramRun& run, const Verification& v) {
  const auto held = [](const auto& entry) { return entry.second.is_held(); };
  if (run.outcome.trap) return false;
  if (!run.written) return true;
  return !v.trap && std::all_of(inputs.begin(), inputs.end(), held) &&
         std::all_of(run.outcome.outputs.begin(), run.outcome.outputs.end(), held);
}

void describe_partial(const ProgramRun& run, bool judged, Verification& v) {
  if (!judged) {
    *v.partial += "; no value is judged: tensors beyond 64 MiB are made on demand and have no reference";
    return;
  }
  for (const OutputComparison& output : v.outputs)
    *v.partial += fmt::format("; {} of {} elements of {} judged", output.elements,
                              run.outcome.outputs.at(output.name).size(), output.name);
}

}  // namespace

Judgement judge(const Claim& claim, const TensorMap& inputs, const ProgramRun& run,
                const VerifyOptions& options, Verification& v) {
  if (claim.exponents_nonpositive) check_exponents(v);
  Judgement judged;
  const bool has = has_values(inputs, run, v);
  if (has) {
    judged.problem = declared_problem(claim, inputs, options.threads);
    judged.reference = evaluate_reference(*claim.of, judged.problem);
    v.seconds_reference = judged.reference.seconds;
    v.outputs = compare_outputs(run, judged.reference, judged.problem.threads);
    if (options.expected) v.expected_outputs = compare_expected(*options.expected, judged.reference);
  }
  if (has && !run.written) {
    v.accumulated_decay = accumulate(run.outcome, judged.reference, *claim.of);
    if (options.statistics) v.statistics = statistics_of(run.outcome, judged.reference);
  }
  if (v.partial) describe_partial(run, has, v);
  return judged;
}

std::optional<vm::ExactRun> judge_formula(const Program& program, const TensorMap& inputs,
                                          const ProgramRun& run, const Judgement& judged,
                                          const VerifyOptions& options, Verification& v) {
  const bool values = !run.outcome.trap && !run.written && !judged.reference.outputs.empty();
  const auto has_code = [](const Launch& launch) {
    return !launch.module.empty();
  };  // a test's engine may have none
  if (options.formula_instructions == 0 || !values || program.modules.empty() ||
      !std::all_of(program.launches.begin(), program.launches.end(), has_code))
    return std::nullopt;
  FormulaReport& report = v.formula.emplace();
  if (v.lane_instructions > options.formula_instructions) {
    report.skipped = fmt::format(
        "the run has {:.0f} million lane-instructions, more than the {:.0f} million whose formula is judged "
        "unasked (--formula always)",
        static_cast<double>(v.lane_instructions) * 1e-6,
        static_cast<double>(options.formula_instructions) * 1e-6);
    return std::nullopt;
  }
  vm::ExactRun exact = vm::run_exact(program, inputs, options.origin.machine);
  report.seconds = exact.seconds;
  report.turned = exact.turned;
  report.loss = exact.loss;
  for (const ReferenceOutput& expected : judged.reference.outputs) {
    const auto got = run.outcome.outputs.find(expected.name);
    const auto on_reals = exact.outputs.find(expected.name);
    if (got == run.outcome.outputs.end() || on_reals == exact.outputs.end()) continue;
    report.outputs.push_back(compare_formula(got->second, on_reals->second, expected));
  }
  return exact;
}

namespace {

/// Of an output: its exact values, as far as they are known, and what elements are off by that no bound
/// follows.
struct Unbounded {
  double rms = 0, largest = 0;  ///< exact values
  double rms_error = 0;
};

Unbounded unbounded_part(const Tensor& got, const ReferenceOutput& output) {
  Unbounded part;
  double squares = 0, errors = 0;
  int64_t known = 0, without = 0;
  for (size_t i = 0; i < output.mid.size(); ++i) {
    if (!std::isfinite(output.mid[i]) || !std::isfinite(output.rad[i])) continue;
    squares += output.mid[i] * output.mid[i], ++known;
    part.largest = std::fmax(part.largest, std::fabs(output.mid[i]));
    if (std::isfinite(output.bound[i])) continue;
    const double error = got.value(static_cast<int64_t>(i)) - output.mid[i];
    errors += error * error, ++without;
  }
  if (known > 0) part.rms = std::sqrt(squares / static_cast<double>(known));
  if (without > 0) part.rms_error = std::sqrt(errors / static_cast<double>(without));
  return part;
}

}  // namespace

bool formula_is_right(const Verification& v, const OutputComparison& o) {
  constexpr double kNarrow = 0x1p-10;  // of the output's size, as an enclosure is of a bound
  const FormulaOutput* const formula = v.formula ? v.formula->output(o.name) : nullptr;
  return formula && formula->judged >= formula->elements && formula->violation == 0 &&
         formula->max_allowed <= kNarrow;
}

void settle_by_formula(const ProgramRun& run, const Judgement& judged, Verification& v) {
  if (!v.formula || run.written) return;
  // What roundings did must leave the values recognisable: zeros, turned signs and what grew are further off,
  // and stay undecided.
  constexpr double kRecognisable = 0.25;
  for (OutputComparison& o : v.outputs) {
    if (o.undecided == 0 || !formula_is_right(v, o)) continue;
    const Tensor& got = run.outcome.outputs.at(o.name);
    for (const ReferenceOutput& expected : judged.reference.outputs) {
      if (expected.name != o.name) continue;
      const Unbounded part = unbounded_part(got, expected);
      if (part.rms_error <= kRecognisable * part.rms)
        o = compare_output(got, expected, nullptr, part.largest);
    }
  }
}

void judge_roundings(const Claim& claim, const ProgramRun& run, const Judgement& judged,
                     const VerifyOptions& options, Verification& v) {
  const bool values = !run.outcome.trap && !run.written && !judged.reference.outputs.empty();
  if (!values || (options.rounding_work == 0 && !options.power)) return;
  const auto start = std::chrono::steady_clock::now();
  const ResolvedCase& c = *claim.of;
  const auto models = rounding_model({c.op, &judged.problem, options.rounding_work}, judged.reference);
  RoundingReport rounding;
  PowerReport power;
  const TensorMap none, &expected = options.expected ? *options.expected : none;
  const int64_t statistics = statistics_in(models, run.outcome.outputs) + statistics_in(models, expected);
  const auto judge_all = [&](const TensorMap& outputs, bool of_kernel,
                             std::vector<RoundingOutput>& judgements, std::vector<PowerOutput>& powers) {
    for (const ReferenceOutput& reference : judged.reference.outputs) {
      const auto got = outputs.find(reference.name);
      if (got == outputs.end()) continue;
      const OutputModel& model = models.at(reference.name);
      const RoundingJudgement judgement = judge_rounding(got->second, reference, model, statistics);
      const FormulaOutput* const formula =
          of_kernel && v.formula ? v.formula->output(reference.name) : nullptr;
      if (options.power)
        powers.push_back(power_of(got->second, reference, model.blocks, judgement.parts, formula));
      judgements.push_back(judgement.output);
    }
  };
  judge_all(run.outcome.outputs, true, rounding.outputs, power.outputs);
  judge_all(expected, false, rounding.expected, power.expected);
  rounding.false_alarms = kFalseAlarms;
  rounding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.rounding_work > 0) v.rounding = std::move(rounding);
  if (options.power) v.power = std::move(power);
}

void explain_expected(const Claim& claim, const Judgement& judged, const TensorMap& inputs,
                      const VerifyOptions& options, Verification& v) {
  if (v.expected_outputs.empty() || options.meaning_seconds <= 0) return;
  const auto evaluate = [&](const TensorMap& changed) {
    Problem other = judged.problem;
    other.inputs = &changed;
    return evaluate_reference(*claim.of, other);
  };
  auto transposed =
      transposed_tensors(inputs, *options.expected, judged.reference, evaluate, options.meaning_seconds);
  if (transposed) {
    v.diagnosis.push_back(*std::move(transposed));
  } else {  // as of a kernel's own outputs: another meaning of the operator that would make them right
    const FailingRun failing =
        failing_run(*claim.of->op, judged.problem, *options.expected, judged.reference, v.expected_outputs);
    if (failing.wrong().empty()) return;
    for (Diagnosis& d : weigh_meanings(failing, options.meaning_seconds).fitting) {
      if (!d.against.empty()) continue;  // one stray element is a constant factor off whatever it should be
      d.evidence.insert(d.evidence.begin(), "of the outputs in the inputs' file");
      v.diagnosis.push_back(std::move(d));
    }
  }
  rank(v.diagnosis);
}

}  // namespace assay
