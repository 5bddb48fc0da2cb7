#include "src/verification/diagnosis/suspect_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/processor_time.h"
#include "src/verification/diagnosis/required_values.h"
#include "src/verification/diagnosis/slice_derivative.h"
#include "src/verification/diagnosis/source_line.h"
#include "src/verification/diagnosis/thresholds.h"

namespace assay {
namespace {

/// What is lacking may stay by so much of it: derivatives are those at the machine's values, and a change of
/// several factors of one product is no sum of changes.
constexpr double kExplained = 0x1p-11;
/// Behind all that explain, a line that explains three quarters of the squares.
constexpr double kWorthNaming = 0.5;
/// Each of a pair explains a part.
constexpr double kOfPairs = 0.95, kPart = 0.95;
constexpr size_t kLinesNamed = 8;
/// What only moves values is wrong by its addresses alone: it is named where it explains with half as many
/// changes.
constexpr size_t kOfMoves = 2;
constexpr size_t kMostChanges = 24;
/// Of the time, what slices may take.
constexpr double kOfSlices = 0.7;

/// What stands behind some output elements on one source line.
struct Line {
  ChainLink at;
  /// By instance: how each of the elements moves with its value, and the value.
  std::vector<std::vector<double>> columns;
  std::vector<double> values;
  std::vector<std::string_view> operations;  ///< by instance, as PTX spells them
  std::vector<int64_t>
      reads;                  ///< by instance the input element that it takes (SliceOperand::input); -1: none
  Site read;                  ///< an instruction that takes it from memory; of no module: none does
  bool of_compiler = false;   ///< which made it of no line of the source
  bool computes = false;      ///< it does not only move values
  uint64_t made_of = 0;       ///< inputs, by their ordinals
  size_t nearest = SIZE_MAX;  ///< of its instances the least place in a slice, the output's being 0

  size_t changes = 0;           ///< fewest instances that were found to explain what is lacking
  double factor = 0;            ///< where all of them times this do; else 0
  double left = 1;              ///< of what is lacking, what no change explains
  std::vector<size_t> changed;  ///< those instances
  std::set<size_t> reached;     ///< elements that what is changed moves
  bool displaced =
      false;  ///< what they would have to be are other values of the line, or of the input it reads
  bool reads_only() const {
    return std::none_of(reads.begin(), reads.end(), [](int64_t input) { return input < 0; });
  }
  size_t active() const {
    size_t n = 0;
    for (const std::vector<double>& c : columns)
      n += std::any_of(c.begin(), c.end(), [](double x) { return x != 0; });
    return n;
  }
};

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
void subtract(std::vector<double>& from, double times, const std::vector<double>& what) {
  for (size_t i = 0; i < from.size(); ++i) from[i] -= times * what[i];
}

void note_reached(Line& line, const std::vector<double>& column) {
  for (size_t e = 0; e < column.size(); ++e)
    if (column[e] != 0) line.reached.insert(e);
}

/// All values of the line times one number.
bool scaled(Line& line, const std::vector<double>& lacking) {
  std::vector<double> all(lacking.size());
  for (size_t c = 0; c < line.columns.size(); ++c) subtract(all, -line.values[c], line.columns[c]);
  const double size = product(all, all);
  if (!(size > 0)) return false;
  const double by = product(all, lacking) / size;
  std::vector<double> left = lacking;
  subtract(left, by, all);
  line.left = std::sqrt(product(left, left) / product(lacking, lacking));
  if (!(line.left < kExplained)) return false;
  line.changes = 1, line.factor = 1 + by;
  for (const std::vector<double>& column : line.columns) note_reached(line, column);
  return true;
}

/// The instance whose change explains most of what is left, and so on.
void explain_by_instances(Line& line, const std::vector<double>& lacking) {
  std::vector<double> left = lacking;
  const double whole = product(lacking, lacking);
  std::vector<std::vector<double>> basis;
  std::vector<std::vector<double>> open = line.columns;
  line.left = 1, line.changes = 0, line.reached.clear(), line.changed.clear();
  while (line.changes < kMostChanges && line.left >= kExplained) {
    size_t best = SIZE_MAX;
    double most = 0;
    for (size_t c = 0; c < open.size(); ++c) {
      const double size = product(open[c], open[c]);
      if (size <= 1e-18 * product(line.columns[c], line.columns[c])) continue;
      const double along = product(open[c], left);
      if (along * along / size > most) most = along * along / size, best = c;
    }
    if (best == SIZE_MAX || most < 1e-12 * whole) return;
    std::vector<double> direction = open[best];
    const double size = std::sqrt(product(direction, direction));
    for (double& x : direction) x /= size;
    subtract(left, product(left, direction), direction);
    for (std::vector<double>& c : open) subtract(c, product(c, direction), direction);
    ++line.changes;
    line.changed.push_back(best);
    note_reached(line, line.columns[best]);
    line.left = std::sqrt(product(left, left) / whole);
  }
}

/// Behind each instance, producers after consumers: one bit for each input, the last one for all beyond it.
std::vector<uint64_t> inputs_behind(const vm::ValueSlice& slice) {
  std::vector<uint64_t> behind(slice.instances.size());
  for (size_t n = slice.instances.size(); n-- > 0;) {
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const vm::SliceOperand& operand = slice.operands[o];
      if (operand.made_by >= 0) behind[n] |= behind[static_cast<size_t>(operand.made_by)];
      if (operand.input >= 0) behind[n] |= uint64_t{1} << std::min<int64_t>(operand.input >> 40, 63);
    }
  }
  return behind;
}

/// A source line as reached through its calls that were inlined: one in a function that many call is several.
using Place = std::tuple<std::string, int, std::vector<std::string>>;
void explain(Line& line, const std::vector<double>& lacking) {
  if (!scaled(line, lacking)) explain_by_instances(line, lacking);
}

/// Neighbouring lines, as of a statement for the even and one for the odd channels, where none of the two
/// explains what is lacking: as one line.
std::vector<Line> pairs_of(const std::vector<Line>& all) {
  constexpr int kApart = 2;
  std::vector<Line> pairs;
  for (const Line& first : all)
    for (const Line& second : all) {
      const SourceLocation &a = first.at.where, &b = second.at.where;
      if (a.file != b.file || a.line >= b.line || b.line - a.line > kApart || a.frames != b.frames ||
          a.line <= 0 || first.left < kExplained || second.left < kExplained || first.left > kOfPairs ||
          second.left > kOfPairs)
        continue;
      Line pair = first;
      pair.columns.insert(pair.columns.end(), second.columns.begin(), second.columns.end());
      pair.values.insert(pair.values.end(), second.values.begin(), second.values.end());
      pair.operations.insert(pair.operations.end(), second.operations.begin(), second.operations.end());
      pair.reads.insert(pair.reads.end(), second.reads.begin(), second.reads.end());
      pair.nearest = std::min(first.nearest, second.nearest);
      pair.computes |= second.computes;
      pairs.push_back(std::move(pair));
    }
  return pairs;
}

/// How little it is by chance that the line explains all, as thresholds.h counts: each element that its
/// changes move, beyond as many as they are, agrees to kExplained; and which values were changed was chosen.
double bits_of(const Line& line) {
  const auto n = static_cast<double>(line.active()), k = static_cast<double>(line.changes);
  const double choices =
      line.factor != 0 ? 0
                       : (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
  return (static_cast<double>(line.reached.size()) - k) * -std::log2(kExplained) - choices;
}

/// Would the line be right if one of its operations had, where it is wrong, other values of its own, as at
/// another step, or of the input that it reads, as of another place?
bool is_displaced(const Line& line, const std::vector<double>& lacking,
                  const std::vector<const Tensor*>& inputs) {
  if (!(line.left < kExplained) || line.factor != 0) return false;
  const std::set<std::string_view> operations(line.operations.begin(), line.operations.end());
  return std::any_of(operations.begin(), operations.end(), [&](std::string_view operation) {
    Line alone;
    std::set<int64_t> read;
    for (size_t i = 0; i < line.columns.size(); ++i) {
      if (line.operations[i] != operation) continue;
      alone.columns.push_back(line.columns[i]), alone.values.push_back(line.values[i]);
      if (line.reads[i] >= 0) read.insert(line.reads[i] >> 40);
    }
    explain_by_instances(alone, lacking);
    if (!(alone.left < kExplained)) return false;
    std::vector<const std::vector<double>*> columns;
    for (const size_t i : alone.changed) columns.push_back(&alone.columns[i]);
    const std::optional<std::vector<double>> changes = changes_needed(columns, lacking);
    if (!changes) return false;
    std::vector<double> now, pool = alone.values;
    for (const size_t i : alone.changed) now.push_back(alone.values[i]);
    for (const int64_t input : read)
      if (const auto at = static_cast<size_t>(input); at < inputs.size() && inputs[at])
        for (int64_t i = 0; i < inputs[at]->size(); ++i) pool.push_back(inputs[at]->value(i));
    return become_others(now, *changes, std::move(pool));
  });
}

/// The statement that says where the line reads.
std::optional<SuspectLine> addressing(const Line& line, const SourceText& source) {
  const auto& [module, function, instruction] = line.read;
  if (!module) return std::nullopt;
  std::optional<ChainLink> maker = address_maker(*module, function, instruction, source);
  if (!maker) return std::nullopt;
  return SuspectLine{std::move(*maker),
                     fmt::format("makes an address of line {}, where {} of {} values would have to be others",
                                 line.at.where.line, line.changes, line.active())};
}

std::string reason_of(const Line& line) {
  if (line.displaced)
    return fmt::format("{} of its {} values would have to be those that it has, or its input has, elsewhere",
                       line.changes, line.active());
  if (line.factor != 0 && std::fabs(line.factor) < kExplained)
    return "its values taken for 0 make all wrong elements right";
  if (line.factor != 0)
    return fmt::format("its values times {:.6g} make all wrong elements right", line.factor);
  const bool one = line.changes == 1;
  if (line.left < kExplained)
    return fmt::format("{} of its {} values changed make{} all wrong elements right", line.changes,
                       line.active(), one ? "s" : "");
  return fmt::format("{} of its {} values changed explain{} {:.0f} % of the errors", line.changes,
                     line.active(), one ? "s" : "", 100 * (1 - line.left * line.left));
}

class Lines {
 public:
  Lines(size_t elements, const SourceText& source) : elements_(elements), source_(source) {}

  void add(const vm::ValueSlice& slice, size_t element, double weight) {
    const std::vector<double> slopes = derivatives_of(slice);
    const std::vector<uint64_t> made_of = inputs_behind(slice);
    for (size_t n = 0; n < slopes.size(); ++n) {
      const vm::SliceInstance& i = slice.instances[n];
      if (slopes[n] == 0 || i.function < 0 || i.instruction < 0 || !carries_value(i.flow)) continue;
      const size_t at = line_of(slice, i);
      Line& line = all[at];
      line.nearest = std::min(line.nearest, n);
      line.computes |= computes(i.flow);
      if (i.flow == vm::Flow::load && !std::get<0>(line.read))
        line.read = {slice.modules[static_cast<size_t>(i.module)].get(), i.function, i.instruction};
      line.made_of |= made_of[n];
      const auto [known, is_new] = columns_.try_emplace(key(i), Column{at, line.columns.size()});
      if (is_new) {
        line.columns.emplace_back(elements_);
        line.values.push_back(ptx::is_float(i.type) ? vm::value_of(i.type, i.bits) : 0);
        line.operations.emplace_back(*operations_
                                          .insert(slice.modules[static_cast<size_t>(i.module)]
                                                      ->functions[static_cast<size_t>(i.function)]
                                                      .body[static_cast<size_t>(i.instruction)]
                                                      .opcode)
                                          .first);
        line.reads.push_back(-1);
        for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
          if (slice.operands[o].input >= 0) line.reads.back() = slice.operands[o].input;
      }
      line.columns[known->second[1]][element] += slopes[n] * weight;
      if (is_new && !computes(i.flow)) note_copy(slice, i, known->second);
    }
  }

  /// Takes out copies that are all that is done with what another line made.
  void leave_out_mere_copies() {
    std::vector<std::vector<double>*> mere;
    for (const auto& [copy, of] : copies_)
      if (std::vector<double>& column = all[copy[0]].columns[copy[1]]; is_mere(copy, of, column)) {
        mere.push_back(&column);
        assigned[columns_.at(of)[0]].insert(copy[0]);
      }
    for (std::vector<double>* column : mere) std::fill(column->begin(), column->end(), 0.0);
  }

  std::vector<Line> all;
  std::map<size_t, std::set<size_t>> assigned;  ///< of a line those that merely copy what it makes

 private:
  static bool carries_value(vm::Flow flow) {
    using vm::Flow;
    return flow != Flow::integer && flow != Flow::comparison && flow != Flow::address && flow != Flow::vote;
  }
  static bool computes(vm::Flow flow) {
    return flow == vm::Flow::arithmetic || flow == vm::Flow::matrix || flow == vm::Flow::select ||
           flow == vm::Flow::atomic;
  }
  using Column = std::array<size_t, 2>;  ///< line, and its number there
  using Key = std::array<uint64_t, 4>;
  struct Hash {
    size_t operator()(const Key& k) const {
      uint64_t h = 0;
      for (const uint64_t x : k) h = (h ^ x) * 0x9e3779b97f4a7c15 ^ h >> 29;
      return h;
    }
  };
  static Key key(const vm::SliceInstance& i) {
    return {static_cast<uint64_t>(i.launch) << 32 | i.record,
            static_cast<uint64_t>(i.block[0]) << 32 | i.block[1],
            static_cast<uint64_t>(i.block[2]) << 32 | i.thread[0] << 1 | i.half,
            static_cast<uint64_t>(i.thread[1]) << 32 | i.thread[2]};
  }
  void note_copy(const vm::ValueSlice& slice, const vm::SliceInstance& i, Column copy) {
    if (i.operand_count != 1) return;
    const int32_t made_by = slice.operands[i.first_operand].made_by;
    if (made_by >= 0) copies_.emplace(copy, key(slice.instances[static_cast<size_t>(made_by)]));
  }
  bool is_mere(const Column& copy, Key of, const std::vector<double>& column) const {
    for (size_t steps = 0; steps < columns_.size(); ++steps) {
      const auto made = columns_.find(of);
      if (made == columns_.end()) return false;
      const Line& maker = all[made->second[0]];
      if (maker.columns[made->second[1]] != column) return false;
      if (made->second[0] != copy[0] && !maker.of_compiler) return true;
      const auto next = copies_.find(made->second);
      if (next == copies_.end()) return false;
      of = next->second;
    }
    return false;
  }
  size_t line_of(const vm::ValueSlice& slice, const vm::SliceInstance& i) {
    const auto& module = slice.modules[static_cast<size_t>(i.module)];
    const Site site{module.get(), i.function, i.instruction};
    if (const auto known = of_site_.find(site); known != of_site_.end()) return known->second;
    const SourceLocation where =
        locations_.try_emplace(module.get(), *module).first->second.of(i.function, i.instruction);
    const Place place{where.line > 0 ? where.file : "", where.line > 0 ? where.line : where.ptx_line,
                      where.frames};
    const auto [at, is_new] = of_place_.try_emplace(place, all.size());
    if (is_new) all.push_back({link_of(*module, i.function, i.instruction, source_), {}, {}});
    all[at->second].of_compiler =
        where.line == 0 &&
        module->functions[static_cast<size_t>(i.function)].body[static_cast<size_t>(i.instruction)].line >= 0;
    return of_site_[site] = at->second;
  }

  size_t elements_;
  const SourceText& source_;
  std::map<const ptx::Module*, Locations> locations_;
  std::set<std::string> operations_;
  std::map<Site, size_t> of_site_;
  std::map<Place, size_t> of_place_;
  std::unordered_map<Key, Column, Hash> columns_;
  std::map<Column, Key> copies_;  ///< what made the value
};

/// Right behind the line an assignment of what it makes: what would make more of it may be lacking there.
std::optional<SuspectLine> assignment_of(const Line* line, const Lines& lines) {
  constexpr int kBehind = 2;
  const auto known = lines.assigned.find(static_cast<size_t>(line - lines.all.data()));
  if (known == lines.assigned.end()) return std::nullopt;
  for (const size_t at : known->second) {
    const ChainLink& copy = lines.all[at].at;
    const int behind = copy.where.line - line->at.where.line;
    const bool same_function = copy.where.file == line->at.where.file && behind > 0 && behind <= kBehind &&
                               copy.where.frames.size() == line->at.where.frames.size();
    const bool assigns = copy.text.find('=') != std::string::npos && copy.text.find('(') == std::string::npos;
    if (same_function && assigns)
      return SuspectLine{copy, fmt::format("it only passes on what line {} makes", line->at.where.line)};
  }
  return std::nullopt;
}

void count(const vm::ValueSlice& slice, bool wrong, std::map<Site, Behind>& behind) {
  std::set<Site> sites;
  for (const vm::SliceInstance& i : slice.instances)
    if (i.function >= 0 && i.instruction >= 0)
      sites.insert({slice.modules[static_cast<size_t>(i.module)].get(), i.function, i.instruction});
  for (const Site& site : sites) {
    Behind& known = behind[site];
    ++(wrong ? known.wrong : known.right);
  }
}

}  // namespace

SuspectLines suspect_lines(const Program& program, const TensorMap& inputs, const vm::MachineOptions& machine,
                           const std::vector<JudgedElement>& elements, Values values, double seconds) {
  const double start = processor_seconds();
  const auto late = [&](double share) { return processor_seconds() - start > share * seconds; };
  const SourceText source(program.name);
  Lines lines(elements.size(), source);
  std::vector<double> lacking(elements.size());
  SuspectLines result;
  size_t wrong = 0;
  std::vector<std::string> names;
  for (size_t e = 0; e < elements.size(); ++e) {
    const JudgedElement& element = elements[e];
    if (late(kOfSlices)) break;
    const vm::ValueSlice slice = vm::slice_value(program, inputs, machine, element.output, element.flat);
    if (slice.truncated || slice.instances.empty()) continue;
    double size = std::fabs(element.should);
    if (size == 0) size = std::fabs(element.is);
    const double weight = size > 0 ? 1 / size : 1;
    lines.add(slice, e, weight);
    names = slice.input_names;
    count(slice, element.wrong, result.behind);
    if (element.wrong) lacking[e] = (element.should - element.is) * weight, ++wrong;
  }
  if (wrong == 0) return {};
  const bool plain = values == Values::telling;
  if (plain) lines.leave_out_mere_copies();
  for (Line& line : lines.all)
    if (!late(1)) explain(line, lacking);
  for (Line& pair : pairs_of(lines.all)) {
    explain(pair, lacking);
    if (pair.left < kExplained) lines.all.push_back(std::move(pair));
  }
  std::vector<const Tensor*> tensors;
  for (const std::string& name : names) {
    const auto known = inputs.find(name);
    tensors.push_back(known == inputs.end() ? nullptr : &known->second);
  }
  for (Line& line : lines.all)
    if (!late(1)) line.displaced = is_displaced(line, lacking, tensors);
  std::vector<const Line*> order;
  for (const Line& line : lines.all) {
    // As many changes as wrong elements: any values that reach them would do.
    const bool says =
        plain ? line.left < kExplained && bits_of(line) >= thresholds::kBitsNeeded : line.left < kWorthNaming;
    if (says && !line.of_compiler) order.push_back(&line);
  }
  // Nearer the output first of those that need as many changes: what lies before it is made of more.
  const auto rank = [](const Line& l) {
    return std::tuple(l.left >= kExplained, !l.displaced, l.computes ? l.changes : kOfMoves * l.changes,
                      l.nearest);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Line* a, const Line* b) { return rank(*a) < rank(*b); });
  for (const Line& line : lines.all)
    if (line.left < kPart)
      result.explain.insert(fmt::format("{}:{}", line.at.where.file, line.at.where.line));
  for (const Line* line : order)
    if (std::has_single_bit(line->made_of))
      if (const auto input = static_cast<size_t>(std::countr_zero(line->made_of)); input < names.size())
        for (auto* of_input : {&result.alone, line->reads_only() ? &result.reads : nullptr})
          if (of_input) of_input->try_emplace(names[input], line->at, reason_of(*line));
  std::vector<SuspectLine>& suspects = result.likeliest;
  for (const Line* line : order) {
    const auto same = [&](const SuspectLine& known) {
      const SourceLocation &a = known.at.where, &b = line->at.where;
      return a.file == b.file && a.line == b.line && (a.line > 0 || a.ptx_line == b.ptx_line);
    };
    if (std::any_of(suspects.begin(), suspects.end(), same)) continue;
    if (suspects.size() == kLinesNamed) break;
    suspects.push_back({line->at, reason_of(*line)});
    if (suspects.size() == 1)
      if (auto copy = assignment_of(line, lines)) suspects.push_back(std::move(*copy));
    if (!line->displaced) continue;
    if (result.displaced.empty())
      if (auto maker = addressing(*line, source)) result.addressed.push_back(std::move(*maker));
    result.displaced.push_back({line->at, reason_of(*line)});
  }
  return result;
}

}  // namespace assay
