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
      if (is_over()) return nullptr;
      const std::optional<ProgramDraw> draw = next_draw();
      if (!draw) return nullptr;
      ++started_;
      return [this, &engine, draw = *draw]() -> Merge { return work(engine, draw); };
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

  Merge work(Engine& engine, ProgramDraw draw) {
    std::optional<Verification> v = check(draw);
    if (v && v->verdict == Verdict::finding) {
      bool is_new = false;
      engine.exclusively([&] { is_new = causes_.insert(v->cause).second; });
      if (is_new) v = shrunk(draw, std::move(*v));
      return [this, v = std::move(*v), is_new] {
        count(v);
        if (!is_new) return;
        run_.findings.push_back(v);
        if (listener_.found) listener_.found(v);
      };
    }
    return [this, v = std::move(v)] { v ? count(*v) : void(++run_.domain); };
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
    const auto start = Clock::now();
    const double most = options_.cases ? 10 : options_.time_s / 5;
    const std::string cause = found.cause;
    const auto keeps = [&](ProgramDraw smaller) {
      if (seconds_since(start) > most || !file_.accepts(smaller.sizes)) return false;
      std::optional<Verification> v = check(smaller);
      if (!v || v->cause != cause) return false;
      draw = smaller, found = std::move(*v);
      return true;
    };
    if (!draw.variation.empty()) {
      ProgramDraw plain = draw;
      plain.variation.clear();
      keeps(plain);
    }
    for (bool smaller = true; smaller && seconds_since(start) < most;) {
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
  std::set<std::string> causes_;
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
