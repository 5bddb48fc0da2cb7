#include "src/campaign/program_fuzz/program_fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "src/base/numerics/bad_input.h"
#include "src/campaign/engine/engine.h"
#include "src/capsule/size_draw.h"
#include "src/capsule/variation.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t bytes_of(const Capsule& capsule) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : capsule.inputs) bytes += tensor.bytes();
  for (const Workspace& w : capsule.program.workspaces) bytes += w.bytes;
  for (const ProgramOutput& o : capsule.program.outputs) {
    int64_t elements = format(o.dtype).bytes;
    for (const Axis& axis : o.axes) elements *= axis.size;
    bytes += elements;
  }
  return bytes;
}

/// What making a finding small may cost. With a number of cases, whose findings the seed decides, that is
/// counted in runs and what they execute, not in time.
class ShrinkBudget {
 public:
  explicit ShrinkBudget(const ProgramFuzzOptions& options) : options_(options) {}
  void spend(uint64_t lane_instructions) { ++runs_, instructions_ += lane_instructions; }
  bool is_spent() const {
    if (options_.interrupted && *options_.interrupted) return true;
    if (options_.cases) return runs_ >= kRuns || instructions_ >= 2 * options_.most_instructions;
    return seconds_since(start_) >= options_.time_s / 5;
  }

 private:
  static constexpr int kRuns = 1000;
  const ProgramFuzzOptions& options_;
  const Clock::time_point start_ = Clock::now();
  int runs_ = 0;
  uint64_t instructions_ = 0;
};

class ProgramFuzz {
 public:
  ProgramFuzz(const LaunchFile& file, const ProgramFuzzOptions& options, const ProgramFuzzListener& listener)
      : file_(file), options_(options), listener_(listener) {}

  FuzzRun run() {
    run_.kernels = {file_.name()}, run_.seed = options_.seed;
    run_.backend = "vm " + options_.check.machine.arch;
    for (const char* name : kProperties) run_.properties.push_back({name, 0, 0});
    Engine engine;
    engine.run(options_.jobs, [&]() -> Task {
      if (Task shrinking = next_shrinking()) return shrinking;
      if (is_over()) return nullptr;
      const std::optional<ProgramDraw> draw = next_draw();
      if (!draw) return nullptr;
      ++started_;
      in_flight_.insert(drawn_);
      return [this, number = drawn_, draw = *draw]() -> Merge { return judge(number, draw); };
    });
    run_.seconds = seconds_since(start_);
    const bool ended = options_.interrupted && *options_.interrupted;
    if (run_.cases == 0 && !ended)
      throw BadInput(fmt::format(
          "{}: none of {} draws could be run: more than {} MiB of tensors, or no launch at their sizes",
          file_.name(), run_.domain, options_.most_bytes >> 20));
    return std::move(run_);
  }

 private:
  static constexpr const char* kProperties[] = {"no-trap",
                                                "no-finding-of-the-checks",
                                                "only-finite-values-made",
                                                "same-bits-in-any-order",
                                                "same-bits-with-any-poison",
                                                "same-on-every-architecture"};

  struct Found {
    uint64_t number = 0;
    ProgramDraw draw;
    Verification verification;
    bool settled = false;  ///< it is the first, and is being made small or has been
  };

  bool is_over() const {
    if (options_.interrupted && *options_.interrupted) return true;
    return options_.cases ? started_ >= options_.cases : seconds_since(start_) >= options_.time_s;
  }

  /// The declared sizes and values first.
  std::optional<ProgramDraw> next_draw() {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
      const uint64_t number = drawn_++;
      const RandomStream random(options_.seed, fmt::format("program {}", number));
      ProgramDraw draw{{}, number == 0 ? 1 : random.bits({0, 0, 1}) % 1'000'000, ""};
      int64_t place = 0;
      for (const NamedSize& size : file_.sizes())
        draw.sizes[size.name] = number == 0 ? size.value : draw_size(size, random, place++);
      if (!file_.accepts(draw.sizes)) continue;
      if (number % 3 == 2) draw.variation = "?";  // which, the tensors say
      return draw;
    }
    if (run_.cases + started_ == 0)
      throw BadInput(fmt::format("{}: none of {} drawn sizes is accepted; widen \"accepts\" or \"sizes\"",
                                 file_.name(), kTries));
    return std::nullopt;
  }

  /// One tensor of them, varied in one way.
  void choose_variation(const Capsule& capsule, ProgramDraw& draw) const {
    if (draw.variation != "?") return;
    draw.variation.clear();
    std::vector<std::string> all;
    for (const auto& [tensor, range] : capsule.drawn)
      for (const std::string& name : variations_of(capsule, tensor)) all.push_back(tensor + "=" + name);
    if (all.empty()) return;
    draw.variation = all[static_cast<size_t>(
        RandomStream(draw.seed, "variation").below(static_cast<int64_t>(all.size()), {}))];
  }

  /// Nothing where the program is too large, or has no launch at these sizes.
  std::optional<Verification> check(ProgramDraw& draw) const {
    std::optional<Capsule> capsule;
    try {
      capsule = file_.make(draw.sizes, draw.seed);
    } catch (const BadInput&) {
      if (draw.sizes == declared()) throw;
      return std::nullopt;  // an empty grid, a shape below zero
    }
    if (bytes_of(*capsule) > options_.most_bytes) return std::nullopt;
    choose_variation(*capsule, draw);
    if (!draw.variation.empty()) vary(*capsule, draw.variation);
    ProgramCheckOptions options = options_.check;
    options.machine.threads = options.origin.machine.threads = 1;
    options.partly = capsule->partly, options.fixed = capsule->fixed;
    options.repeat_instructions = options_.most_instructions;
    options.origin.replay_seconds = 2;
    Verification v = check_program(file_.name(), capsule->program, capsule->inputs, options);
    v.program->seed = draw.seed;
    for (const auto& [name, value] : draw.sizes) v.program->sizes.push_back({name, value});
    v.replay = options_.replay + options_text(draw);
    return v;
  }

  std::map<std::string, int64_t> declared() const {
    std::map<std::string, int64_t> sizes;
    for (const NamedSize& size : file_.sizes()) sizes[size.name] = size.value;
    return sizes;
  }

  Merge judge(uint64_t number, ProgramDraw draw) {
    std::optional<Verification> v = check(draw);
    return [this, number, draw = std::move(draw), v = std::move(v)] {
      in_flight_.erase(number);
      if (!v) {
        ++run_.domain;
        return;
      }
      count(*v);
      if (v->verdict != Verdict::finding) return;
      const auto found = first_.find(v->cause);
      if (found == first_.end() || number < found->second.number)
        first_.insert_or_assign(v->cause, Found{number, draw, *v});
    };
  }

  /// Of the causes that no draw in flight can be the first of: the one that was drawn first, made small.
  Task next_shrinking() {
    Found* next = nullptr;
    for (auto& [cause, found] : first_)
      if (!found.settled && (in_flight_.empty() || found.number < *in_flight_.begin()) &&
          (!next || found.number < next->number))
        next = &found;
    if (!next) return nullptr;
    next->settled = true;
    return [this, found = *next]() -> Merge {
      Verification small = shrunk(found.draw, found.verification);
      return [this, number = found.number, small = std::move(small)] {
        shrunk_.emplace(number, small);
        tell();
      };
    };
  }

  /// In the order of drawing: of a later draw is told when no earlier one is still being made small.
  void tell() {
    while (!shrunk_.empty()) {
      const uint64_t number = shrunk_.begin()->first;
      const auto is_before = [&](const auto& item) {
        return item.second.number < number && !told_.contains(item.second.number);
      };
      if (std::any_of(first_.begin(), first_.end(), is_before)) return;
      told_.insert(number);
      run_.findings.push_back(std::move(shrunk_.begin()->second));
      shrunk_.erase(shrunk_.begin());
      if (listener_.found) listener_.found(run_.findings.back());
    }
  }

  void count(const Verification& v) {
    ++run_.cases;
    run_.passed += v.verdict == Verdict::pass;
    const auto note = [&](size_t row, bool checked, bool failed) {
      run_.properties[row].checked += checked, run_.properties[row].failed += failed;
    };
    note(0, true, v.trap.has_value());
    note(1, v.checks && !v.checks->ran.empty(), v.checks && !v.checks->findings.empty());
    note(2, !v.trap, !v.outputs.empty());
    for (const RepeatKind kind : {RepeatKind::order, RepeatKind::poison, RepeatKind::architecture}) {
      bool checked = false, failed = false;
      for (const Repeat& r : v.repeats)
        if (r.kind == kind) checked = true, failed |= r.differing > 0 && !r.by_order_of_sums && !r.expected;
      note(3 + static_cast<size_t>(kind), checked, failed);
    }
    if (!listener_.progress) return;
    const double fraction = options_.cases
                                ? static_cast<double>(run_.cases) / static_cast<double>(options_.cases)
                                : seconds_since(start_) / options_.time_s;
    listener_.progress(std::min(fraction, 1.0), run_.cases, run_.findings.size());
  }

  /// Ascending: the smallest, those around edges, and a few just below.
  static std::vector<int64_t> smaller_sizes(const NamedSize& size, int64_t now) {
    std::set<int64_t> sizes{fitted_size(size, size.from), fitted_size(size, now / 2)};
    for (const int64_t edge : kSizeEdges)
      for (const int64_t near : {-1, 0, 1}) sizes.insert(fitted_size(size, edge + near));
    for (int64_t step = 1; step <= 4; ++step) sizes.insert(fitted_size(size, now - step * size.multiple));
    std::vector<int64_t> below;
    for (const int64_t value : sizes)
      if (value < now) below.push_back(value);
    return below;
  }

  /// Without the variation, at smaller sizes: whatever keeps the cause.
  Verification shrunk(ProgramDraw draw, Verification found) const {
    ShrinkBudget budget(options_);
    const std::string cause = found.cause;
    const auto keeps = [&](ProgramDraw smaller) {
      if (budget.is_spent() || !file_.accepts(smaller.sizes)) return false;
      std::optional<Verification> v = check(smaller);
      budget.spend(v ? v->lane_instructions : 0);
      if (!v || v->cause != cause) return false;
      draw = smaller, found = std::move(*v);
      return true;
    };
    if (!draw.variation.empty()) {
      ProgramDraw plain = draw;
      plain.variation.clear();
      keeps(plain);
    }
    for (bool smaller = true; smaller && !budget.is_spent();) {
      smaller = false;
      for (const NamedSize& size : file_.sizes()) {
        const int64_t now = draw.sizes[size.name];
        for (const int64_t value : smaller_sizes(size, now)) {
          ProgramDraw next = draw;
          next.sizes[size.name] = value;
          if (keeps(next)) {
            smaller = true;
            break;
          }
        }
      }
    }
    return found;
  }

  const LaunchFile& file_;
  const ProgramFuzzOptions& options_;
  const ProgramFuzzListener& listener_;
  const Clock::time_point start_ = Clock::now();
  FuzzRun run_;
  /// By cause, the first in the order of drawing of those that have ended.
  std::map<std::string, Found> first_;
  std::set<uint64_t> in_flight_, told_;      ///< numbers of draws
  std::map<uint64_t, Verification> shrunk_;  ///< not told of yet
  uint64_t drawn_ = 0;
  int64_t started_ = 0;
};

}  // namespace

std::string options_text(const ProgramDraw& draw) {
  std::string text;
  for (const auto& [name, value] : draw.sizes)
    text += fmt::format("{}{}={}", text.empty() ? " --size " : ",", name, value);
  text += fmt::format(" --seed {}", draw.seed);
  if (!draw.variation.empty()) text += " --vary " + draw.variation;
  return text;
}

FuzzRun fuzz_program(const LaunchFile& file, const ProgramFuzzOptions& options,
                     const ProgramFuzzListener& listener) {
  return ProgramFuzz(file, options, listener).run();
}

}  // namespace assay
