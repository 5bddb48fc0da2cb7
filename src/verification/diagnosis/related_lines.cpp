#include "src/verification/diagnosis/related_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/vm/event_log.h"
#include "src/verification/diagnosis/changed_values.h"

namespace assay {
namespace {

/// One instruction of so many alike, as the last of a sum, may be meant alone.
constexpr size_t kMostAlike = 8;

/// `own`: the line that lacks the value, which it may make itself, in another turn of a loop.
std::string sentence_of(const RelatedValue& related, const SourceLocation& maker, const SourceLocation& own) {
  const std::string place = maker.line > 0 ? fmt::format("{}:{}", maker.file, maker.line)
                                           : fmt::format("PTX line {}", maker.ptx_line);
  const bool itself = maker.line > 0 && maker.file == own.file && maker.line == own.line;
  const char* const does = related.taken ? "takes" : "makes";
  const std::string other =
      itself ? fmt::format("it {} at another step", does) : fmt::format("{} {}", place, does);
  constexpr std::string_view right = "its values make all wrong elements right";
  switch (related.how) {
    case RelatedValue::How::plus:
      return fmt::format("with what {} added, {}", other, right);
    case RelatedValue::How::minus:
      return fmt::format("less what {}, {}", other, right);
    case RelatedValue::How::times:
      return fmt::format("with what {} as a factor, {}", other, right);
    case RelatedValue::How::divided:
      return fmt::format("divided by what {}, {}", other, right);
    case RelatedValue::How::instead:
      return fmt::format("what {} in their place makes all wrong elements right", other);
    case RelatedValue::How::past:
      return fmt::format("what {} in place of what it makes makes all wrong elements right", other);
    case RelatedValue::How::lanes:
      return fmt::format("summed over {} lanes, {}", related.statement, right);
  }
  return "";
}

bool may_be_related(const ExplainedLine& line) {
  return line.explains() && line.factor == 0 && !line.of_compiler;
}

/// Between an instance and a value that it is made of and that should be there in its place: what first makes
/// something else of it.
std::optional<uint32_t> between(const vm::ValueSlice& slice, uint32_t user, uint32_t maker) {
  constexpr size_t kMostFollowed = 4096;
  std::map<uint32_t, uint32_t> taken_by{{user, user}};
  std::vector<uint32_t> open{user};
  for (size_t next = 0; next < open.size() && next < kMostFollowed && !taken_by.contains(maker); ++next) {
    const vm::SliceInstance& i = slice.instances[open[next]];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (const auto made = static_cast<uint32_t>(slice.operands[o].made_by);
          slice.operands[o].made_by >= 0 && taken_by.try_emplace(made, open[next]).second)
        open.push_back(made);
  }
  if (user == maker || !taken_by.contains(maker)) return std::nullopt;
  for (uint32_t at = taken_by.at(maker); at != user; at = taken_by.at(at))
    if (slice.instances[at].flow == vm::Flow::arithmetic || slice.instances[at].flow == vm::Flow::matrix)
      return at;
  return std::nullopt;
}

/// The nearest product with a number on the way to an instance, or from it, where the instance divided by
/// that number would be right: it is one product too many.
std::optional<uint32_t> product_with(double number, const vm::ValueSlice& slice, uint32_t user) {
  constexpr size_t kMostFollowed = 4096;
  if (!std::isfinite(number) || number == 0 || std::fabs(std::fabs(number) - 1) <= kLeftWhereExplained)
    return std::nullopt;
  const auto multiplies = [&](uint32_t n, int64_t taken_from) {
    const vm::SliceInstance& i = slice.instances[n];
    const ptx::Operation is = slice.modules[static_cast<size_t>(i.module)]
                                  ->functions[static_cast<size_t>(i.function)]
                                  .body[static_cast<size_t>(i.instruction)]
                                  .form.operation;
    if (i.flow != vm::Flow::arithmetic || (is != ptx::Operation::mul && is != ptx::Operation::fma))
      return false;
    for (uint32_t o = i.first_operand; o < i.first_operand + std::min<uint32_t>(i.operand_count, 2); ++o) {
      const vm::SliceOperand& operand = slice.operands[o];
      if (operand.made_by != taken_from && ptx::is_float(operand.type) &&
          std::fabs(vm::value_of(operand.type, operand.bits) - number) <=
              kLeftWhereExplained * std::fabs(number))
        return true;
    }
    return false;
  };
  constexpr int64_t kNone = -2;  // literals are made by -1
  // Consumers stand before producers.
  std::set<uint32_t> behind{user}, before{user};
  for (uint32_t n = user; n-- > 0 && behind.size() < kMostFollowed;) {
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const int32_t made_by = slice.operands[o].made_by;
      if (made_by < 0 || !behind.contains(static_cast<uint32_t>(made_by))) continue;
      if (multiplies(n, made_by)) return n;
      behind.insert(n);
    }
  }
  for (uint32_t n = user; n < slice.instances.size() && before.size() < kMostFollowed; ++n) {
    if (!before.contains(n)) continue;
    if (multiplies(n, kNone)) return n;
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (slice.operands[o].made_by >= 0) before.insert(static_cast<uint32_t>(slice.operands[o].made_by));
  }
  return std::nullopt;
}

/// What a number that a product takes was moved by on its way to it, the nearest first.
std::vector<uint32_t> moves_of(double number, const vm::ValueSlice& slice, uint32_t product) {
  std::vector<uint32_t> moves;
  const vm::SliceInstance& i = slice.instances[product];
  for (uint32_t o = i.first_operand; o < i.first_operand + std::min<uint32_t>(i.operand_count, 2); ++o) {
    const vm::SliceOperand& operand = slice.operands[o];
    if (!moves.empty() || !ptx::is_float(operand.type) ||
        std::fabs(vm::value_of(operand.type, operand.bits) - number) >
            kLeftWhereExplained * std::fabs(number))
      continue;
    for (int32_t at = operand.made_by; at >= 0;) {
      const vm::SliceInstance& made = slice.instances[static_cast<size_t>(at)];
      if (made.operand_count > 1 || made.flow == vm::Flow::arithmetic) break;
      moves.push_back(static_cast<uint32_t>(at));
      at = made.operand_count == 0 ? -1 : slice.operands[made.first_operand].made_by;
    }
  }
  return moves;
}

bool is_of_product(const vm::ValueSlice& slice, uint32_t n) {
  const vm::SliceInstance& i = slice.instances[n];
  if (i.flow != vm::Flow::arithmetic || !ptx::is_float(i.type)) return false;
  const ptx::Operation is = slice.modules[static_cast<size_t>(i.module)]
                                ->functions[static_cast<size_t>(i.function)]
                                .body[static_cast<size_t>(i.instruction)]
                                .form.operation;
  return is == ptx::Operation::mul || is == ptx::Operation::fma;
}

/// What an operand was before it was only moved; -1: nothing made it.
int32_t before_copies(const vm::ValueSlice& slice, int32_t made_by) {
  while (made_by >= 0) {
    const vm::SliceInstance& i = slice.instances[static_cast<size_t>(made_by)];
    if (i.flow == vm::Flow::arithmetic || i.flow == vm::Flow::matrix || i.operand_count != 1) break;
    made_by = slice.operands[i.first_operand].made_by;
  }
  return made_by;
}

/// What makes an instance's operands, and what takes what it makes, where that multiplies: a factor that the
/// instance lacks could stand there as well.
std::vector<uint32_t> in_product(const vm::ValueSlice& slice, uint32_t user) {
  const auto factors = [&](uint32_t n) {
    std::vector<int32_t> made;
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + std::min<uint32_t>(i.operand_count, 2); ++o)
      made.push_back(before_copies(slice, slice.operands[o].made_by));
    return made;
  };
  std::vector<uint32_t> found;
  if (const int32_t moved = before_copies(slice, static_cast<int32_t>(user));
      moved >= 0 && moved != static_cast<int32_t>(user) && is_of_product(slice, static_cast<uint32_t>(moved)))
    found.push_back(user = static_cast<uint32_t>(moved));
  if (is_of_product(slice, user))
    for (const int32_t made_by : factors(user))
      if (made_by >= 0 && is_of_product(slice, static_cast<uint32_t>(made_by)))
        found.push_back(static_cast<uint32_t>(made_by));
  for (uint32_t n = user; n-- > 0;) {  // consumers stand before producers
    if (!is_of_product(slice, n)) continue;
    const std::vector<int32_t> made = factors(n);
    if (std::count(made.begin(), made.end(), static_cast<int32_t>(user)) == 0) continue;
    found.push_back(n);
    break;
  }
  return found;
}

/// The next product that what the instance makes is a factor of, be it behind sums.
std::optional<uint32_t> next_product(const vm::ValueSlice& slice, uint32_t user) {
  constexpr size_t kMostFollowed = 4096;
  std::set<uint32_t> behind{user};
  for (uint32_t n = user; n-- > 0 && behind.size() < kMostFollowed;) {  // consumers stand before producers
    const vm::SliceInstance& i = slice.instances[n];
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o) {
      const int32_t made_by = slice.operands[o].made_by;
      if (made_by < 0 || !behind.contains(static_cast<uint32_t>(made_by))) continue;
      if (is_of_product(slice, n) && o < i.first_operand + 2) return n;
      behind.insert(n);
    }
  }
  return std::nullopt;
}

/// What else takes a value that an instance lacks, in a product or a sum: statements that should be alike
/// stand together.
std::vector<uint32_t> takers_of(const vm::ValueSlice& slice, uint32_t maker, uint32_t user) {
  const int32_t root = before_copies(slice, static_cast<int32_t>(maker));
  std::vector<uint32_t> found;
  for (uint32_t n = 0; n < maker; ++n) {  // consumers stand before producers
    const vm::SliceInstance& i = slice.instances[n];
    if (n == user || i.flow != vm::Flow::arithmetic || !ptx::is_float(i.type) || i.operand_count < 2)
      continue;
    for (uint32_t o = i.first_operand; o < i.first_operand + i.operand_count; ++o)
      if (slice.operands[o].made_by >= 0 && before_copies(slice, slice.operands[o].made_by) == root) {
        found.push_back(n);
        break;
      }
  }
  return found;
}

/// Operations of lines, by number: of instances, and of instructions that no output is made of.
class Statements {
 public:
  Statements(const vm::ValueSlice& slice, const SliceLines& lines, const SourceText& source)
      : lines_(lines), source_(source) {
    for (uint32_t n = 0; n < slice.instances.size(); ++n) {
      const size_t line = lines.of_instance()[n];
      of_instance.push_back(line == SIZE_MAX ? SIZE_MAX : of_line(line, operation_of(slice, n)));
    }
  }
  size_t of(const vm::ThreadValues& thread, const vm::HeldValue& value) {
    const Site site{thread.module.get(), value.function, value.instruction};
    const auto [known, is_new] = of_site_.try_emplace(site);
    if (!is_new) return known->second;
    const auto line = lines_.of_site().find(site);
    const std::string_view operation = thread.module->functions[static_cast<size_t>(value.function)]
                                           .body[static_cast<size_t>(value.instruction)]
                                           .opcode;
    if (line != lines_.of_site().end()) return known->second = of_line(line->second, operation);
    made_at.push_back(link_of(*thread.module, value.function, value.instruction, source_).where);
    return known->second = made_at.size() - 1;
  }

  std::vector<size_t> of_instance;      ///< SIZE_MAX: of none
  std::vector<SourceLocation> made_at;  ///< by statement

 private:
  size_t of_line(size_t line, std::string_view operation) {
    const auto [known, is_new] = known_.try_emplace({line, operation}, made_at.size());
    if (is_new) made_at.push_back(lines_.all[line].at.where);
    return known->second;
  }

  const SliceLines& lines_;
  const SourceText& source_;
  std::map<std::pair<size_t, std::string_view>, size_t> known_;
  std::map<Site, size_t> of_site_;
};

/// Beside the line itself: what it should go past, or take.
void note_maker(const vm::ValueSlice& slice, const RelatedValue& related, ExplainedLine& line) {
  line.superfluous.reset(), line.number_from.clear(), line.taken.reset(), line.same_product.clear(),
      line.alike.clear();
  if (related.how == RelatedValue::How::times) line.same_product = in_product(slice, related.user);
  if (related.how == RelatedValue::How::divided)
    line.superfluous = product_with(related.number, slice, related.user);
  if (line.superfluous) line.number_from = moves_of(related.number, slice, *line.superfluous);
  if (related.maker < 0) return;
  const auto maker = static_cast<uint32_t>(related.maker);
  if (related.how <= RelatedValue::How::divided) line.alike = takers_of(slice, maker, related.user);
  if (related.how == RelatedValue::How::past) line.superfluous = maker;
  if (related.how != RelatedValue::How::instead) return;
  line.superfluous = between(slice, related.user, maker);
  if (!line.superfluous) line.taken = maker;
}

/// Lines that can explain what is lacking: is it another value that their threads hold? True: of one it is.
bool relate(SliceLines& lines, const WrongElements& behind, const RelatedValues& values,
            const Statements& statements, const std::function<bool()>& late) {
  bool any = false;
  for (ExplainedLine& line : lines.all) {
    if (!may_be_related(line) || late()) continue;
    std::map<size_t, std::vector<uint32_t>> by_statement;
    std::map<Site, std::vector<uint32_t>> by_site;
    for (const uint32_t n : line.instances) {
      const vm::SliceInstance& i = behind.slice.instances[n];
      by_statement[statements.of_instance[n]].push_back(n);
      by_site[{behind.slice.modules[static_cast<size_t>(i.module)].get(), i.function, i.instruction}]
          .push_back(n);
    }
    std::vector<std::vector<uint32_t>> groups;
    for (auto& [statement, instances] : by_statement) groups.push_back(std::move(instances));
    // One instruction of several alike, as the last of a sum; of many, as in a loop unrolled, none is meant.
    if (by_site.size() > by_statement.size() && by_site.size() <= kMostAlike)
      for (auto& [site, instances] : by_site) groups.push_back(std::move(instances));
    for (const std::vector<uint32_t>& instances : groups) {
      std::optional<RelatedValue> found = values.find(instances);
      if (!found || (line.related && line.related->apart <= found->apart)) continue;
      note_maker(behind.slice, *found, line);
      const bool is_lanes = found->how == RelatedValue::How::lanes;
      found->sentence =
          sentence_of(*found, is_lanes ? line.at.where : statements.made_at[found->statement], line.at.where);
      line.related = std::move(found), any = true;
    }
  }
  return any;
}

/// The same of a part of a line's values.
void relate_partly(SliceLines& lines, const WrongElements& behind, const RelatedValues& values,
                   const Statements& statements, const std::function<bool()>& late) {
  for (ExplainedLine& line : lines.all) {
    if (!may_be_related(line) || late()) continue;
    for (const ChangedValues& changed : changed_values(line, behind)) {
      if (are_undue(changed)) continue;  // less what it is made of says no more
      std::optional<RelatedValue> found = values.find(changed.instances, changed.changes, changed.bits);
      if (!found || (line.related && line.related->apart <= found->apart)) continue;
      found->sentence =
          fmt::format("{} of {} values: {}", changed.instances.size(), changed.of_operation.size(),
                      sentence_of(*found, statements.made_at[found->statement], line.at.where));
      line.related = std::move(found);
    }
  }
}

/// What the threads of instances make around them.
vm::ValuesNear values_near(const vm::ValueSlice& slice, const std::vector<uint32_t>& instances,
                           const RanProgram& ran) {
  constexpr uint32_t kApart = 3'000;
  constexpr size_t kMost = 3'000'000;
  std::vector<vm::ThreadMoment> moments;
  for (const uint32_t n : instances) {
    const vm::SliceInstance& i = slice.instances[n];
    moments.push_back({i.launch, i.block, i.thread, i.record});
  }
  if (moments.empty()) return {};
  return vm::values_near(ran.program, ran.inputs, ran.machine, moments, kApart, kMost);
}

}  // namespace

void note_superfluous(const vm::ValueSlice& slice, ExplainedLine& line) {
  if (line.factor == 0 || line.instances.empty()) return;
  constexpr size_t kMostTried = 8, kProducts = 2;
  std::vector<uint32_t> made = made_by_line(slice, line.instances);
  if (made.size() > kMostTried) made.resize(kMostTried);
  std::vector<uint32_t> products;  // a number that one of them meets by chance is not met by all
  for (const uint32_t n : made)
    if (const auto product = product_with(1 / line.factor, slice, n)) products.push_back(*product);
  if (made.size() > 1 && products.size() == made.size()) {
    line.superfluous = products.front();
    line.number_from = moves_of(1 / line.factor, slice, products.front());
  }
  for (size_t i = 0; i < made.size() && !line.superfluous && line.same_product.empty(); ++i)
    line.same_product = in_product(slice, made[i]);
  for (size_t i = 0; i < made.size() && !line.superfluous && line.same_product.empty(); ++i)
    for (auto next = next_product(slice, made[i]); next && line.same_product.size() < kProducts;
         next = next_product(slice, *next))
      line.same_product.push_back(*next);
}

bool relate(SliceLines& lines, const WrongElements& behind, const SourceText& source, const RanProgram& ran,
            const std::function<bool()>& late) {
  constexpr size_t kMostOfLine = 2'000;
  Statements statements(behind.slice, lines, source);
  RelatedValues values(behind.slice, behind.slopes, behind.lacking, statements.of_instance);
  if (relate(lines, behind, values, statements, late) || late()) return false;
  std::vector<uint32_t> instances;
  for (const ExplainedLine& line : lines.all)
    if (may_be_related(line) && line.instances.size() <= kMostOfLine)
      instances.insert(instances.end(), line.instances.begin(), line.instances.end());
  const vm::ValuesNear beside = values_near(behind.slice, instances, ran);
  if (!beside.threads.empty()) {
    values.add(beside, instances, [&](const vm::ThreadValues& thread, const vm::HeldValue& value) {
      return statements.of(thread, value);
    });
    if (relate(lines, behind, values, statements, late) || late()) return false;
  }
  relate_partly(lines, behind, values, statements, late);
  if (std::any_of(lines.all.begin(), lines.all.end(),
                  [](const ExplainedLine& l) { return l.related.has_value(); }))
    return false;
  values.look_along();
  return relate(lines, behind, values, statements, late);
}

}  // namespace assay
