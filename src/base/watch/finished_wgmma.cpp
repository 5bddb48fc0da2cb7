#include "src/base/watch/finished_wgmma.h"

#include <algorithm>
#include <optional>
#include <set>

#include "src/base/vm/signature.h"

namespace assay::watch {
namespace {

using ptx::Operand;
using ptx::Operation;

constexpr int kMostCommits = 16;

/// wgmma -> groups that were committed since it was issued, the fewest of any way here.
using Commits = std::map<int32_t, int>;

struct InFlight {
  Commits surely;  ///< issued on every way here
  Commits perhaps;
  bool operator==(const InFlight&) const = default;
};

void join(std::optional<InFlight>& at, const InFlight& from) {
  if (!at) {
    at = from;
    return;
  }
  std::erase_if(at->surely, [&](const auto& wgmma) { return !from.surely.contains(wgmma.first); });
  for (auto& [wgmma, commits] : at->surely) commits = std::min(commits, from.surely.at(wgmma));
  for (const auto& [wgmma, commits] : from.perhaps) {
    const auto [known, is_new] = at->perhaps.try_emplace(wgmma, commits);
    known->second = std::min(known->second, commits);
  }
}

class Ways {
 public:
  explicit Ways(const ptx::Function& f) : f_(f), at_(f.body.size() + 1) {}

  std::map<int32_t, std::vector<int32_t>> run() {
    std::vector<std::optional<InFlight>> before;
    do {
      before = at_;
      pass();
    } while (before != at_);
    return finished_;
  }

 private:
  /// Once through the text; where branches lead is joined into at_.
  void pass() {
    std::optional<InFlight> now = InFlight{};
    for (size_t i = 0; i < f_.body.size(); ++i) {
      if (at_[i]) {
        if (now) join(at_[i], *now);
        now = at_[i];
      }
      if (!now) continue;
      const ptx::Instruction& in = f_.body[i];
      step(static_cast<int32_t>(i), in, *now);
      for (const Operand& operand : in.operands) branch(operand, *now);
      const vm::Control control = vm::signature_of(in).control;
      const bool stays = control == vm::Control::none || control == vm::Control::barrier ||
                         control == vm::Control::call || in.predicate >= 0;
      if (!stays) now.reset();
    }
  }
  void branch(const Operand& operand, const InFlight& now) {
    if (operand.kind == Operand::Kind::label && operand.target >= 0)
      join(at_[static_cast<size_t>(operand.target)], now);
    for (const Operand& element : operand.elements) branch(element, now);
  }

  void step(int32_t number, const ptx::Instruction& in, InFlight& now) {
    if (in.form.operation == Operation::wgmma_mma_async) {
      now.perhaps[number] = 0;
      now.surely.erase(number);
      if (in.predicate < 0) now.surely[number] = 0;
    }
    if (in.predicate >= 0) return;
    if (in.form.operation == Operation::wgmma_commit_group)
      for (Commits* const all : {&now.surely, &now.perhaps})
        for (auto& [wgmma, commits] : *all) commits = std::min(commits + 1, kMostCommits);
    if (in.form.operation == Operation::wgmma_wait_group && !in.operands.empty() &&
        in.operands[0].kind == Operand::Kind::immediate)
      wait(number, static_cast<int>(std::min<uint64_t>(in.operands[0].bits, kMostCommits)), now);
  }
  void wait(int32_t number, int left, InFlight& now) {
    const auto is_done = [&](const auto& wgmma) { return wgmma.second > left; };
    std::set<int32_t> used;  // registers of sums that may still change
    for (const auto& wgmma : now.perhaps)
      if (!is_done(wgmma))
        for (const int32_t reg : sums(wgmma.first)) used.insert(reg);
    std::vector<int32_t>& finished = finished_[number];
    finished.clear();
    for (const auto& wgmma : now.surely) {
      const std::vector<int32_t> registers = sums(wgmma.first);
      const bool shared =
          std::any_of(registers.begin(), registers.end(), [&](int32_t reg) { return used.contains(reg); });
      if (is_done(wgmma) && !shared && wgmma.first < number) finished.push_back(wgmma.first);
    }
    if (left == 0) finished_.erase(number);
    std::erase_if(now.surely, is_done);
    std::erase_if(now.perhaps, is_done);
  }
  std::vector<int32_t> sums(int32_t wgmma) const {
    std::vector<int32_t> registers;
    for (const Operand& element : f_.body[static_cast<size_t>(wgmma)].operands[0].elements)
      registers.push_back(element.reg);
    return registers;
  }

  const ptx::Function& f_;
  std::vector<std::optional<InFlight>> at_;  ///< by instruction that branches lead to
  std::map<int32_t, std::vector<int32_t>> finished_;
};

}  // namespace

std::map<int32_t, std::vector<int32_t>> finished_wgmma(const ptx::Function& f) {
  const bool waits = std::any_of(f.body.begin(), f.body.end(), [](const ptx::Instruction& in) {
    return in.form.operation == Operation::wgmma_wait_group && !in.operands.empty() &&
           in.operands[0].kind == Operand::Kind::immediate && in.operands[0].bits > 0;
  });
  return waits ? Ways(f).run() : std::map<int32_t, std::vector<int32_t>>{};
}

}  // namespace assay::watch
