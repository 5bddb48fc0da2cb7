#include "src/verification/verify/check_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/base/numerics/bad_input.h"
#include "src/base/program/block_choice.h"
#include "src/base/program/source_place.h"
#include "src/base/ptx/program.h"
#include "src/base/tensor/element_text.h"
#include "src/base/tensor/reached_elements.h"
#include "src/base/tensor/tensor_summary.h"
#include "src/base/vm/availability.h"
#include "src/base/vm/departure.h"
#include "src/base/vm/exact_run.h"
#include "src/base/vm/shadow_run.h"
#include "src/verification/compare/compare.h"
#include "src/verification/diagnosis/element_slice.h"
#include "src/verification/diagnosis/origin_groups.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/verify/expected_values.h"
#include "src/verification/verify/verdict.h"

namespace assay {
namespace {

/// Another poison: of no float format a NaN, small and odd as an integer.
constexpr uint8_t kOtherPoison = 0x3b;
constexpr uint64_t kOrders[] = {1, 2};
/// Lane-instructions of a run that does not end and is checked all the same, up to its trap.
constexpr uint64_t kLongestHang = 100'000'000;

/// All that a run wrote, by name.
TensorMap written_by(const Outcome& outcome) {
  TensorMap all = outcome.outputs;
  for (const auto& [name, tensor] : outcome.changed_inputs) all.emplace(name, tensor);
  return all;
}

bool same_value(const Tensor& a, const Tensor& b, int64_t i) {
  return a.bits(i) == b.bits(i) || (std::isnan(a.value(i)) && std::isnan(b.value(i)));
}

bool is_poison(const Tensor& tensor, int64_t i, uint8_t byte) {
  const int bytes = format(tensor.dtype).bytes;
  return tensor.bits(i) == (byte * 0x0101010101010101u) >> (64 - 8 * bytes);
}

/// Differences of one repeat.
struct Difference {
  int64_t elements = 0;
  std::string first;
  double largest = 0;
};

class ProgramCheck {
 public:
  ProgramCheck(const Program& program, const TensorMap& inputs, const ProgramCheckOptions& options,
               Verification& v)
      : program_(program), inputs_(inputs), options_(options), v_(v) {}

  void run() {
    first_ = run_once();
    if (v_.trap) {
      check();
      return;
    }
    describe_written();
    check();
    if (options_.births) v_.births = vm::run_births(program_, inputs_, options_.machine, location_of);
    if (options_.origins) find_origins();
    repeat();
    precision();
    trace();
    hold_against_others();
    note_repeats();
  }

 private:
  /// Inputs that the run changes though nobody has said so are written in place: outputs too.
  Outcome run_once() {
    Outcome outcome = vm::run(program_, inputs_, options_.machine);
    if (options_.ran) options_.ran(outcome);
    options_.machine.together |= outcome.together;
    for (auto& [name, now] : outcome.changed_inputs) {
      if (options_.fixed.contains(name)) {
        int64_t at = -1;
        const int64_t count = differing_elements(inputs_.at(name), now, &at);
        v_.properties_failed.push_back(fmt::format(
            "inputs-unchanged: {} was {:.9g} and is {:.9g} after the run; {} of {} elements changed",
            now.element_name(at), inputs_.at(name).value(at), now.value(at), count, now.size()));
        continue;
      }
      program_.outputs.push_back({name, now.dtype, now.axes});
      outcome.outputs.emplace(name, std::move(now));
    }
    std::erase_if(outcome.changed_inputs,
                  [&](const auto& item) { return outcome.outputs.contains(item.first); });
    v_.trap = outcome.trap;
    v_.exponents = outcome.exponents;
    v_.lane_instructions = outcome.lane_instructions;
    v_.seconds_kernel = outcome.seconds;
    return outcome;
  }

  void describe_written() {
    for (const auto& [name, tensor] : written_by(first_)) {
      const TensorSummary s = options_.partly.contains(name) || !program_.blocks.empty()
                                  ? summary_of(without_poison(tensor))
                                  : summary_of(tensor);
      v_.program->written.push_back({name, tensor.shape_text() + " " + std::string(format(tensor.dtype).name),
                                     tensor.size(), s.min.value_or(0), s.max.value_or(0), s.nan.count,
                                     s.plus_infinity.count + s.minus_infinity.count, 0});
    }
  }

  /// The elements that the run has written, of an output that need not be written whole, or by some blocks.
  Tensor without_poison(const Tensor& tensor) const {
    std::vector<int64_t> written;
    for (const auto& [first, last] : reached_elements(tensor))
      for (int64_t i = first; i < last; ++i)
        if (!is_poison(tensor, i, program_.poison)) written.push_back(i);
    Tensor left(tensor.name, tensor.dtype, {{"", static_cast<int64_t>(written.size())}});
    for (size_t i = 0; i < written.size(); ++i)
      left.set_bits(static_cast<int64_t>(i), tensor.bits(written[i]));
    return left;
  }

  bool is_too_long(uint64_t limit) const { return v_.lane_instructions > limit; }
  std::string length_text(uint64_t limit) const {
    return fmt::format("the run has {:.0f} million lane-instructions, more than {:.0f} million",
                       static_cast<double>(v_.lane_instructions) * 1e-6, static_cast<double>(limit) * 1e-6);
  }

  void check() {
    if (!options_.checks.any()) return;
    if (is_too_long(options_.check_instructions)) {
      v_.checks.emplace().skipped = length_text(options_.check_instructions);
      return;
    }
    const bool refused = v_.trap && v_.trap->kind == TrapKind::launch,
               hangs = v_.trap && v_.trap->kind == TrapKind::hang && is_too_long(kLongestHang);
    if (refused || hangs) {
      v_.checks.emplace().skipped = refused ? "the launch is refused" : "the run does not end";
      return;
    }
    std::optional<Trap> trap;
    v_.checks = vm::run_checked(program_, inputs_, options_.machine, options_.checks, &trap);
    if (!v_.trap) v_.trap = trap;
    const auto is_partly = [&](const CheckFinding& f) {
      return f.kind == CheckKind::never_written &&
             options_.partly.contains(f.element.substr(0, f.element.find('[')));
    };
    v_.checks->dismiss(is_partly, "the output is said to be written in part");
  }

  /// Outputs that are not finite: where that was born. Values that inputs or literals bring along are told,
  /// and no finding.
  void find_origins() {
    const bool any = std::any_of(v_.program->written.begin(), v_.program->written.end(),
                                 [](const WrittenTensor& w) { return w.nans + w.infinities > 0; });
    if (!any || !program_.blocks.empty()) return;
    const AllOrigins all = find_all_origins(program_, inputs_, options_.origin);
    v_.origins = all.groups;
    std::erase_if(v_.origins, [&](const OriginGroup& group) { return is_left_out(group); });
    std::optional<std::pair<std::string, int64_t>> shown;
    for (const OriginGroup& group : all.groups) {
      if (!is_made(group.origin.kind) && !is_unwritten_untold(group)) continue;
      for (const std::string& text : group.outputs) {
        const size_t blank = text.rfind(' ');
        const std::string name = text.substr(0, blank);
        if (!is_made(group.origin.kind) && options_.partly.contains(name)) continue;
        for (WrittenTensor& written : v_.program->written)
          if (written.name == name) written.born += std::stoll(text.substr(blank));
      }
      const std::string output = group.origin.element.substr(0, group.origin.element.find('['));
      if (!shown) shown = std::pair{output, element_named(first_.outputs.at(output), group.origin.element)};
    }
    if (!shown) return;
    for (const WrittenTensor& written : v_.program->written)
      if (written.born > 0)
        add_nonfinite(first_.outputs.at(written.name), written.born,
                      written.name == shown->first ? shown->second : -1);
    if (const auto trace = find_origin(program_, inputs_, shown->first, shown->second, options_.origin))
      v_.origin = trace->origin;
  }

  /// Not brought along by an input, a literal or memory that nothing wrote.
  static bool is_made(OriginKind kind) { return kind < OriginKind::literal; }

  /// Memory that nothing wrote, of which the checks tell, where they have not: it was not asked of them.
  bool is_unwritten_untold(const OriginGroup& group) const {
    const auto tells = [](const CheckFinding& f) {
      return f.kind == CheckKind::unwritten_output || f.kind == CheckKind::never_written;
    };
    return group.origin.kind == OriginKind::unwritten_memory && !is_left_out(group) &&
           !(v_.checks && std::any_of(v_.checks->findings.begin(), v_.checks->findings.end(), tells));
  }

  /// Memory that nothing wrote, in outputs alone that need not be written whole.
  bool is_left_out(const OriginGroup& group) const {
    return group.origin.kind == OriginKind::unwritten_memory &&
           std::all_of(group.outputs.begin(), group.outputs.end(), [&](const std::string& text) {
             return options_.partly.contains(text.substr(0, text.rfind(' ')));
           });
  }

  static int64_t element_named(const Tensor& tensor, const std::string& name) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (!std::isfinite(tensor.value(i)) && tensor.element_name(i) == name) return i;
    return 0;
  }

  void add_nonfinite(const Tensor& tensor, int64_t count, int64_t at) {
    OutputComparison& o = v_.outputs.emplace_back();
    o.name = tensor.name, o.axes = tensor.axes, o.dtype = tensor.dtype, o.elements = tensor.size();
    o.nonfinite = count, o.ok = o.elements - count;
    if (at < 0) return;
    o.worst.element = tensor.element_name(at), o.worst.flat = at;
    o.worst.got = tensor.value(at), o.worst.got_bits = tensor.bits(at);
    o.worst.expected = o.worst.expected_rounded = o.worst.bound = std::nan("");
    o.worst.ratio = HUGE_VAL;
  }

  Difference compare(const Outcome& other, bool poisoned) const {
    Difference d;
    const TensorMap others = written_by(other);
    for (const auto& [name, tensor] : written_by(first_)) {
      const auto found = others.find(name);
      if (found == others.end()) continue;
      const Tensor& now = found->second;
      double squares = 0, largest = 0;
      for (int64_t i = 0; i < tensor.size(); ++i) {
        const double value = tensor.value(i);
        if (std::isfinite(value)) squares += value * value;
        if (same_value(tensor, now, i)) continue;
        if (poisoned && is_poison(tensor, i, program_.poison) && is_poison(now, i, kOtherPoison)) continue;
        if (d.elements++ == 0)
          d.first = fmt::format("{}: {:.9g} and {:.9g}", tensor.element_name(i), value, now.value(i));
        if (std::isfinite(value) && std::isfinite(now.value(i)))
          largest = std::max(largest, std::fabs(value - now.value(i)));
      }
      const double rms = std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, tensor.size())));
      if (largest > 0) d.largest = std::max(d.largest, rms > 0 ? largest / rms : HUGE_VAL);
    }
    return d;
  }

  /// One repeat; where something differs, the two runs side by side.
  void repeat_as(Repeat repeat, const vm::MachineOptions& machine, uint8_t poison) {
    Program program = program_;
    program.poison = poison;
    const Outcome again = vm::run(program, inputs_, machine);
    const bool poisoned = repeat.kind == RepeatKind::poison;
    if (again.trap) {
      repeat.differing = 1;
      repeat.element = fmt::format("{}: {}", name_of(again.trap->kind), again.trap->message);
      repeat.where = again.trap->where;
    } else {
      const Difference d = compare(again, poisoned);
      repeat.differing = d.elements, repeat.element = d.first, repeat.largest = d.largest;
    }
    if (repeat.differing > 0 && repeat.kind == RepeatKind::architecture)
      repeat.expected = is_explained(again, machine, repeat);
    else if (repeat.differing > 0)
      locate(repeat, {options_.machine, program_.poison}, {machine, poison});
    v_.repeats.push_back(std::move(repeat));
  }

  void locate(Repeat& repeat, const vm::RunSetting& a, const vm::RunSetting& b) const {
    const vm::TwoRuns two = vm::compare_runs_of(program_, inputs_, first_, a, b, location_of);
    repeat.by_order_of_sums = two.by_order_of_sums;
    repeat.note = two.skipped.empty() ? "" : "where the runs part was not looked for: " + two.skipped;
    if (!two.departure) return;
    const vm::Departure& d = *two.departure;
    if (!repeat.where) repeat.where = d.where;
    repeat.departure =
        fmt::format("{} at {} gave {} and {}, block ({}), thread ({})", d.instruction, source_place(d.where),
                    d.first, d.second, fmt::join(d.block, ","), fmt::join(d.thread, ","));
  }

  /// The values on two architectures differ by no more than each differs from its own exact arithmetic.
  bool is_explained(const Outcome& other, const vm::MachineOptions& machine, Repeat& repeat) const {
    if (other.trap) return false;
    const vm::ExactRun here = vm::run_exact(program_, inputs_, options_.machine),
                       there = vm::run_exact(program_, inputs_, machine);
    const TensorMap others = written_by(other);
    for (const auto& [name, tensor] : written_by(first_)) {
      const Tensor& now = others.at(name);
      const auto exact = here.outputs.find(name), exact_there = there.outputs.find(name);
      for (int64_t i = 0; i < tensor.size(); ++i) {
        if (same_value(tensor, now, i)) continue;
        const double a = tensor.value(i), b = now.value(i);
        const bool changes_class = std::isnan(a) != std::isnan(b) || std::isinf(a) != std::isinf(b);
        if (changes_class) return false;
        if (exact == here.outputs.end() || exact_there == there.outputs.end()) continue;
        const auto at = static_cast<size_t>(i);
        const double xa = exact->second.value[at], xb = exact_there->second.value[at];
        const double slack = exact->second.slack[at] + exact_there->second.slack[at];
        if (!std::isfinite(slack) || !std::isfinite(xa + xb)) {
          repeat.note = "not every difference could be held against exact arithmetic";
          continue;
        }
        // Ties of exact values aside, a difference beyond both errors is one of the exact values.
        if (std::fabs(a - b) > (std::fabs(a - xa) + std::fabs(b - xb)) * (1 + 0x1p-40) + slack) {
          repeat.element = fmt::format("{}: {:.9g} and {:.9g}; exactly {:.9g} and {:.9g}",
                                       tensor.element_name(i), a, b, xa, xb);
          return false;
        }
      }
    }
    return true;
  }

  void repeat() {
    if (!program_.blocks.empty()) {
      v_.partial = fmt::format("blocks {} of every launch ran, once", program_.blocks);
      return;
    }
    if (is_too_long(options_.repeat_instructions)) {
      v_.partial = "run once: " + length_text(options_.repeat_instructions);
      return;
    }
    if (options_.orders)
      for (const uint64_t order : kOrders) {
        vm::MachineOptions machine = options_.machine;
        machine.order = order;
        repeat_as({.kind = RepeatKind::order,
                   .how = order == 1 ? "blocks and warps in descending order"
                                     : "blocks and warps shuffled, in short turns"},
                  machine, program_.poison);
      }
    if (options_.poison)
      repeat_as(
          {.kind = RepeatKind::poison, .how = fmt::format("bytes {:#x} in unwritten memory", kOtherPoison)},
          options_.machine, kOtherPoison);
    if (options_.architectures)
      for (const std::string& arch : other_architectures()) {
        vm::MachineOptions machine = options_.machine;
        machine.arch = arch;
        repeat_as({.kind = RepeatKind::architecture, .how = "on " + arch}, machine, program_.poison);
      }
  }

  /// Those that the targets of all modules can run on: "sm_80" on itself and later ones, "sm_90a" on no
  /// other.
  std::vector<std::string> other_architectures() const {
    int least = 0;
    for (const Module& module : program_.modules) {
      const std::string target = ptx::parse_functions(*module.ptx, module.path).target;
      const size_t at = target.find("sm_");
      if (at == target.npos) continue;
      size_t end = at + 3;
      int number = 0;
      for (; end < target.size() && std::isdigit(static_cast<unsigned char>(target[end])); ++end)
        number = 10 * number + (target[end] - '0');
      if (end < target.size() && std::isalpha(static_cast<unsigned char>(target[end]))) return {};
      least = std::max(least, number);
    }
    std::vector<std::string> others;
    for (const int architecture : vm::architectures)
      if (const std::string name = fmt::format("sm_{}", architecture);
          architecture >= least && name != options_.machine.arch)
        others.push_back(name);
    return others;
  }

  /// A finding for each repeat whose outputs differ for a reason of their own.
  void note_repeats() {
    static constexpr std::string_view kProperties[] = {"same-bits-in-any-order", "same-bits-with-any-poison",
                                                       "same-on-every-architecture", "same-bits-as-recorded"};
    for (const Repeat& r : v_.repeats) {
      if (r.differing == 0 || r.by_order_of_sums || r.expected) continue;
      v_.properties_failed.push_back(fmt::format("{}: {}: {} element{} differ, first {}{}",
                                                 kProperties[static_cast<size_t>(r.kind)], r.how, r.differing,
                                                 r.differing == 1 ? "" : "s", r.element,
                                                 r.departure.empty() ? "" : "; they part at " + r.departure));
    }
  }

  void precision() {
    if (!options_.shadow_instructions || !program_.blocks.empty()) return;
    if (is_too_long(options_.shadow_instructions)) return;
    v_.shadow = vm::run_shadow(program_, inputs_, options_.machine, {.locate = location_of});
  }

  /// The element that `trace` tells of. A value that is brought along has an origin too.
  std::optional<std::pair<std::string, int64_t>> traced_element() const {
    if (!options_.element.empty()) return element_of_text(options_.element);
    if (options_.first && program_.blocks.empty())
      if (const auto first = find_all_origins(program_, inputs_, options_.origin, false).first) return first;
    if (v_.origin) {
      const std::string output = v_.origin->element.substr(0, v_.origin->element.find('['));
      return std::pair{output, element_named(first_.outputs.at(output), v_.origin->element)};
    }
    for (const ProgramOutput& o : program_.outputs) {
      const Tensor& tensor = first_.outputs.at(o.name);
      if (options_.partly.contains(o.name) || format(tensor.dtype).precision == 0) continue;
      for (int64_t i = 0; i < tensor.size(); ++i)
        if (!std::isfinite(tensor.value(i))) return std::pair{o.name, i};
    }
    return furthest_from_exact();
  }

  /// By its error over the root mean square of its output.
  std::optional<std::pair<std::string, int64_t>> furthest_from_exact() const {
    if (!v_.shadow) return std::nullopt;
    const ShadowOutput* worst = nullptr;
    const auto error = [](const ShadowOutput& o) { return o.max_error / (o.rms_exact + 0x1p-1022); };
    for (const ShadowOutput& o : v_.shadow->outputs)
      if (o.max_error > 0 && first_.outputs.contains(o.name) && (!worst || error(o) > error(*worst)))
        worst = &o;
    if (!worst) return std::nullopt;
    const Tensor& tensor = first_.outputs.at(worst->name);
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (tensor.element_name(i) == worst->worst) return std::pair{worst->name, i};
    return std::nullopt;
  }

  std::pair<std::string, int64_t> element_of_text(const std::string& text) const {
    const std::string name = text.substr(0, text.find('['));
    const auto found = first_.outputs.find(name);
    if (found == first_.outputs.end()) {
      std::string written;
      for (const auto& [output, tensor] : first_.outputs) written += (written.empty() ? "" : ", ") + output;
      throw BadInput(
          fmt::format("element '{}': this run does not write {}; it writes {}", text, name, written));
    }
    return {name, flat_element(text, found->second.axes)};
  }

  /// The values behind one element, and where it was born if it is not finite.
  void trace() {
    if (!options_.trace || v_.trap) return;
    const auto element = traced_element();
    if (!element) return;
    const auto& [output, flat] = *element;
    const Tensor& tensor = first_.outputs.at(output);
    if (!std::isfinite(tensor.value(flat)) && (!v_.origin || v_.origin->element != tensor.element_name(flat)))
      if (const auto found = find_origin(program_, inputs_, output, flat, options_.origin))
        v_.origin = found->origin;
    v_.slice = slice_element(program_, inputs_, options_.machine, output, flat);
  }

  void hold_against_others() {
    const TensorMap written = written_by(first_);
    if (options_.expected) hold_against_expected(written, *options_.expected, options_.tolerance, v_);
    if (options_.recorded) {
      Repeat repeat{.kind = RepeatKind::recorded, .how = "against the recorded outputs"};
      Outcome recorded;
      recorded.outputs = *options_.recorded;
      const Difference d = compare(recorded, false);
      repeat.differing = d.elements, repeat.element = d.first, repeat.largest = d.largest;
      v_.repeats.push_back(repeat);
    }
    if (options_.peer) {
      Repeat repeat{.kind = RepeatKind::recorded, .how = "on " + options_.peer->name()};
      const Outcome on_peer = options_.peer->run(program_, inputs_);
      const Difference d = compare(on_peer, false);
      repeat.differing = d.elements, repeat.element = d.first, repeat.largest = d.largest;
      if (on_peer.trap) repeat.differing = 1, repeat.element = on_peer.trap->message;
      v_.repeats.push_back(repeat);
    }
  }

  Program program_;
  const TensorMap& inputs_;
  ProgramCheckOptions options_;
  Verification& v_;
  Outcome first_;
};

std::string launch_text(const Launch& launch) {
  return fmt::format("{}: {} blocks of {} threads", launch.function, fmt::join(launch.grid, " x "),
                     uint64_t{launch.block[0]} * launch.block[1] * launch.block[2]);
}

}  // namespace

Verification check_program(const std::string& name, const Program& program, const TensorMap& inputs,
                           const ProgramCheckOptions& options) {
  require_blocks(program);
  Verification v;
  v.kernel = name, v.case_.kernel = name;
  v.backend = "vm " + options.machine.arch;
  v.program.emplace();
  for (const Launch& launch : program.launches) v.program->launches.push_back(launch_text(launch));
  ProgramCheck(program, inputs, options, v).run();
  decide(v);
  v.source_shape = shape_of_cause(v);
  if (v.verdict == Verdict::finding && !v.trap && !v.origin) v.entry = entry_of(program);
  return v;
}

}  // namespace assay
