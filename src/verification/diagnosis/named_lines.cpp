#include "src/verification/diagnosis/named_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "src/verification/diagnosis/address_maker.h"
#include "src/verification/diagnosis/index_maker.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {
namespace {

using Line = ExplainedLine;

constexpr size_t kLinesNamed = 8;
/// A line that so many calls have in them is of a function that many statements share.
constexpr size_t kShared = 4;

}  // namespace

std::string reason_of(const Line& line) {
  if (line.related) return line.related->sentence;
  if (line.displaced)
    return fmt::format("{} of its {} values would have to be those that it has, or its input has, elsewhere",
                       line.changes, line.values);
  if (line.undue > 0)
    return fmt::format("{} of its {} values taken for 0 make all wrong elements right", line.undue,
                       line.undue_of);
  if (line.factor != 0 && std::fabs(line.factor) < line.enough)
    return "its values taken for 0 make all wrong elements right";
  if (line.factor != 0)
    return fmt::format("its values times {:.6g} make all wrong elements right", line.factor);
  const bool one = line.changes == 1;
  if (line.explains())
    return fmt::format("{} of its {} values changed make{} all wrong elements right", line.changes,
                       line.values, one ? "s" : "");
  return fmt::format("{} of its {} values changed explain{} {:.0f} % of the errors", line.changes,
                     line.values, one ? "s" : "", 100 * (1 - line.left * line.left));
}

namespace {

/// The statement that says where the line reads.
std::optional<SuspectLine> addressing(const Line& line, const SourceText& source) {
  const auto& [module, function, instruction] = line.read;
  if (!module) return std::nullopt;
  std::optional<ChainLink> maker = address_maker(*module, function, instruction, source);
  if (!maker) return std::nullopt;
  return SuspectLine{std::move(*maker),
                     fmt::format("makes an address of line {}, where {} of {} values would have to be others",
                                 line.at.where.line, line.changes, line.values)};
}

/// Places in other files that a line was inlined into, the nearest first.
std::vector<std::string> calls_of(const SourceLocation& where) {
  const auto own = [&](const std::string& frame) { return frame.starts_with(where.file + ":"); };
  return {std::find_if_not(where.frames.begin(), where.frames.end(), own), where.frames.end()};
}

bool is_assignment(const std::string& text) {
  return text.find('=') != std::string::npos && text.find('(') == std::string::npos;
}

/// Right behind the line an assignment of what it makes: what would make more of it may be lacking there.
std::optional<SuspectLine> assignment_of(const Line* line, const SliceLines& lines) {
  constexpr int kBehind = 2;
  const auto known = lines.assigned.find(static_cast<size_t>(line - lines.all.data()));
  if (known == lines.assigned.end()) return std::nullopt;
  for (const size_t at : known->second) {
    const ChainLink& copy = lines.all[at].at;
    const int behind = copy.where.line - line->at.where.line;
    const bool same_function = copy.where.file == line->at.where.file && behind > 0 && behind <= kBehind &&
                               copy.where.frames.size() == line->at.where.frames.size();
    if (same_function && is_assignment(copy.text))
      return SuspectLine{copy, fmt::format("it only passes on what line {} makes", line->at.where.line)};
  }
  return std::nullopt;
}

/// "x" of "  a[i] = x;": what a statement that does no more than that passes on.
std::string passed_on(const std::string& text) {
  const size_t equals = text.find(" = "), end = text.find(';');
  if (equals == text.npos || end == text.npos || end < equals + 3) return "";
  const std::string right = text.substr(equals + 3, end - equals - 3);
  return std::all_of(right.begin(), right.end(), is_word) ? right : "";
}
/// The line says "x = ..".
bool makes(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name + " = "); at != text.npos; at = text.find(name + " = ", at + 1))
    if (at == 0 || !is_word(text[at - 1])) return true;
  return false;
}
/// The same of which an optimised program has no instruction any more, by the source alone.
std::optional<SuspectLine> next_assignment(const SourceLocation& where, const SourceText& source) {
  if (where.line <= 0) return std::nullopt;
  ChainLink next;
  next.where = where, next.where.line = where.line + 1, next.where.ptx_line = 0;
  if (!next.where.frames.empty())
    next.where.frames.front() = fmt::format("{}:{}", next.where.file, next.where.line);
  next.text = source.line(next.where);
  const std::string name = passed_on(next.text);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) || !makes(source.line(where), name))
    return std::nullopt;
  return SuspectLine{next, fmt::format("it only passes on what line {} makes", where.line)};
}

/// The last assignment that only passes on what the line makes.
std::optional<SuspectLine> passing_on(const Line* line, const SliceLines& lines) {
  std::vector<size_t> open{static_cast<size_t>(line - lines.all.data())};
  std::set<size_t> seen(open.begin(), open.end());
  const Line* last = nullptr;
  while (!open.empty()) {
    const auto known = lines.assigned.find(open.back());
    open.pop_back();
    if (known == lines.assigned.end()) continue;
    for (const size_t at : known->second) {
      if (!seen.insert(at).second) continue;
      open.push_back(at);
      const Line& copy = lines.all[at];
      if (is_assignment(copy.at.text) && copy.at.where.file == line->at.where.file &&
          (!last || copy.nearest < last->nearest))
        last = &copy;
    }
  }
  if (!last) return std::nullopt;
  return SuspectLine{last->at, fmt::format("it only passes on what line {} makes", line->at.where.line)};
}

/// The last assignment by which the values that would have to be 0 go on as they are: a mask may stand there.
std::optional<SuspectLine> passing_undue(const Line& line, const SliceLines& lines) {
  std::set<uint32_t> passed(line.changed.begin(), line.changed.end());
  const Line* last = nullptr;
  for (uint32_t n = *passed.rbegin(); n-- > 0;) {  // what takes a value stands before what makes it
    const int32_t made = lines.copied(n);
    if (made < 0 || !passed.contains(static_cast<uint32_t>(made))) continue;
    passed.insert(n);
    const size_t at = lines.of_instance()[n];
    if (at == SIZE_MAX || lines.all[at].of_compiler || &lines.all[at] == &line) continue;
    if (lines.all[at].at.text.find(" = ") != std::string::npos) last = &lines.all[at];
  }
  if (!last) return std::nullopt;
  return SuspectLine{last->at,
                     fmt::format("it passes on what line {} makes, where {} of {} would have to be 0",
                                 line.at.where.line, line.undue, line.undue_of)};
}

/// Lines apart where both are in one file, be it by calls.
int lines_apart(const SourceLocation& a, const SourceLocation& b) {
  int least = INT_MAX;
  const auto places = [](const SourceLocation& where) {
    std::vector<std::pair<std::string, int>> all{{where.file, where.line}};
    for (const std::string& frame : where.frames)
      if (const size_t colon = frame.rfind(':'); colon != frame.npos)
        all.emplace_back(frame.substr(0, colon), std::atoi(frame.c_str() + colon + 1));
    return all;
  };
  for (const auto& [file, line] : places(a))
    for (const auto& [other_file, other] : places(b))
      if (file == other_file && line > 0 && other > 0 && line != other)
        least = std::min(least, std::abs(line - other));
  return least;
}

/// Of instances that of another line that stands near.
const Line* nearest_of(const Line& line, const std::vector<uint32_t>& instances, const SliceLines& lines) {
  constexpr int kNear = 8;
  const Line* nearest = nullptr;
  int least = kNear + 1;
  for (const uint32_t n : instances) {
    const size_t at = lines.of_instance()[n];
    if (at == SIZE_MAX || lines.all[at].of_compiler) continue;
    const int apart = lines_apart(line.at.where, lines.all[at].at.where);
    if (apart < least) least = apart, nearest = &lines.all[at];
  }
  return nearest;
}

/// Where else the factor that the line lacks could stand.
void name_products(const Line& line, const std::string& factor, const SliceLines& lines,
                   std::vector<SuspectLine>& to) {
  for (const uint32_t n : line.same_product) {
    const size_t at = lines.of_instance()[n];
    if (at != SIZE_MAX && !lines.all[at].of_compiler && &lines.all[at] != &line)
      to.push_back({lines.all[at].at, fmt::format("{} could stand in it as well", factor)});
  }
}

/// Beside a product by a number that is too many, where that was assigned.
void name_number(const Line& line, const SliceLines& lines, std::vector<SuspectLine>& superfluous) {
  if (superfluous.size() != 1) return;
  for (const uint32_t n : line.number_from) {
    const size_t at = lines.of_instance()[n];
    if (at == SIZE_MAX || lines.all[at].of_compiler || lines.all[at].at.text.find(" = ") == std::string::npos)
      continue;
    if (lines.all[at].at.where.line == superfluous[0].at.where.line) continue;
    superfluous.push_back(
        {lines.all[at].at, fmt::format("the number that line {} multiplies by comes from there",
                                       superfluous[0].at.where.line)});
    return;
  }
}

/// What the line should go past, or take: of the first such line.
void name_makers(const Line& line, const SliceLines& lines, SuspectLines& result) {
  const auto add = [&](std::optional<uint32_t> instance, std::vector<SuspectLine>& to, std::string reason) {
    if (!instance || !to.empty()) return;
    const size_t at = lines.of_instance()[*instance];
    if (at != SIZE_MAX && !lines.all[at].of_compiler) to.push_back({lines.all[at].at, std::move(reason)});
  };
  const SourceLocation& at_own = line.at.where;
  const std::string own =
      at_own.line > 0 ? fmt::format("line {}", at_own.line) : fmt::format("PTX line {}", at_own.ptx_line);
  if (!line.related) {
    add(line.superfluous, result.superfluous,
        fmt::format("it multiplies by {:.6g}, by which {} should be divided", 1 / line.factor, own));
    name_number(line, lines, result.superfluous);
    name_products(line, fmt::format("the factor {:.6g} of {}", line.factor, own), lines, result.in_product);
    return;
  }
  add(line.superfluous, result.superfluous,
      line.related->how == RelatedValue::How::divided
          ? fmt::format("it multiplies by what the values of {} should be divided by", own)
          : fmt::format("without what it does to the value that {} takes, all wrong elements are right",
                        own));
  name_number(line, lines, result.superfluous);
  if (result.related.size() == 1)  // of the first
    name_products(line, fmt::format("the factor that {} lacks", own), lines, result.in_product);
  add(line.taken, result.passed_on, fmt::format("{} should take what it makes", own));
  if (result.alike.empty())
    if (const Line* nearest = nearest_of(line, line.alike, lines))
      result.alike.push_back({nearest->at, fmt::format("it takes the value that {} lacks", own)});
}

}  // namespace

void name_lines(const std::vector<const Line*>& order, const SliceLines& lines, const SourceText& source,
                SuspectLines& result) {
  std::map<std::pair<std::string, int>, size_t> calls;  ///< by file and line
  for (const Line& line : lines.all) ++calls[{line.at.where.file, line.at.where.line}];
  std::vector<SuspectLine>& suspects = result.likeliest;
  bool first_undue = true;
  for (const Line* line : order) {
    const auto same = [&](const SuspectLine& known) {
      const SourceLocation &a = known.at.where, &b = line->at.where;
      return a.file == b.file && a.line == b.line && (a.line > 0 || a.ptx_line == b.ptx_line);
    };
    const auto of_same_call = [&](const SuspectLine& known) {
      return known.at.where.file == line->at.where.file && !calls_of(line->at.where).empty() &&
             calls_of(known.at.where) == calls_of(line->at.where);
    };
    if (std::any_of(suspects.begin(), suspects.end(), same)) continue;
    // Were it wrong itself, all that call it would be: one of its lines says as much as several.
    const bool shared = calls[{line->at.where.file, line->at.where.line}] >= kShared;
    if (shared && std::any_of(suspects.begin(), suspects.end(), of_same_call)) continue;
    if (suspects.size() == kLinesNamed) break;
    if (line->undue > 0 && std::exchange(first_undue, false))
      if (auto copy = passing_undue(*line, lines)) suspects.push_back(std::move(*copy));
    suspects.push_back({line->at, reason_of(*line)});
    if (suspects.size() == 1) {
      auto copy = assignment_of(line, lines);
      if (!copy) copy = next_assignment(line->at.where, source);
      if (copy) suspects.push_back(std::move(*copy));
    }
    if (line->related) {
      result.related.push_back({line->at, reason_of(*line)});
      // What is lacking may be lacking where it is passed on.
      if (result.passed_on.empty())
        if (auto copy = passing_on(line, lines)) result.passed_on.push_back(std::move(*copy));
    }
    if (line->related || (suspects.size() == 1 && line->factor != 0)) name_makers(*line, lines, result);
    if (!line->displaced) continue;
    if (result.displaced.empty())
      if (auto maker = addressing(*line, source)) result.addressed.push_back(std::move(*maker));
    result.displaced.push_back({line->at, reason_of(*line)});
  }
}

}  // namespace assay
