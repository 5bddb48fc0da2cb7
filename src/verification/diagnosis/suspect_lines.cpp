#include "src/verification/diagnosis/suspect_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "src/base/numerics/counted_work.h"
#include "src/base/ptx/form.h"
#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/changed_values.h"
#include "src/verification/diagnosis/explained_line.h"
#include "src/verification/diagnosis/named_lines.h"
#include "src/verification/diagnosis/related_lines.h"
#include "src/verification/diagnosis/slice_lines.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"
#include "src/verification/diagnosis/value_numbers.h"

namespace assay {
namespace {

using Line = ExplainedLine;

/// Behind all that explain, a line that explains three quarters of the squares.
constexpr double kWorthNaming = 0.5;
/// Each of a pair explains a part.
constexpr double kOfPairs = 0.95, kPart = 0.95;
/// What only moves values is wrong by its addresses alone: it is named where it explains with half as many
/// changes.
constexpr size_t kOfMoves = 2;
/// Of a slice that would be larger, few elements tell, or two of each. All of them take so many times the
/// time of the few, most of what they are made of being the same.
constexpr size_t kMostInstances = 3'000'000, kMostOperands = 6'000'000, kFewElements = 10,
                 kFewestElements = 4;
constexpr double kAllOfFew = 2.5;
/// Where a line explains nothing something else of it may still be wrong.
constexpr double kLeastWorth = 0.3;

/// Places that a line was inlined into, without its own.
std::vector<std::string> calls_around(const SourceLocation& where) {
  return {where.frames.begin() + (where.frames.empty() ? 0 : 1), where.frames.end()};
}

/// Neighbouring lines, as of a statement for the even and one for the odd channels, where none of the two
/// explains what is lacking: as one line.
std::vector<Line> pairs_of(const std::vector<Line>& all) {
  constexpr int kApart = 2;
  std::vector<Line> pairs;
  for (const Line& first : all)
    for (const Line& second : all) {
      const SourceLocation &a = first.at.where, &b = second.at.where;
      if (a.file != b.file || a.line >= b.line || b.line - a.line > kApart ||
          calls_around(a) != calls_around(b) || a.line <= 0 || first.explains() || second.explains() ||
          first.left > kOfPairs || second.left > kOfPairs)
        continue;
      Line pair = first;
      pair.instances.insert(pair.instances.end(), second.instances.begin(), second.instances.end());
      pair.nearest = std::min(first.nearest, second.nearest);
      pair.computes |= second.computes;
      pairs.push_back(std::move(pair));
    }
  return pairs;
}

/// Lines of functions that several statements call, where none of the calls alone explains what is lacking:
/// all calls together that explain some of it.
std::vector<Line> shared_lines(const std::vector<Line>& all) {
  std::map<std::pair<std::string, int>, std::vector<const Line*>> by_place;
  for (const Line& line : all)
    if (line.at.where.line > 0 && line.changes > 0)
      by_place[{line.at.where.file, line.at.where.line}].push_back(&line);
  std::vector<Line> shared;
  for (const auto& [place, calls] : by_place) {
    const auto explains = [](const Line* line) { return line->explains(); };
    if (calls.size() < 2 || std::any_of(calls.begin(), calls.end(), explains)) continue;
    Line together = *calls.front();
    for (const Line* line : calls) {
      if (line == calls.front()) continue;
      together.instances.insert(together.instances.end(), line->instances.begin(), line->instances.end());
      together.nearest = std::min(together.nearest, line->nearest);
      together.computes |= line->computes, together.reads_only &= line->reads_only;
      together.made_of |= line->made_of;
    }
    shared.push_back(std::move(together));
  }
  return shared;
}

/// A float that is read where nothing has written and that is no input's element.
bool is_of_program(const vm::ValueSlice& slice, uint32_t n) {
  const vm::SliceInstance& i = slice.instances[n];
  if (i.flow != vm::Flow::load || !ptx::is_float(i.type) ||
      ptx::form_of(operation_of(slice, n)).space == ptx::Space::param)
    return false;
  for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
    if (slice.operands[o].made_by >= 0 || slice.operands[o].input >= 0) return false;
  return true;
}

/// Of each input, on whichever lines it is read. Where it is read at a wrong place and is a factor of several
/// (a decay is), derivatives explain a part at most.
void note_loads(const SliceLines& lines, const vm::ValueSlice& slice, const std::vector<std::string>& names,
                const SourceText& source, SuspectLines& result) {
  std::map<size_t, std::pair<const Line*, uint32_t>> best;  ///< by input; an instance
  for (const Line& line : lines.all) {
    if (line.of_compiler) continue;
    std::set<size_t> known;
    for (const uint32_t n : line.instances) {
      const int64_t input = input_of(slice, n);
      if (input < 0 && !is_of_program(slice, n)) continue;
      const size_t at = input < 0 ? names.size() : static_cast<size_t>(input >> 40);
      if (at > names.size() || !known.insert(at).second) continue;
      auto& [most, instance] = best[at];
      if (!most || std::pair(line.left, line.nearest) < std::pair(most->left, most->nearest))
        most = &line, instance = n;
    }
  }
  for (const auto& [at, of] : best) {
    const vm::SliceInstance& i = slice.instances[of.second];
    const std::string name = at < names.size() ? names[at] : "",
                      said = at < names.size() ? names[at] : "numbers of the plan";
    result.loads.emplace(name, SuspectLine{of.first->at, fmt::format("takes {} from memory", said)});
    const ptx::Module& module = *slice.modules[static_cast<size_t>(i.module)];
    const auto add = [&](std::optional<ChainLink> maker, const char* says,
                         std::map<std::string, SuspectLine>& to) {
      if (maker)
        to.emplace(name, SuspectLine{std::move(*maker), fmt::format("says {} line {} takes {} from memory",
                                                                    says, of.first->at.where.line, said)});
    };
    add(address_maker(module, i.function, i.instruction, source), "where", result.places);
    add(block_address_maker(module, i.function, i.instruction, source), "of which sequence or head",
        result.blocks);
  }
}

/// Of each input what a line takes that is made of it alone, though the line makes more of it.
void note_takers(const Line& line, const std::vector<uint64_t>& made_of,
                 const std::vector<std::string>& names, SuspectLines& result) {
  if (std::has_single_bit(line.made_of)) return;
  for (const uint32_t n : line.instances) {
    if (!std::has_single_bit(made_of[n])) continue;
    const auto input = static_cast<size_t>(std::countr_zero(made_of[n]));
    if (input < names.size())
      result.takers.try_emplace(names[input], line.at,
                                fmt::format("takes {} and nothing else", names[input]));
  }
}

/// In how many slices instructions stand.
class SiteCounts {
 public:
  SiteCounts(const vm::ValueSlice& slice, const std::vector<JudgedElement>& elements) : elements_(elements) {
    for (const vm::SliceInstance& i : slice.instances) {
      if (i.function < 0 || i.instruction < 0) {
        of_instance_.push_back(SIZE_MAX);
        continue;
      }
      const Site site{slice.modules[static_cast<size_t>(i.module)].get(), i.function, i.instruction};
      of_instance_.push_back(known_.try_emplace(site, known_.size()).first->second);
    }
    last_.assign(known_.size(), SIZE_MAX), behind_.resize(known_.size());
  }
  void add(size_t element, size_t instance) {
    const size_t site = of_instance_[instance];
    if (site == SIZE_MAX || last_[site] == element) return;
    last_[site] = element;
    ++(elements_[element].wrong ? behind_[site].wrong : behind_[site].right);
  }
  std::map<Site, Behind> all() const {
    std::map<Site, Behind> counts;
    for (const auto& [site, at] : known_) counts[site] = behind_[at];
    return counts;
  }

 private:
  const std::vector<JudgedElement>& elements_;
  std::map<Site, size_t> known_;
  std::vector<size_t> of_instance_, last_;  ///< last_: element that was counted
  std::vector<Behind> behind_;
};

ptx::Type type_of_output(const Program& program, const std::string& name) {
  for (const ProgramOutput& output : program.outputs)
    if (output.name == name)
      return output.dtype == Dtype::bf16   ? ptx::Type::bf16
             : output.dtype == Dtype::fp16 ? ptx::Type::f16
                                           : ptx::Type::none;
  return ptx::Type::none;
}

bool rounds_to_halves(const Program& program) {
  return std::any_of(program.outputs.begin(), program.outputs.end(),
                     [](const ProgramOutput& o) { return o.dtype == Dtype::bf16 || o.dtype == Dtype::fp16; });
}

/// Of all elements, or of the first few where that would be too large or take too long.
vm::ValueSlice slice_of(const Program& program, const TensorMap& inputs, const vm::MachineOptions& machine,
                        const std::vector<JudgedElement>& elements, double seconds) {
  vm::SliceLimits limits;
  limits.instances = kMostInstances, limits.operands = kMostOperands;
  const auto of_first = [&](size_t count) {
    std::vector<vm::OutputElement> some;
    for (size_t e = 0; e < count; ++e) some.push_back({elements[e].output, elements[e].flat});
    vm::ValueSlice slice = vm::slice_values(program, inputs, machine, some, limits);
    if (slice.truncated) return vm::ValueSlice();
    std::vector<ptx::Type> types;
    for (const vm::OutputElement& e : some) types.push_back(type_of_output(program, e.output));
    name_moved_formats(types, slice);
    return slice;
  };
  const double start = counted_seconds();
  vm::ValueSlice few = of_first(std::min(kFewElements, elements.size()));
  const double taken = counted_seconds() - start;
  if (few.instances.empty()) return of_first(std::min(kFewestElements, elements.size()));
  if (elements.size() <= kFewElements || kAllOfFew * taken > seconds) return few;
  vm::ValueSlice all = of_first(elements.size());
  return all.instances.empty() ? few : all;
}

/// How much of what is wrong a line explains, and how surely: 0 to 1.
double worth_of(const Line& line, size_t wrong) {
  if (!line.explains()) return std::max(kLeastWorth, (1 - line.left * line.left) / 2);
  const double most = -std::log2(line.enough) * static_cast<double>(wrong);
  return 0.5 + 0.5 * std::clamp(bits_of(line) / most, 0.0, 1.0);
}

/// Lines that say something, the likeliest first.
std::vector<const Line*> likeliest_first(const SliceLines& lines, bool plain) {
  std::vector<const Line*> order;
  for (const Line& line : lines.all) {
    // As many changes as wrong elements: any values that reach them would do.
    const bool says = line.related || (plain ? line.explains() && bits_of(line) >= thresholds::kBitsNeeded
                                             : line.left < kWorthNaming);
    if (says && !line.of_compiler) order.push_back(&line);
  }
  // Nearer the output first of those that need as many changes: what lies before it is made of more. Of those
  // that explain a part, by changes whose derivatives are no longer those at the machine's values, what is
  // the least by chance.
  const auto rank = [](const Line& l) {
    const bool partly = !l.explains();
    return std::tuple(!l.related, partly, !l.displaced && l.undue == 0, partly ? -bits_of(l) : 0.0,
                      l.computes || l.undue > 0 ? l.changes : kOfMoves * l.changes, l.nearest);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Line* a, const Line* b) { return rank(*a) < rank(*b); });
  return order;
}

}  // namespace

SuspectLines suspect_lines(const Program& program, const TensorMap& inputs, const vm::MachineOptions& machine,
                           const std::vector<JudgedElement>& elements, Values values, double seconds) {
  const double start = counted_seconds();
  const auto late = [&] { return counted_seconds() - start > seconds; };
  const SourceText source(program.name);
  const vm::ValueSlice slice = slice_of(program, inputs, machine, elements, seconds);
  const std::vector<std::string>& names = slice.input_names;
  std::vector<double> lacking(elements.size()), weights(elements.size(), 1);
  SuspectLines result;
  size_t wrong = 0;
  for (size_t e = 0; e < slice.roots.size(); ++e) {
    const JudgedElement& element = elements[e];
    const double size = element.should != 0 ? std::fabs(element.should) : std::fabs(element.is);
    if (size > 0) weights[e] = 1 / size;
    if (element.wrong && slice.roots[e] >= 0)
      lacking[e] = (element.should - element.is) * weights[e], ++wrong;
  }
  if (wrong == 0) return {};
  result.wrong = wrong;
  SiteCounts counts(slice, elements);
  const ElementSlopes slopes =
      slopes_of(slice, weights, [&](size_t element, size_t instance) { counts.add(element, instance); });
  result.behind = counts.all();
  const bool plain = values == Values::telling;
  const std::vector<uint64_t> made_of = inputs_behind(slice);
  SliceLines lines(slice, slopes, source, plain);
  for (Line& line : lines.all) line.enough = rounds_to_halves(program) ? kLeftOfHalves : kLeftWhereExplained;
  const std::vector<uint32_t> numbers = value_numbers(slice);
  const WrongElements behind{slice, slopes, lacking, numbers};
  for (Line& line : lines.all)
    if (!late()) behind.explain(line);
  for (Line& together : shared_lines(lines.all)) {
    if (!late()) behind.explain(together);
    if (together.explains()) lines.all.push_back(std::move(together));
  }
  for (const auto& [site, line] : lines.of_site())
    result.behind[site].worth = worth_of(lines.all[line], wrong);
  result.along = relate(lines, behind, source, {program, inputs, machine}, late);
  for (Line& pair : pairs_of(lines.all)) {
    behind.explain(pair);
    if (pair.explains()) lines.all.push_back(std::move(pair));
  }
  std::vector<const Tensor*> tensors;
  for (const std::string& name : names) {
    const auto known = inputs.find(name);
    tensors.push_back(known == inputs.end() ? nullptr : &known->second);
  }
  for (Line& line : lines.all)
    for (const ChangedValues& values : late() ? std::vector<ChangedValues>() : changed_values(line, behind)) {
      line.displaced |= are_displaced(values, slice, tensors);
      if (are_undue(values)) line.undue = values.now.size(), line.undue_of = values.of_operation.size();
    }
  for (Line& line : lines.all) note_superfluous(slice, line);
  const std::vector<const Line*> order = likeliest_first(lines, plain);
  for (const Line& line : lines.all)
    if (line.left < kPart)
      result.explain.insert(fmt::format("{}:{}", line.at.where.file, line.at.where.line));
  for (const Line* line : order)
    if (std::has_single_bit(line->made_of))
      if (const auto input = static_cast<size_t>(std::countr_zero(line->made_of)); input < names.size())
        for (auto* of_input : {&result.alone, line->reads_only ? &result.reads : nullptr})
          if (of_input) of_input->try_emplace(names[input], line->at, reason_of(*line));
  for (const Line* line : order) note_takers(*line, made_of, names, result);
  note_loads(lines, slice, names, source, result);
  name_lines(order, lines, source, result);
  if (!order.empty() && (order[0]->related || order[0]->explains()))
    result.changes = order[0]->related ? 0 : order[0]->factor != 0 ? 1 : order[0]->changes + 1;
  return result;
}

}  // namespace assay
