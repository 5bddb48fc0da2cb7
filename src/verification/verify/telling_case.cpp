#include "src/verification/verify/telling_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/counted_work.h"
#include "src/verification/verify/acceptance.h"
#include "src/verification/verify/companion.h"
#include "src/verification/verify/reference_run.h"

namespace assay {
namespace {

/// Further apart than rounded constants of a kernel (2^-24, times exponents of some hundred) take them, of
/// the value or of the output's root mean square.
constexpr double kApartOfValue = 0x1p-13, kApartOfOutput = 0x1p-15;
/// So many times the root mean square of what the program's own roundings make.
constexpr double kOfRoundings = 8;
/// Elements of a case that is moved element by element in a second or two.
constexpr int64_t kFewTokens = 5, kFewChannels = 3, kOverAChunk = 67;
/// Where fewer elements are wrong almost any value behind them explains it: another case may tell more.
constexpr int64_t kEnoughWrong = 4;
/// Of so few in few tokens another case with more heads is looked at.
constexpr int64_t kFewWrong = 10, kMoreHeads = 4;
/// Each tells 11 bits of what a line's values would have to be.
constexpr int64_t kEnoughForLines = 6;
/// What a line lacks is told to 2^-11 of it: exponentials of such gates are linear to 2^-13, and a rounded
/// constant (2^-25) is as small a part of what they make. That is seen in differences so many times smaller.
constexpr double kTinyGates = 0x1p-12, kOfTinyGates = 0x1p8;

/// Of an output's element that is judged, in nanoseconds (counted_work.h).
constexpr double kOfElement = 30;

double rms_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double x : values) squares += std::isfinite(x) ? x * x : 0;
  return std::sqrt(squares / static_cast<double>(std::max<size_t>(1, values.size())));
}

/// The same fault in a smaller, random case: weak decays let old tokens be seen.
std::vector<Case> telling_cases(const Case& c, const Kernel& kernel, const Operator& op) {
  Case random = c;
  random.overrides.clear(), random.layout.clear(), random.blocks.clear();
  random.seed = c.seed + 1;
  const auto positive = [](const ArgumentSpec& a) { return a.role == Role::positive; };
  random.values = std::any_of(op.inputs.begin(), op.inputs.end(), positive) ? "positive" : "normal";
  const std::vector<Dtype>& dtypes = kernel.limits.dtypes;
  if (std::count(dtypes.begin(), dtypes.end(), Dtype::fp32)) random.dtype = Dtype::fp32;
  if (runs_backward(c)) random.final_state_gradient = true;
  random.initial_state = true;
  Case small = random;
  small.decay = c.decay == "none" ? c.decay : "logsigmoid";
  const auto value_heads = [&](int64_t heads) {  // as many of each head; 0: the operator has none
    return c.HV == 0 ? 0 : heads * std::max<int64_t>(1, c.HV / std::max<int64_t>(1, c.H));
  };
  small.H = 2, small.HV = value_heads(2);
  small.K = small.V = kFewChannels;
  if (c.M) small.M = kFewChannels;
  if (c.cu_seqlens.empty()) small.B = 1, small.T = kFewTokens;
  std::vector<Case> cases{small};
  const auto with = [&](auto change) {
    Case other = small;
    change(other);
    cases.push_back(std::move(other));
  };
  const auto narrow = [](Case& x) { x.K = x.V = 2, x.M = std::min<int64_t>(x.M, 2); };
  const auto longer = [&](Case& x) { x.T = c.T + 1, narrow(x); };
  const bool is_long = c.cu_seqlens.empty() && c.T > kFewTokens, is_narrow = c.K == 1 && c.V == 1;
  const auto much_longer = [&](Case& x) { longer(x), x.decay = "mild"; };  // that tokens far apart are seen
  if (is_long && is_narrow) with(longer);  // of a shrunk case its length is what it needs
  if (is_long && is_narrow && small.decay != "none") with(much_longer);
  if (small.decay == "none") with([](Case& x) { x.decay = "logsigmoid"; });
  if (c.B > 1 && c.cu_seqlens.empty()) with([&](Case& x) { x.B = c.B; });
  with([&](Case& x) { x.K = std::max(c.K, x.K), x.V = std::max(c.V, x.V), x.M = c.M; });
  if (is_long && !is_narrow) with(longer);
  with([&](Case& x) {
    x.K = std::max(c.K, x.K), x.V = std::max(c.V, x.V), x.M = c.M, x.H = std::max(c.H, x.H), x.T = c.T;
    x.HV = value_heads(x.H);
    if (c.cu_seqlens.empty()) x.B = c.B;
  });
  const Case as_large = cases.back();
  if (c.cu_seqlens.empty() && c.T <= kOverAChunk)
    with([&](Case& x) { x.T = kOverAChunk, x.decay = c.decay == "none" ? c.decay : "mild", narrow(x); });
  const size_t undecayed = cases.size();  // what differs in gates of 0 only shows elsewhere
  for (size_t i = 1; i < undecayed; ++i)
    if (Case other = cases[i]; other.decay == "none") {
      other.decay = "mild";
      cases.push_back(std::move(other));
    }
  Case strong = small;  // what differs in strong gates alone, as a limit does
  strong.decay = "strong:1,16";
  cases.push_back(std::move(strong));
  Case plain = c;
  plain.values = random.values, plain.overrides.clear(), plain.dtype = random.dtype;
  cases.push_back(plain);
  if (c.dtype != random.dtype)  // what no other format takes part in, as a launch of its own
    for (Case own : {as_large, plain}) {
      own.dtype = c.dtype;
      cases.push_back(std::move(own));
    }
  cases.push_back(c);
  return cases;
}

std::optional<TellingCase> told_by(const Case& c, const Kernel& kernel, const TensorMap* given,
                                   const vm::MachineOptions& machine, double sharpness = 1) {
  TellingCase t;
  t.sharpness = sharpness;
  t.resolved = accepted(c, kernel);
  t.inputs = given ? *given : draw_inputs(t.resolved);
  if (!domain_faults(t.inputs, kernel, *t.resolved.op).empty()) return std::nullopt;
  t.program = program_of(kernel, t.resolved, t.inputs);
  if (!has_code(t.program)) return std::nullopt;  // of a test's engine
  t.problem = declared_problem(claim_of(kernel, t.resolved), t.inputs, 1);
  t.exact = vm::run_moved(t.program, t.inputs, {}, machine);
  const auto expected = t.exact.empty() ? std::nullopt : t.reference({});
  if (!expected) return std::nullopt;
  t.expected = *expected;
  for (const SizedArgument& output : t.resolved.outputs) {
    const std::string name(output.spec.name);
    const std::vector<bool> wrong = t.wrong_elements(name);
    if (std::count(wrong.begin(), wrong.end(), true) == 0) continue;
    t.wrong.push_back(output.shape);
    t.wrong.back().name = name;
  }
  return t.wrong.empty() ? std::nullopt : std::optional(std::move(t));
}

/// The same without gradients where that is wrong already: behind its values stands less.
TellingCase plainer(TellingCase told, const Kernel& kernel, const vm::MachineOptions& machine) {
  Case forward = told.resolved.case_;
  forward.direction = Direction::forward, forward.final_state_gradient = false;
  try {
    if (auto without = told_by(forward, kernel, nullptr, machine)) return std::move(*without);
  } catch (const BadInput&) {  // it has gradients alone
  }
  return told;
}

/// Every other of the indices that the elements have along an axis; fewer than two stay as they are.
std::vector<JudgedElement> at_every_other(const Tensor& output, size_t axis,
                                          const std::vector<JudgedElement>& all) {
  std::map<int64_t, bool> kept;
  for (const JudgedElement& e : all) kept[output.index(e.flat)[axis]] = false;
  bool odd = false;
  for (auto& [index, stays] : kept) stays = odd = !odd;
  std::vector<JudgedElement> fewer;
  for (const JudgedElement& e : all)
    if (kept.at(output.index(e.flat)[axis])) fewer.push_back(e);
  return fewer;
}

/// Of an output's elements `count` at least, those at few indices along each axis, sequences and heads first:
/// what stands behind several of them, as a factor of a row does, has to be changed once for all.
std::vector<JudgedElement> on_a_grid(const Tensor& output, std::vector<JudgedElement> all, size_t count) {
  const auto thin = [&](bool of_heads) {
    std::optional<std::vector<JudgedElement>> best;  // what leaves fewest
    for (size_t axis = 0; axis < output.axes.size(); ++axis) {
      const std::string& name = output.axes[axis].name;
      if (of_heads != (name == "B" || name == "N" || name.starts_with('H'))) continue;
      std::vector<JudgedElement> fewer = at_every_other(output, axis, all);
      if (fewer.size() < all.size() && fewer.size() >= count && (!best || fewer.size() < best->size()))
        best = std::move(fewer);
    }
    if (best) all = std::move(*best);
    return best.has_value();
  };
  while (all.size() > count && thin(true)) {
  }
  while (all.size() > count && thin(false)) {
  }
  return all;
}

int64_t count_wrong(const TellingCase& told) {
  int64_t count = 0;
  for (const Tensor& output : told.wrong) {
    const std::vector<bool> wrong = told.wrong_elements(output.name);
    count += std::count(wrong.begin(), wrong.end(), true);
  }
  return count;
}

}  // namespace

std::vector<bool> TellingCase::wrong_elements(const std::string& output) const {
  const auto is = exact.find(output), should = expected.find(output);
  if (is == exact.end() || should == expected.end()) return {};
  const double size = rms_of(should->second), of_value = kApartOfValue / sharpness;
  const double of_output = kApartOfOutput / sharpness * size;
  std::vector<bool> wrong(is->second.size());
  for (size_t i = 0; i < wrong.size() && i < should->second.size(); ++i) {
    const double a = is->second[i], b = should->second[i];
    if (std::isfinite(a) && std::isfinite(b))
      wrong[i] = std::fabs(a - b) > of_value * std::max(std::fabs(a), std::fabs(b)) + of_output;
  }
  return wrong;
}

size_t TellingCase::judged_elements() const {
  size_t count = 0;
  for (const auto& [name, values] : expected) count += wrong_elements(name).size();
  return count;
}

std::vector<JudgedElement> TellingCase::sample() const {
  constexpr size_t kOfEach = 24;
  std::vector<JudgedElement> all[2];  // right, wrong
  for (const auto& [name, should] : expected) {
    const std::vector<bool> is_wrong = wrong_elements(name);
    std::vector<JudgedElement> wrong_ones;
    for (size_t i = 0; i < is_wrong.size(); ++i)
      (is_wrong[i] ? wrong_ones : all[0])
          .push_back({name, static_cast<int64_t>(i), exact.at(name)[i], should[i], is_wrong[i]});
    const auto of = std::find_if(wrong.begin(), wrong.end(), [&](const Tensor& t) { return t.name == name; });
    if (of != wrong.end()) wrong_ones = on_a_grid(*of, std::move(wrong_ones), kOfEach);
    all[1].insert(all[1].end(), wrong_ones.begin(), wrong_ones.end());
  }
  std::vector<JudgedElement> chosen;
  for (size_t n = 0; n < kOfEach; ++n)
    for (const std::vector<JudgedElement>* of : {&all[1], &all[0]})
      if (const size_t count = std::min(kOfEach, of->size()); n < count)
        chosen.push_back((*of)[n * of->size() / count]);
  return chosen;
}

std::optional<TellingCase> TellingCase::with(Program other, const vm::MachineOptions& machine) const {
  TellingCase made = *this;
  made.program = std::move(other);
  made.exact = vm::run_moved(made.program, made.inputs, {}, machine);
  for (const auto& [name, should] : expected) {
    const std::vector<bool> is_wrong = wrong_elements(name);
    if (made.wrong_elements(name) != is_wrong) return std::nullopt;
    const double size = rms_of(should);
    for (size_t i = 0; i < is_wrong.size(); ++i) {
      const double here = exact.at(name)[i], there = made.exact.at(name)[i];
      const bool same =
          std::fabs(here - there) <= (kApartOfValue * std::fabs(here) + kApartOfOutput * size) / sharpness;
      if (is_wrong[i] && !same) return std::nullopt;
    }
  }
  return made;
}

RepairVerdict TellingCase::judge(const vm::RealOutputs& changed, const vm::RealOutputs& rounded) const {
  double before = 0, after = 0;
  bool told = false;
  RepairVerdict verdict;
  verdict.whole = verdict.harmless = true;
  for (const auto& [name, should] : expected) {
    const std::vector<bool> is_wrong = wrong_elements(name);
    const auto now = changed.find(name), was = rounded.find(name);
    if (is_wrong.empty() || now == changed.end() || was == rounded.end()) continue;
    const std::vector<double>& real = exact.at(name);
    count_work(static_cast<double>(real.size()), kOfElement);
    double squares = 0;
    for (size_t i = 0; i < real.size(); ++i)
      if (const double error = was->second[i] - real[i]; std::isfinite(error)) squares += error * error;
    const double size = rms_of(should);
    const double own = kOfRoundings * std::sqrt(squares / static_cast<double>(real.size()));
    for (size_t i = 0; i < real.size(); ++i) {
      const double allowed = own + 2 * (kApartOfValue * std::fabs(should[i]) + kApartOfOutput * size);
      const double error = std::fabs(now->second[i] - should[i]), old = std::fabs(real[i] - should[i]);
      const bool right = error <= allowed;
      if (!is_wrong[i]) {
        verdict.harmless &= right;
        continue;
      }
      if (old <= allowed) continue;  // right even as it is
      told = true;
      verdict.whole &= right;
      if (size > 0) before += old * old / (size * size);
      if (size > 0 && !right) after += error * error / (size * size);
    }
  }
  verdict.whole &= verdict.harmless && told;
  verdict.left = before > 0 ? std::sqrt(after / before) : 1;
  if (std::isnan(verdict.left)) verdict.left = 1, verdict.whole = false;
  return verdict;
}

std::vector<vm::OutputElement> TellingCase::most_wrong() const {
  constexpr double kOfMost = 0.25;
  std::vector<std::pair<double, vm::OutputElement>> all;
  double most = 0;
  for (const JudgedElement& e : sample()) {
    if (!e.wrong) continue;
    const double size = std::max(rms_of(expected.at(e.output)), std::numeric_limits<double>::min());
    all.push_back({std::fabs(e.is - e.should) / size, {e.output, e.flat}});
    most = std::max(most, all.back().first);
  }
  std::vector<vm::OutputElement> chosen;
  for (auto& [error, element] : all)
    if (error >= kOfMost * most) chosen.push_back(std::move(element));
  return chosen;
}

double TellingCase::left_of(const vm::RealOutputs& changed, const std::vector<vm::OutputElement>& of) const {
  double before = 0, after = 0;
  for (const auto& [output, flat] : of) {
    const auto i = static_cast<size_t>(flat);
    const double size = std::max(rms_of(expected.at(output)), std::numeric_limits<double>::min());
    const double should = expected.at(output)[i];
    const double old = (exact.at(output)[i] - should) / size, now = (changed.at(output)[i] - should) / size;
    before += old * old, after += now * now;
  }
  return std::isfinite(after) && before > 0 ? std::sqrt(after / before) : 1;
}

std::optional<vm::RealOutputs> TellingCase::reference(const vm::InputMoves& moves) const {
  TensorMap moved = inputs;
  for (const auto& [name, elements] : moves) {
    const Tensor& from = inputs.at(name);
    Tensor to(from.name, Dtype::fp64, from.axes);
    const std::span<double> values = to.as<double>();
    for (int64_t i = 0; i < from.size(); ++i) values[static_cast<size_t>(i)] = from.value(i);
    for (const vm::ElementMove& move : elements) values[static_cast<size_t>(move.flat)] += move.by;
    moved[name] = std::move(to);
  }
  Problem asked = problem;
  asked.inputs = &moved;
  try {
    vm::RealOutputs outputs;
    for (ReferenceOutput& output : evaluate_reference(resolved, asked).outputs)
      outputs[output.name] = std::move(output.mid);
    return outputs;
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

std::optional<TellingCase> find_telling_case(const Case& c, const Kernel& kernel, const TensorMap* given,
                                             const vm::MachineOptions& machine, double seconds) {
  if (!kernel.has_formula) return std::nullopt;  // real numbers would tell of what it rounds its inputs to
  if (given) return told_by(c, kernel, given, machine);
  const double start = counted_seconds();
  std::optional<TellingCase> best;
  int64_t most = 0;  // wrong elements
  for (const Case& candidate : telling_cases(c, kernel, find_operator(kernel.operator_name))) {
    if (most >= kEnoughWrong || counted_seconds() - start > seconds) break;
    try {
      auto told = told_by(candidate, kernel, nullptr, machine);
      if (told && runs_backward(candidate)) told = plainer(std::move(*told), kernel, machine);
      if (const int64_t wrong = told ? count_wrong(*told) : 0; wrong > most)
        best = std::move(told), most = wrong;
    } catch (const BadInput&) {
      continue;  // outside what the kernel takes
    }
  }
  if (best && most < kFewWrong && best->resolved.case_.T <= kFewTokens)
    try {  // of outputs of one element per head others have more
      Case wide = best->resolved.case_;
      wide.H *= kMoreHeads, wide.HV *= kMoreHeads;
      auto told = told_by(wide, kernel, nullptr, machine);
      if (told && count_wrong(*told) > most) best = std::move(told);
    } catch (const BadInput&) {  // outside what the kernel takes
    }
  return best;
}

std::optional<TellingCase> with_fewer_tokens(const TellingCase& told, const Case& shrunk,
                                             const Kernel& kernel, const vm::MachineOptions& machine) {
  Case fewer = told.resolved.case_;
  if (!fewer.cu_seqlens.empty() || !shrunk.cu_seqlens.empty() || shrunk.T >= fewer.T) return std::nullopt;
  fewer.T = shrunk.T;
  for (const int64_t heads : {1, 2}) try {
      if (heads > 1 && fewer.T > kFewTokens) break;
      fewer.H = heads * told.resolved.case_.H, fewer.HV = heads * told.resolved.case_.HV;
      auto made = told_by(fewer, kernel, nullptr, machine);
      if (made && count_wrong(*made) >= kEnoughForLines) return made;
    } catch (const BadInput&) {
      break;  // outside what the kernel takes
    }
  return std::nullopt;
}

std::optional<TellingCase> with_tiny_gates(const TellingCase& told, const Kernel& kernel,
                                           const vm::MachineOptions& machine) {
  bool any = false;  // gate that is none of 0
  const auto scaled = [&](double by) {
    TensorMap inputs = told.inputs;
    for (const ArgumentSpec& spec : told.resolved.op->inputs) {
      const auto gate = inputs.find(std::string(spec.name));
      if (spec.role != Role::log_decay || gate == inputs.end()) continue;
      for (int64_t i = 0; i < gate->second.size(); ++i) {
        const double was = gate->second.value(i);
        any |= was != 0;
        gate->second.set(i, std::isfinite(was) ? by * was : 0);
      }
    }
    return inputs;
  };
  const TensorMap none = scaled(0), tiny = scaled(kTinyGates);
  if (!any) return std::nullopt;
  try {
    if (told_by(told.resolved.case_, kernel, &none, machine, kOfTinyGates)) return std::nullopt;
    return told_by(told.resolved.case_, kernel, &tiny, machine, kOfTinyGates);
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

}  // namespace assay
