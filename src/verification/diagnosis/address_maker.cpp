#include "src/verification/diagnosis/address_maker.h"

#include <climits>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/verification/diagnosis/definitions.h"

namespace assay {
namespace {

/// Enough for an index of several terms, scaled and added to a base.
constexpr int kSteps = 12;

void collect(const ptx::Operand& o, bool addresses, std::vector<int32_t>& registers) {
  if (o.reg >= 0 && (o.kind == ptx::Operand::Kind::address) == addresses) registers.push_back(o.reg);
  for (const ptx::Operand& e : o.elements) collect(e, addresses, registers);
}

/// Of what it computes a place may be the result; loads and what only names a place are the source of others.
bool computes(const ptx::Instruction& in) {
  const ptx::Operation is = in.form.operation;
  return is != ptx::Operation::ld && is != ptx::Operation::cvta && is != ptx::Operation::mov;
}

/// The line itself, of a small function that was inlined too: the calls around it are of many statements.
SourceLocation innermost(const SourceLocation& where) {
  SourceLocation inner = where;
  if (where.frames.empty()) return inner;
  const std::string& frame = where.frames.front();
  const size_t colon = frame.rfind(':');
  if (colon == frame.npos) return inner;
  inner.file = frame.substr(0, colon), inner.line = std::atoi(frame.c_str() + colon + 1);
  return inner;
}

/// Which special registers an integer is made of, as far as the text says.
class Makers {
 public:
  explicit Makers(const ptx::Function& f) : f_(f), definitions_(f) {}

  struct Of {
    bool thread = false, block = false;
  };
  /// Behind a chain longer than any address is anything may stand.
  Of of(int32_t at, int depth = 0) {
    constexpr int kDeepest = 1000;
    if (const auto known = known_.find(at); known != known_.end()) return known->second;
    if (depth == kDeepest) return {true, true};
    Of made;
    for (const int32_t from : sources(at, false)) {  // they stand before it
      const Of other = of(from, depth + 1);
      made.thread |= other.thread, made.block |= other.block;
    }
    for (const ptx::Operand& o : f_.body[static_cast<size_t>(at)].operands) {
      if (o.kind != ptx::Operand::Kind::special) continue;
      made.thread |= o.name.starts_with("%tid") || o.name.starts_with("%lane");
      made.block |= o.name.starts_with("%ctaid");
    }
    return known_[at] = made;
  }
  /// Instructions that make what it takes: its address, or its other operands. None behind a load.
  std::vector<int32_t> sources(int32_t at, bool address) const {
    std::vector<int32_t> made, registers;
    if (!address && f_.body[static_cast<size_t>(at)].form.operation == ptx::Operation::ld) return made;
    for (const ptx::Operand& o : f_.body[static_cast<size_t>(at)].operands) collect(o, address, registers);
    for (const int32_t reg : registers)
      if (const int32_t from = definitions_.last_before(reg, at); from >= 0 && from < at)
        made.push_back(from);
    return made;
  }

 private:
  const ptx::Function& f_;
  const Definitions definitions_;
  std::map<int32_t, Of> known_;
};

bool chooses(const ptx::Instruction& in) {
  using ptx::Operation;
  const Operation is = in.form.operation;
  return is == Operation::mul || is == Operation::mad || is == Operation::div || is == Operation::rem;
}

}  // namespace

std::optional<ChainLink> block_address_maker(const ptx::Module& module, int32_t function, int32_t instruction,
                                             const SourceText& source) {
  constexpr size_t kMost = 400;
  const ptx::Function& f = module.functions[static_cast<size_t>(function)];
  const SourceRange own = source.statement_around(innermost(location_of(module, function, instruction)));
  Makers makers(f);
  std::vector<int32_t> open = makers.sources(instruction, true);
  std::set<int32_t> seen(open.begin(), open.end());
  for (size_t next = 0; next < open.size() && next < kMost; ++next) {
    const int32_t at = open[next];
    const Makers::Of made = makers.of(at);
    const SourceLocation where = innermost(location_of(module, function, at));
    if (made.block && !made.thread && where.line > 0 && !own.holds(where) &&
        chooses(f.body[static_cast<size_t>(at)]))
      return link_of(module, function, at, source);
    for (const int32_t from : makers.sources(at, false))
      if (seen.insert(from).second) open.push_back(from);
  }
  return std::nullopt;
}

std::optional<ChainLink> address_maker(const ptx::Module& module, int32_t function, int32_t instruction,
                                       const SourceText& source) {
  const ptx::Function& f = module.functions[static_cast<size_t>(function)];
  const SourceLocation here = innermost(location_of(module, function, instruction));
  const SourceRange own = source.statement_around(here);
  const Definitions definitions(f);
  std::set<int32_t> level{instruction}, seen;
  int32_t nearest = -1;
  int least = INT_MAX;
  for (int step = 0; step < kSteps && !level.empty(); ++step) {
    std::set<int32_t> next;
    for (const int32_t at : level) {
      std::vector<int32_t> registers;
      for (const ptx::Operand& operand : f.body[static_cast<size_t>(at)].operands)
        collect(operand, at == instruction, registers);
      for (const int32_t reg : registers) {
        const int32_t made = definitions.last_before(reg, at);
        if (made < 0 || !seen.insert(made).second) continue;
        if (f.body[static_cast<size_t>(made)].form.operation == ptx::Operation::ld) continue;
        next.insert(made);
        const SourceLocation where = innermost(location_of(module, function, made));
        if (where.line == 0 || own.holds(where) || !computes(f.body[static_cast<size_t>(made)])) continue;
        const int apart = where.file == own.file ? std::abs(where.line - here.line) : INT_MAX - 1;
        if (apart < least) nearest = made, least = apart;
      }
    }
    level = std::move(next);
  }
  return nearest < 0 ? std::nullopt : std::optional(link_of(module, function, nearest, source));
}

std::vector<ChainLink> address_makers(const Program& program, const SourceLocation& where,
                                      const SourceText& source) {
  std::vector<ChainLink> makers;
  const std::optional<FoundInstruction> found = find_instruction(program, where);
  if (!found) return makers;
  for (auto* maker : {address_maker, block_address_maker})
    if (auto link = maker(*found->module, found->function, found->instruction, source))
      makers.push_back(*std::move(link));
  return makers;
}

}  // namespace assay
