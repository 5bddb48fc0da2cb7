#include "src/verification/diagnosis/deciding_statements.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "src/verification/diagnosis/definitions.h"

namespace assay {
namespace {

/// Conditions that are followed, nearest first; a predicate is made of so many others, a number in so many
/// steps.
constexpr size_t kConditions = 4;
constexpr int kPredicates = 6, kMadeIn = 16;

/// A predicate as one instruction takes it.
struct TakenPredicate {
  int32_t predicate = -1, at = -1;
};

bool is_branch(const ptx::Instruction& in) {
  return in.form.operation == ptx::Operation::bra && in.predicate >= 0 && !in.operands.empty();
}

/// Branches that lead over the instruction, or back to before it; of loops alone the latter.
std::vector<TakenPredicate> conditions_of(const ptx::Function& f, int32_t instruction, bool of_loops) {
  std::vector<TakenPredicate> all;
  const ptx::Instruction& own = f.body[static_cast<size_t>(instruction)];
  if (own.predicate >= 0 && !of_loops) all.push_back({own.predicate, instruction});
  std::vector<std::pair<int32_t, TakenPredicate>> around;  ///< by distance
  for (int32_t i = 0; i < static_cast<int32_t>(f.body.size()); ++i) {
    const ptx::Instruction& in = f.body[static_cast<size_t>(i)];
    if (i == instruction || !is_branch(in)) continue;
    const int32_t to = in.operands.back().target;
    const bool over = i < instruction && to > instruction,
               back = i > instruction && to >= 0 && to <= instruction;
    if ((over && !of_loops) || back) around.push_back({std::abs(i - instruction), {in.predicate, i}});
  }
  std::stable_sort(around.begin(), around.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [distance, condition] : around)
    if (all.size() < kConditions) all.push_back(condition);
  return all;
}

class Statements {
 public:
  Statements(const ptx::Module& module, int32_t function, int32_t instruction, const SourceText& source)
      : module_(module),
        f_(module.functions[static_cast<size_t>(function)]),
        function_(function),
        source_(source),
        definitions_(f_) {
    said_.push_back(source.statement_around(location_of(module, function, instruction)));
  }

  void add(const TakenPredicate& condition) {
    for (const int32_t compared : comparisons(condition)) add(compared);
    for (const int32_t compared : comparisons(condition)) add_makers(compared);
  }
  std::vector<ChainLink> take() { return std::move(links_); }

 private:
  static bool is_comparison(const ptx::Instruction& in) { return in.form.operation == ptx::Operation::setp; }
  std::vector<int32_t> sources(int32_t at) const {
    return vm::signature_of(f_.body[static_cast<size_t>(at)]).reads;
  }
  bool is_predicate(int32_t reg) const {
    return f_.registers[static_cast<size_t>(reg)].type == ptx::Type::pred;
  }

  /// Behind the predicate, the nearest first.
  std::vector<int32_t> comparisons(const TakenPredicate& condition) const {
    std::vector<int32_t> found;
    std::vector<TakenPredicate> open{condition};
    std::set<int32_t> seen;
    for (size_t next = 0; next < open.size() && next < kPredicates; ++next) {
      const int32_t made = definitions_.last_before(open[next].predicate, open[next].at);
      if (made < 0 || !seen.insert(made).second) continue;
      if (is_comparison(f_.body[static_cast<size_t>(made)])) {
        found.push_back(made);
        continue;
      }
      for (const int32_t reg : sources(made))
        if (is_predicate(reg)) open.push_back({reg, made});
    }
    return found;
  }

  /// Statements that compute what is compared; a load is the source of what it gives.
  void add_makers(int32_t compared) {
    std::vector<std::pair<int, int32_t>> makers;  ///< by distance in the source
    const SourceLocation here = location_of(module_, function_, compared);
    std::set<int32_t> level{compared}, seen;
    for (int step = 0; step < kMadeIn && !level.empty(); ++step) {
      std::set<int32_t> next;
      for (const int32_t at : level)
        for (const int32_t reg : sources(at)) {
          const int32_t made = definitions_.last_before(reg, at);
          if (made < 0 || is_predicate(reg) || !seen.insert(made).second) continue;
          const ptx::Operation operation = f_.body[static_cast<size_t>(made)].form.operation;
          if (operation == ptx::Operation::ld) continue;
          next.insert(made);
          if (operation == ptx::Operation::mov || operation == ptx::Operation::cvt) continue;
          const SourceLocation where = location_of(module_, function_, made);
          if (where.file == here.file) makers.push_back({std::abs(where.line - here.line), made});
        }
      level = std::move(next);
    }
    std::stable_sort(makers.begin(), makers.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [distance, made] : makers) add(made);
  }

  void add(int32_t at) {
    const ChainLink link = link_of(module_, function_, at, source_);
    const auto holds = [&](const SourceRange& range) { return range.holds(link.where); };
    if (link.where.line == 0 || std::any_of(said_.begin(), said_.end(), holds)) return;
    said_.push_back(source_.statement_around(link.where));
    links_.push_back(link);
  }

  const ptx::Module& module_;
  const ptx::Function& f_;
  const int32_t function_;
  const SourceText& source_;
  const Definitions definitions_;
  std::vector<SourceRange> said_;
  std::vector<ChainLink> links_;
};

std::vector<ChainLink> statements_of(const ptx::Module& module, int32_t function, int32_t instruction,
                                     const SourceText& source, bool of_loops) {
  Statements statements(module, function, instruction, source);
  for (const TakenPredicate& condition :
       conditions_of(module.functions[static_cast<size_t>(function)], instruction, of_loops))
    statements.add(condition);
  return statements.take();
}

}  // namespace

std::vector<ChainLink> deciding_statements(const ptx::Module& module, int32_t function, int32_t instruction,
                                           const SourceText& source) {
  return statements_of(module, function, instruction, source, false);
}

std::vector<ChainLink> loop_statements(const ptx::Module& module, int32_t function, int32_t instruction,
                                       const SourceText& source) {
  return statements_of(module, function, instruction, source, true);
}

std::vector<ChainLink> deciding_statements(const Program& program, const SourceLocation& where,
                                           const SourceText& source) {
  const std::optional<FoundInstruction> found = find_instruction(program, where);
  if (!found) return {};
  return deciding_statements(*found->module, found->function, found->instruction, source);
}

}  // namespace assay
