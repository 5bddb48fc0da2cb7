#include "src/verification/diagnosis/line_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "src/base/mutation/mutation.h"
#include "src/base/vm/code.h"
#include "src/base/vm/opcode.h"
#include "src/verification/diagnosis/guarding_ops.h"
#include "src/verification/diagnosis/processor_time.h"

namespace assay {
namespace {

using vm::Flow;
using vm::Instead;
using vm::Op;
using vm::OpChange;
using Changes = std::map<size_t, std::vector<OpChange>>;

/// The less a change says the sooner it is tried, and named.
enum Simplicity { kChoice, kBound, kTerm, kStep, kRegister };
/// How much later it is tried.
constexpr double kLater[] = {0, 0.05, 0.25, 0.5, 0.75};
constexpr double kAfterDecisions = 1;
/// Registers that are tried in the place of one.
constexpr size_t kOthers = 32;
/// What mends less is no repair.
constexpr double kMends = 0.7;
constexpr double kOfSameLine = 0.03;
constexpr size_t kLongestPath = 1000;
constexpr double kAfterWhole = 1;  // seconds
constexpr double kLeastWeight = 0.1;

struct Candidate {
  Changes changes;
  size_t launch = 0, op = 0;  ///< the first
  OpChange change;
  int simplicity = kChoice;
  double suspicion = 0;
  std::string line;
  double turn = 0;  ///< what is tried first: a plainer change may be less suspect
};

bool is_predicate(const vm::Use& use) {
  return use.cell == vm::Cell::mask;
}
bool is_float(const vm::Use& use) {
  return ptx::is_float(use.type);
}

/// Ways to change one op, without other registers.
std::vector<std::pair<OpChange, int>> ways_of(const vm::Code& code, const Op& op,
                                              const vm::ChangedRuns::Executed& executed, bool floats,
                                              bool only_guards) {
  std::vector<std::pair<OpChange, int>> ways;
  const size_t at = code.index(op);
  const vm::Signature& signature = code.signature(op);
  const auto add = [&](OpChange::Of of, size_t source, std::initializer_list<Instead> all, int simplicity) {
    for (const Instead instead : all) ways.push_back({{of, at, source, instead, vm::no_slot}, simplicity});
  };
  using Of = OpChange::Of;
  if (op.guarded) {
    if (executed.held[at]) add(Of::guard, 0, {Instead::zero}, kChoice);
    if (executed.failed[at]) add(Of::guard, 0, {Instead::one}, kChoice);
    if (executed.held[at] && executed.failed[at]) add(Of::guard, 0, {Instead::negated}, kChoice);
  }
  if (!executed.times[at]) return ways;
  const Flow flow = signature.flow();
  const bool chooses = flow == Flow::comparison || flow == Flow::logic;
  if (chooses && !only_guards && !signature.writes.empty() && is_predicate(signature.writes[0]))
    add(Of::result, 0, {Instead::zero, Instead::one, Instead::negated}, kChoice);
  for (size_t i = 0; i < signature.reads.size(); ++i) {
    const vm::Use& use = signature.reads[i];
    if (use.slot == vm::no_slot || use.purpose == vm::Purpose::guard) continue;
    if (use.purpose == vm::Purpose::address) {
      add(Of::source, i, {Instead::next, Instead::previous}, kStep);
    } else if (is_predicate(use)) {
      if (!only_guards) add(Of::source, i, {Instead::zero, Instead::one, Instead::negated}, kChoice);
    } else if (flow == Flow::arithmetic && is_float(use)) {
      if (floats) add(Of::source, i, {Instead::zero, Instead::one, Instead::negated}, kTerm);
    } else if (flow == Flow::comparison) {
      // One more on one side is one less on the other. Of what is wrong of bounds one is the likeliest.
      if (is_float(use)) continue;
      add(Of::source, i, {Instead::zero}, kStep);
      if (i + 1 == signature.reads.size() || is_predicate(signature.reads[i + 1]) ||
          signature.reads[i + 1].slot == vm::no_slot)
        add(Of::source, i, {Instead::next, Instead::previous}, kBound);
    } else if (flow == Flow::integer || flow == Flow::shift || flow == Flow::logic) {
      if (!is_float(use)) add(Of::source, i, {Instead::zero, Instead::next, Instead::previous}, kStep);
    } else if (flow == Flow::copy && use.cell == vm::Cell::word) {
      if (floats) add(Of::source, i, {Instead::zero}, kTerm);
      if (!is_float(use)) add(Of::source, i, {Instead::next, Instead::previous}, kStep);
    }
  }
  if (flow != Flow::load || signature.writes.empty()) return ways;
  const vm::Use& loaded = signature.writes[0];
  const bool sizes = op.space == ptx::Space::param && !is_float(loaded);
  if (sizes) add(Of::result, 0, {Instead::next, Instead::previous}, kStep);
  if (!sizes && floats) add(Of::result, 0, {Instead::zero}, kTerm);
  return ways;
}

/// Registers by the ops that write and read them, of those that ran.
struct Lifetime {
  size_t first_write = SIZE_MAX, last_write = 0, last_read = 0;
  vm::Cell cell = vm::Cell::none;
  bool real = false;
};

std::map<vm::Slot, Lifetime> lifetimes(const vm::Code& code, const vm::ChangedRuns::Executed& executed) {
  std::map<vm::Slot, Lifetime> all;
  for (const vm::RegisterPlace& place : code.registers) {
    const ptx::Register& reg =
        code.module->functions[static_cast<size_t>(place.function)].registers[static_cast<size_t>(place.reg)];
    Lifetime& made = all[place.slot];
    made.cell = vm::cell_of(reg.type), made.real = ptx::is_float(reg.type);
  }
  for (size_t i = 0; i < code.ops.size(); ++i) {
    if (!executed.times[i]) continue;
    for (const vm::Use& use : code.signatures[i].writes)
      if (const auto known = all.find(use.slot); known != all.end())
        known->second.first_write = std::min(known->second.first_write, i), known->second.last_write = i;
    for (const vm::Use& use : code.signatures[i].reads)
      if (const auto known = all.find(use.slot); known != all.end()) known->second.last_read = i;
  }
  return all;
}

std::vector<vm::Slot> others_for(const std::map<vm::Slot, Lifetime>& all, const vm::Use& use, size_t at) {
  const auto own = all.find(use.slot);
  const bool real = own == all.end() ? is_float(use) : own->second.real;
  std::vector<std::pair<size_t, vm::Slot>> near;
  for (const auto& [slot, life] : all)
    if (slot != use.slot && life.cell == use.cell && life.real == real && life.first_write < at &&
        life.last_read >= at)
      near.emplace_back(life.last_write < at ? at - life.last_write : life.last_write - at, slot);
  std::sort(near.begin(), near.end());
  if (near.size() > kOthers) near.resize(kOthers);
  std::vector<vm::Slot> slots;
  for (const auto& [distance, slot] : near) slots.push_back(slot);
  return slots;
}

std::string register_name(const vm::Code& code, vm::Slot slot) {
  for (const vm::RegisterPlace& place : code.registers)
    if (place.slot == slot)
      return code.module->functions[static_cast<size_t>(place.function)]
          .registers[static_cast<size_t>(place.reg)]
          .name;
  return "a literal";
}

std::string text_of(const vm::Code& code, const Op& op) {
  const ptx::Instruction* in = instruction_of(code, op);
  return in ? fmt::format("{} (PTX line {})", in->opcode, in->ptx_line) : "";
}

std::string words(Instead instead, bool predicate) {
  switch (instead) {
    case Instead::zero:
      return predicate ? "never true" : "taken for 0";
    case Instead::one:
      return predicate ? "always true" : "taken for 1";
    case Instead::negated:
      return predicate ? "inverted" : "negated";
    case Instead::next:
      return "one more";
    case Instead::previous:
      return "one less";
    case Instead::another:
      return "another";
  }
  return "";
}

std::string sentence_of(const vm::Code& code, const Candidate& c) {
  const Op& op = code.ops[c.op];
  const vm::Signature& signature = code.signature(op);
  const std::string in = text_of(code, op);
  if (c.change.of == OpChange::Of::guard)
    return fmt::format("the guard {} of {} {}", register_name(code, op.guard), in,
                       words(c.change.instead, true));
  if (c.change.of == OpChange::Of::result) {
    const vm::Use& use = signature.writes[0];
    return fmt::format("{} of {} {}", register_name(code, use.slot), in,
                       words(c.change.instead, is_predicate(use)));
  }
  const vm::Use& use = signature.reads[c.change.source];
  if (c.change.instead == Instead::another)
    return fmt::format("{} for {} in {}", register_name(code, c.change.by), register_name(code, use.slot),
                       in);
  return fmt::format("{} {} in {}", register_name(code, use.slot), words(c.change.instead, is_predicate(use)),
                     in);
}

/// Candidates of one code, the simplest first; a code has its share of the time, the more suspect the more.
struct Queue {
  size_t launch = SIZE_MAX;  ///< of the code, after whose candidates its registers are tried; none: several
  std::vector<Candidate> open;
  size_t next = 0;
  size_t ops_left = 0;  ///< whose registers are still to be tried, the last of the list first
  std::vector<size_t> by_suspicion;
  double seconds = 0, weight = 1;
};

class Search {
 public:
  Search(vm::ChangedRuns& runs, const SourceText& source, const RepairSearch& search)
      : runs_(runs), source_(source), search_(search), start_(processor_seconds()) {}

  std::vector<Repair> find() {
    for (size_t launch = 0; launch < runs_.launches(); ++launch)
      if (!runs_.executed(launch).times.empty()) gather(launch);
    add_common();
    for (Queue& queue : queues_) {
      take_turns(queue.open);
      double sum = 0;
      for (const Candidate& c : queue.open) sum += c.suspicion;
      queue.weight = kLeastWeight + sum / std::max<double>(1, static_cast<double>(queue.open.size()));
    }
    while (!is_over()) {
      Queue* least = nullptr;
      for (Queue& queue : queues_)
        if (has_more(queue) && (!least || queue.seconds / queue.weight < least->seconds / least->weight))
          least = &queue;
      if (!least) break;
      const double before = seconds();
      if (least->next < least->open.size()) attempt(least->open[least->next++]);
      least->seconds += seconds() - before;
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Repair& a, const Repair& b) {
      return std::tuple(a.left, a.simplicity) < std::tuple(b.left, b.simplicity);
    });
    return std::move(found_);
  }

 private:
  using Key = std::tuple<std::string, std::string, int, size_t, int>;

  double seconds() const { return processor_seconds() - start_; }
  /// Once something makes all right, what is about as plain is found in the time that it took.
  bool is_over() const {
    const double most = std::max(search_.seconds, search_.decision_seconds);
    return seconds() > (first_whole_ < 0 ? most : std::min(most, 2 * first_whole_ + kAfterWhole));
  }
  /// Adds the next op's registers where nothing else is left. What no time is left for is none.
  bool has_more(Queue& queue) {
    while (queue.next == queue.open.size() && queue.ops_left > 0) {
      queue.open.clear(), queue.next = 0;
      add_registers(queue.launch, queue.by_suspicion[--queue.ops_left], queue);
    }
    if (queue.next == queue.open.size()) return false;
    return queue.open[queue.next].simplicity <= kBound || seconds() <= search_.seconds;
  }

  /// Lines take turns, the more suspect ones more often.
  void take_turns(std::vector<Candidate>& open) const {
    const auto by_turn = [](const Candidate& a, const Candidate& b) { return a.turn < b.turn; };
    for (Candidate& c : open) {
      c.turn = kLater[c.simplicity] + 1 - c.suspicion;
      if (search_.decision_seconds > 0 && c.simplicity > kBound) c.turn += kAfterDecisions;
    }
    std::stable_sort(open.begin(), open.end(), by_turn);
    std::map<std::string, int> of_line;
    for (Candidate& c : open) c.turn += kOfSameLine * of_line[c.line]++;
    std::stable_sort(open.begin(), open.end(), by_turn);
  }

  /// By op. What only decides (integers, predicates, guards) is as suspect as what it decides, on average.
  std::vector<double> suspicions(const vm::Code& code, const vm::ChangedRuns::Executed& executed) const {
    const size_t count = code.ops.size();
    std::vector<double> known(count, -1);
    std::map<vm::Slot, std::vector<size_t>> readers;
    for (size_t at = 0; at < count; ++at) {
      const Op& op = code.ops[at];
      if (op.function < 0 || op.instruction < 0) continue;
      const double own = search_.suspicion(code.module.get(), op.function, op.instruction);
      if (own > 0) known[at] = own;
      for (const vm::Use& use : code.signatures[at].reads) readers[use.slot].push_back(at);
    }
    for (int pass = 0; pass < 3; ++pass)
      for (size_t at = count; at-- > 0;) {
        if (known[at] >= 0 && pass == 0) continue;
        const Op& op = code.ops[at];
        double sum = 0, weight = 0;
        const auto add = [&](size_t other) {
          if (known[other] < 0 || !(executed.times[other] || code.ops[other].guarded)) return;
          sum += known[other], ++weight;
        };
        if (code.signature(op).control == vm::Control::branch && op.guarded &&
            op.target > static_cast<int32_t>(at))
          for (size_t i = at + 1; i < count && static_cast<int32_t>(i) < op.target; ++i) add(i);
        for (const vm::Use& use : code.signatures[at].writes)
          if (const auto found = readers.find(use.slot); found != readers.end())
            for (const size_t reader : found->second) add(reader);
        const Flow flow = code.signatures[at].flow();
        const bool decides = flow == Flow::integer || flow == Flow::comparison || flow == Flow::logic ||
                             flow == Flow::shift || flow == Flow::none || flow == Flow::conversion;
        if (weight > 0 && (known[at] < 0 || decides))
          known[at] = std::max(pass == 0 ? -1 : known[at], sum / weight);
      }
    for (double& x : known) x = std::max(x, 0.0);
    return known;
  }

  /// Copies of an instruction on one line, through one chain of calls, change together.
  void gather(size_t launch) {
    const vm::Code& code = runs_.code(launch);
    const vm::ChangedRuns::Executed& executed = runs_.executed(launch);
    std::map<Key, size_t> of_key;
    Queue& queue = queues_.emplace_back();
    queue.launch = launch, queue.ops_left = code.ops.size();
    const std::vector<double> suspicion = suspicions(code, executed);
    const std::set<size_t> merely = merely_guarding(code);
    for (size_t at = 0; at < code.ops.size(); ++at) queue.by_suspicion.push_back(at);
    std::stable_sort(queue.by_suspicion.begin(), queue.by_suspicion.end(),
                     [&](size_t a, size_t b) { return suspicion[a] < suspicion[b]; });
    for (size_t at = code.ops.size(); at-- > 0;) {
      const Op& op = code.ops[at];
      if (op.function < 0 || op.instruction < 0 || (!executed.times[at] && !op.guarded)) continue;
      const SourceLocation where = location_of(*code.module, op.function, op.instruction);
      const bool floats = search_.may_compute_wrong(where);
      const std::string line =
          fmt::format("{}:{}", where.file, where.line > 0 ? where.line : -where.ptx_line);
      std::string chain = line;
      for (const std::string& frame : where.frames) chain += " " + frame;
      for (const auto& [change, simplicity] : ways_of(code, op, executed, floats, merely.contains(at))) {
        const Key key{chain, instruction_of(code, op)->opcode, static_cast<int>(change.of), change.source,
                      static_cast<int>(change.instead)};
        const auto [known, is_new] = of_key.try_emplace(key, queue.open.size());
        if (is_new) queue.open.push_back({{}, launch, at, change, simplicity, suspicion[at], line});
        queue.open[known->second].changes[launch].push_back(change);
        Key common = key;
        std::get<0>(common) = line;
        Candidate& everywhere =
            common_.try_emplace(common, Candidate{{}, launch, at, change, simplicity, suspicion[at], line})
                .first->second;
        everywhere.changes[launch].push_back(change);
        chains_[common].insert(fmt::format("{} {}", launch, chain));
      }
      if (executed.times[at]) add_readers(code, launch, at, line, chain, suspicion, of_key, queue);
    }
  }
  void add_registers(size_t launch, size_t at, Queue& queue) {
    const vm::Code& code = runs_.code(launch);
    const Op& op = code.ops[at];
    if (!runs_.executed(launch).times[at] || op.function < 0 || op.instruction < 0) return;
    if (!lifetimes_.contains(launch)) lifetimes_[launch] = lifetimes(code, runs_.executed(launch));
    const std::map<vm::Slot, Lifetime>& all = lifetimes_[launch];
    const vm::Signature& signature = code.signature(op);
    const bool floats = search_.may_compute_wrong(location_of(*code.module, op.function, op.instruction));
    for (size_t i = 0; i < signature.reads.size() && i < 4; ++i) {
      const vm::Use& use = signature.reads[i];
      if (use.slot == vm::no_slot || use.purpose == vm::Purpose::guard || use.cell == vm::Cell::none)
        continue;
      if (is_float(use) && !floats) continue;
      for (const vm::Slot by : others_for(all, use, at)) {
        const OpChange change{OpChange::Of::source, at, i, Instead::another, by};
        queue.open.push_back({{{launch, {change}}}, launch, at, change, kRegister, 0, ""});
      }
    }
  }
  /// All that a line reads of one integer register, a loop's bound that is tested in several ways.
  void add_readers(const vm::Code& code, size_t launch, size_t at, const std::string& line,
                   const std::string& chain, const std::vector<double>& suspicion,
                   std::map<Key, size_t>& of_key, Queue& queue) {
    const vm::Signature& signature = code.signatures[at];
    const Flow flow = signature.flow();
    if (flow != Flow::integer && flow != Flow::comparison && flow != Flow::shift &&
        flow != Flow::conversion && flow != Flow::logic)
      return;
    for (size_t i = 0; i < signature.reads.size(); ++i) {
      const vm::Use& use = signature.reads[i];
      if (use.slot == vm::no_slot || use.purpose != vm::Purpose::value || is_float(use) || is_predicate(use))
        continue;
      for (const Instead instead : {Instead::zero, Instead::next, Instead::previous}) {
        const OpChange change{OpChange::Of::source, at, i, instead, vm::no_slot};
        const Key key{chain, "all", static_cast<int>(OpChange::Of::source), use.slot,
                      static_cast<int>(instead)};
        const auto [known, is_new] = of_key.try_emplace(key, queue.open.size());
        if (is_new) queue.open.push_back({{}, launch, at, change, kStep, suspicion[at], line});
        queue.open[known->second].changes[launch].push_back(change);
      }
    }
  }
  /// Of lines that several codes, or several calls, have: all of them together.
  void add_common() {
    Queue& queue = queues_.emplace_back();
    for (auto& [key, candidate] : common_)
      if (chains_[key].size() > 1) queue.open.push_back(std::move(candidate));
    common_.clear(), chains_.clear();
  }

  void attempt(const Candidate& c) {
    const auto outputs = runs_.run(c.changes);
    if (!outputs) return;
    const RepairVerdict verdict = search_.judge(*outputs);
    if (!verdict.harmless || (!verdict.whole && verdict.left > kMends)) return;
    const vm::Code& code = runs_.code(c.launch);
    const Op& op = code.ops[c.op];
    Repair repair{link_of(*code.module, op.function, op.instruction, source_), sentence_of(code, c),
                  c.simplicity, verdict.whole ? 0 : std::max(verdict.left, 1e-6)};
    if (c.change.of == OpChange::Of::guard && code.signature(op).control == vm::Control::branch)
      add_decided(code, op, repair);
    if (code.signature(op).flow() == Flow::comparison) add_branch(code, op, repair);
    if (c.change.of == OpChange::Of::source && c.simplicity <= kTerm)
      add_maker(code, op, c.change.source, repair);
    const bool of_compiler = repair.at.where.line == 0 && !repair.at.where.file.empty();
    if (verdict.whole && first_whole_ < 0 && !of_compiler) first_whole_ = seconds();
    found_.push_back(std::move(repair));
  }

  /// Compilers put a comparison where its operands are made, and the branch where the condition stands.
  void add_branch(const vm::Code& code, const Op& comparison, Repair& repair) {
    const auto writes = code.signature(comparison).writes;
    if (writes.empty() || !is_predicate(writes[0])) return;
    for (size_t at = code.index(comparison) + 1; at < code.ops.size(); ++at) {
      const Op& op = code.ops[at];
      if (!op.guarded || op.guard != writes[0].slot || op.function < 0 || op.instruction < 0) continue;
      ChainLink link = link_of(*code.module, op.function, op.instruction, source_);
      const SourceLocation &a = link.where, &b = repair.at.where;
      if (a.line > 0 && (a.file != b.file || a.line != b.line)) repair.branch = std::move(link);
      return;
    }
  }

  /// What is wrong of a term or of a condition may be what made it: the last op before that writes it and
  /// does more than move it. Arguments are right.
  void add_maker(const vm::Code& code, const Op& user, size_t source, Repair& repair) {
    vm::Slot slot = code.signature(user).reads[source].slot;
    for (size_t at = code.index(user); at-- > 0;) {
      const auto writes = code.signatures[at].writes;
      if (std::none_of(writes.begin(), writes.end(), [&](const vm::Use& use) { return use.slot == slot; }))
        continue;
      const Op& op = code.ops[at];
      const auto reads = code.signatures[at].reads;
      if (code.signatures[at].flow() == Flow::copy && reads.size() == 1 && reads[0].slot != vm::no_slot) {
        slot = reads[0].slot;
        continue;
      }
      if (op.function < 0 || op.instruction < 0 || op.space == ptx::Space::param) return;
      ChainLink link = link_of(*code.module, op.function, op.instruction, source_);
      const SourceLocation &a = link.where, &b = repair.at.where;
      if (a.line > 0 && (a.file != b.file || a.line != b.line)) repair.maker = std::move(link);
      return;
    }
  }

  /// Ops from `at` on that run before the op `until`.
  static std::set<size_t> path(const vm::Code& code, int32_t at, int32_t until) {
    std::set<size_t> seen;
    std::vector<int32_t> open{at};
    while (!open.empty() && seen.size() < kLongestPath) {
      const int32_t next = open.back();
      open.pop_back();
      if (next < 0 || next == until || static_cast<size_t>(next) >= code.ops.size()) continue;
      if (!seen.insert(static_cast<size_t>(next)).second) continue;
      const Op& op = code.ops[static_cast<size_t>(next)];
      const vm::Control control = code.signature(op).control;
      if (control == vm::Control::branch) open.push_back(op.target);
      const bool leaves =
          control == vm::Control::branch || control == vm::Control::exit || control == vm::Control::ret;
      if (!leaves || op.guarded) open.push_back(next + 1);
    }
    return seen;
  }
  /// The line of which one of the branch's ways computes most more than the other.
  void add_decided(const vm::Code& code, const Op& branch, Repair& repair) {
    struct Computed {
      size_t first = SIZE_MAX;
      int balance = 0;  ///< ops of the one way less those of the other
    };
    std::map<std::pair<std::string, int>, Computed> lines;
    const auto add = [&](int32_t from, int sign) {
      for (const size_t at : path(code, from, branch.reconverge)) {
        const Op& op = code.ops[at];
        const Flow flow = code.signature(op).flow();
        if (op.function < 0 || op.instruction < 0) continue;
        if (flow != Flow::arithmetic && flow != Flow::select && flow != Flow::store) continue;
        const SourceLocation where = location_of(*code.module, op.function, op.instruction);
        if (where.line == 0 || !search_.may_compute_wrong(where)) continue;
        Computed& line = lines[{where.file, where.line}];
        line.first = std::min(line.first, at), line.balance += sign;
      }
    };
    add(static_cast<int32_t>(code.index(branch)) + 1, 1);
    add(branch.target, -1);
    const Computed* most = nullptr;
    for (const auto& [line, computed] : lines) {
      const auto order = [](const Computed& c) { return std::pair(-std::abs(c.balance), c.first); };
      if (!most || order(computed) < order(*most)) most = &computed;
    }
    if (!most) return;
    const Op& op = code.ops[most->first];
    repair.decides = link_of(*code.module, op.function, op.instruction, source_);
  }

  vm::ChangedRuns& runs_;
  const SourceText& source_;
  const RepairSearch& search_;
  const double start_;
  std::vector<Queue> queues_;
  std::map<size_t, std::map<vm::Slot, Lifetime>> lifetimes_;
  std::map<Key, Candidate> common_;
  std::map<Key, std::set<std::string>> chains_;
  std::vector<Repair> found_;
  double first_whole_ = -1;  ///< when it was found
};

}  // namespace

std::vector<Repair> find_repairs(vm::ChangedRuns& runs, const SourceText& source,
                                 const RepairSearch& search) {
  return Search(runs, source, search).find();
}

}  // namespace assay
