#include "src/verification/diagnosis/store_address.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "src/verification/diagnosis/definitions.h"

namespace assay {
namespace {

using ptx::Operation;

void collect(const ptx::Operand& o, bool addresses, std::vector<int32_t>& registers) {
  if (o.reg >= 0 && (o.kind == ptx::Operand::Kind::address) == addresses) registers.push_back(o.reg);
  for (const ptx::Operand& e : o.elements) collect(e, addresses, registers);
}

/// The line itself, of a small function that was inlined too.
SourceLocation innermost(SourceLocation where) {
  if (where.frames.empty()) return where;
  const std::string& frame = where.frames.front();
  const size_t colon = frame.rfind(':');
  if (colon != frame.npos)
    where.file = frame.substr(0, colon), where.line = std::atoi(frame.c_str() + colon + 1);
  return where;
}

/// Not what only names, copies or converts a value, or brings it from memory.
bool computes(const ptx::Instruction& in) {
  const Operation is = in.form.operation;
  return is != Operation::ld && is != Operation::mov && is != Operation::cvt && is != Operation::cvta;
}

bool writes_global(const ptx::Instruction& in) {
  const Operation is = in.form.operation;
  return is == Operation::st || is == Operation::red || is == Operation::atom;
}

/// Instructions behind an address, the nearest first. None behind a load, which is the last of its chain.
class Behind {
 public:
  explicit Behind(const ptx::Function& f) : f_(f), definitions_(f) {}

  std::vector<int32_t> address(int32_t of) const {
    std::vector<int32_t> open;
    std::set<int32_t> seen{of};
    follow(of, true, seen, open);
    return all_behind(std::move(open), std::move(seen));
  }
  std::vector<int32_t> value(int32_t reg) const {
    std::vector<int32_t> open(definitions_.all(reg).begin(), definitions_.all(reg).end());
    std::set<int32_t> seen(open.begin(), open.end());
    return all_behind(std::move(open), std::move(seen));
  }
  /// Definitions of a register that compute it, copies and conversions left out.
  std::vector<int32_t> makers(int32_t reg) const {
    std::vector<int32_t> made, open(definitions_.all(reg).begin(), definitions_.all(reg).end());
    std::set<int32_t> seen(open.begin(), open.end());
    for (size_t next = 0; next < open.size(); ++next) {
      const Operation is = operation(open[next]);
      if (is == Operation::mov || is == Operation::cvt)
        follow(open[next], false, seen, open);
      else if (is != Operation::ld)
        made.push_back(open[next]);
    }
    return made;
  }

 private:
  std::vector<int32_t> all_behind(std::vector<int32_t> open, std::set<int32_t> seen) const {
    constexpr size_t kMost = 2000;
    for (size_t next = 0; next < open.size() && open.size() < kMost; ++next)
      if (operation(open[next]) != Operation::ld) follow(open[next], false, seen, open);
    return open;
  }
  Operation operation(int32_t at) const { return f_.body[static_cast<size_t>(at)].form.operation; }
  void follow(int32_t at, bool address, std::set<int32_t>& seen, std::vector<int32_t>& open) const {
    std::vector<int32_t> registers;
    for (const ptx::Operand& o : f_.body[static_cast<size_t>(at)].operands) collect(o, address, registers);
    for (const int32_t reg : registers)
      for (const int32_t made : definitions_.all(reg))
        if (seen.insert(made).second) open.push_back(made);
  }

  const ptx::Function& f_;
  const Definitions definitions_;
};

/// As far as the source is there: what a loop counts with is moved by other statements' lines, too.
bool may_move(const std::string& text) {
  return text.empty() || (text.find("for (") == text.npos &&
                          (text.find("+= ") != text.npos || text.find("-= ") != text.npos));
}

/// Does a branch lead from behind both to before both?
bool share_loop(const ptx::Function& f, int32_t first, int32_t last) {
  for (size_t i = static_cast<size_t>(last); i < f.body.size(); ++i) {
    const ptx::Instruction& in = f.body[i];
    if (in.form.operation != Operation::bra || in.operands.empty()) continue;
    const int32_t to = in.operands.back().target;
    if (to >= 0 && to <= first) return true;
  }
  return false;
}

/// Of the block's index, and not of the thread's.
bool is_of_block(const ptx::Function& f, const Behind& behind, const ptx::Operand& number) {
  bool block = false, thread = false;
  const auto look = [&](const ptx::Operand& o) {
    if (o.kind != ptx::Operand::Kind::special) return;
    block |= o.name.starts_with("%ctaid");
    thread |= o.name.starts_with("%tid") || o.name.starts_with("%lane");
  };
  look(number);
  for (const int32_t made : behind.value(number.reg))
    for (const ptx::Operand& o : f.body[static_cast<size_t>(made)].operands) look(o);
  return block && !thread;
}

}  // namespace

std::optional<ChainLink> address_mover(const ptx::Module& module, int32_t function, int32_t store,
                                       const SourceText& source) {
  const ptx::Function& f = module.functions[static_cast<size_t>(function)];
  const SourceRange own = source.statement_around(location_of(module, function, store));
  for (const int32_t at : Behind(f).address(store)) {
    const Operation is = f.body[static_cast<size_t>(at)].form.operation;
    const bool moves = is == Operation::add || is == Operation::sub || is == Operation::mad;
    if (at < store || !moves || !share_loop(f, store, at)) continue;
    ChainLink link = link_of(module, function, at, source);
    if (link.where.line > 0 && may_move(link.text) && !own.holds(link.where)) return link;
  }
  return std::nullopt;
}

std::vector<ChainLink> makers_above(const ptx::Module& module, int32_t function, int32_t store,
                                    const SourceText& source) {
  const ptx::Function& f = module.functions[static_cast<size_t>(function)];
  const SourceLocation where = location_of(module, function, store);
  std::map<std::tuple<bool, int, std::string>, ChainLink> nearest;  ///< those seen from without first
  for (const int32_t at : Behind(f).address(store)) {
    if (!computes(f.body[static_cast<size_t>(at)])) continue;
    ChainLink link = link_of(module, function, at, source);
    const auto add = [&](bool within, const SourceLocation& made, const SourceLocation& of) {
      if (made.file != of.file || made.line <= 0 || source.statement_around(of).first <= made.line) return;
      link.where = made, link.text = source.line(made);
      nearest.emplace(std::tuple(within, of.line - made.line, made.file), link);
    };
    const SourceLocation seen = link.where;
    add(false, seen, where);
    for (const SourceLocation& made : {seen, innermost(seen)})
      for (const SourceLocation& of : {where, innermost(where)}) add(true, made, of);
  }
  std::vector<ChainLink> makers;
  for (auto& [distance, link] : nearest) makers.push_back(std::move(link));
  return makers;
}

std::optional<ChainLink> block_divider(const ptx::Module& module, int32_t function, int32_t store,
                                       const SourceText& source) {
  const ptx::Function& f = module.functions[static_cast<size_t>(function)];
  const Behind behind(f);
  for (const int32_t at : behind.address(store)) {
    const ptx::Instruction& in = f.body[static_cast<size_t>(at)];
    const bool divides = in.form.operation == Operation::div || in.form.operation == Operation::rem;
    if (!divides || in.operands.size() < 3 || in.operands[2].reg < 0) continue;
    if (!is_of_block(f, behind, in.operands[1])) continue;
    const SourceRange own = source.statement_around(innermost(location_of(module, function, at)));
    for (const int32_t made : behind.makers(in.operands[2].reg)) {
      ChainLink link = link_of(module, function, made, source);
      link.where = innermost(link.where), link.text = source.line(link.where);
      if (link.where.line > 0 && !own.holds(link.where)) return link;
    }
  }
  return std::nullopt;
}

std::vector<int32_t> stores_through(const ptx::Module& module, int32_t function, int32_t parameter,
                                    int64_t offset) {
  const ptx::Function& f = module.functions[static_cast<size_t>(function)];
  const Behind behind(f);
  const auto loads = [&](int32_t at) {
    const ptx::Instruction& in = f.body[static_cast<size_t>(at)];
    return in.form.operation == Operation::ld &&
           std::any_of(in.operands.begin(), in.operands.end(),
                       [&](const ptx::Operand& o) { return o.parameter == parameter && o.offset == offset; });
  };
  std::vector<int32_t> stores;
  for (size_t i = 0; i < f.body.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    if (!writes_global(f.body[i])) continue;
    const std::vector<int32_t> made = behind.address(at);
    if (std::any_of(made.begin(), made.end(), loads)) stores.push_back(at);
  }
  return stores;
}

}  // namespace assay
