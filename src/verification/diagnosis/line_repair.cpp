#include "src/verification/diagnosis/line_repair.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "src/base/mutation/mutation.h"
#include "src/base/numerics/counted_work.h"
#include "src/base/vm/code.h"
#include "src/base/vm/opcode.h"
#include "src/verification/diagnosis/called_bodies.h"
#include "src/verification/diagnosis/guarding_ops.h"
#include "src/verification/diagnosis/repair_places.h"
#include "src/verification/diagnosis/repair_ways.h"

namespace assay {
namespace {

using vm::Flow;
using vm::Instead;
using vm::Op;
using vm::OpChange;
using Changes = std::map<size_t, std::vector<OpChange>>;

/// How much later it is tried.
constexpr double kLater[] = {0, 0.05, 0.25, 0.5, 0.75};
/// Of decisions alone: most slips of a condition are in its bound, which stands in a comparison.
constexpr double kChoiceLater = 0.1, kCountLater = 0.02;
/// What mends less is no repair.
constexpr double kMends = 0.7;
constexpr double kOfSameLine = 0.03;
constexpr double kAfterWhole = 1;  // seconds
constexpr double kLeastWeight = 0.1;

struct Candidate {
  Changes changes;
  size_t launch = 0, op = 0;  ///< the first
  OpChange change;
  int simplicity = kChoice;
  double suspicion = 0;
  int line = -1;    ///< Standing::line
  double turn = 0;  ///< what is tried first: a plainer change may be less suspect
};

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
      : runs_(runs), source_(source), search_(search), start_(counted_seconds()) {
    if (search.left) watched_ = runs.watch(search.wrong);
  }

  std::vector<Repair> find() {
    if (search_.decision_seconds > 0) {
      gather(Part::decisions);
      attempt_all(search_.decision_seconds);
    }
    if (search_.seconds > 0 && !is_over(HUGE_VAL)) {
      gather(search_.decision_seconds > 0 ? Part::others : Part::all);
      attempt_all(search_.seconds);
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Repair& a, const Repair& b) {
      return std::tuple(a.left, a.simplicity) < std::tuple(b.left, b.simplicity);
    });
    return std::move(found_);
  }

 private:
  /// Chain or line, opcode or -1, what is changed.
  using Key = std::tuple<int, int, int, size_t, int>;
  /// An instruction's, in numbers: texts are compared once.
  struct Place {
    int line = -1, chain = -1, opcode = -1;  ///< chain: of calls that were inlined
    CalledBodies::Where own;                 ///< without the line that a person would point at
    bool floats = false;                     ///< they may be wrong
    SourceLocation where;
  };

  double seconds() const { return counted_seconds() - start_; }
  /// Candidates that are gathered and tried before the others.
  enum class Part { decisions, others, all };
  void gather(Part part) {
    part_ = part;
    queues_.clear(), common_.clear(), chains_.clear();
    for (size_t launch = 0; launch < runs_.launches(); ++launch)
      if (!runs_.executed(launch).times.empty()) gather(launch);
    add_common();
    for (Queue& queue : queues_) {
      take_turns(queue.open);
      double sum = 0;
      for (const Candidate& c : queue.open) sum += c.suspicion;
      queue.weight = kLeastWeight + sum / std::max<double>(1, static_cast<double>(queue.open.size()));
    }
  }
  bool is_wanted(int simplicity) const {
    return part_ == Part::all || (simplicity <= kBound) == (part_ == Part::decisions);
  }
  /// Once something makes all right, what is about as plain is found in the time that it took.
  bool is_over(double until) const {
    return seconds() > (first_whole_ < 0 ? until : std::min(until, 2 * first_whole_ + kAfterWhole));
  }
  void attempt_all(double for_seconds) {
    for (const double until = seconds() + for_seconds; !is_over(until);) {
      Queue* first = nullptr;
      for (Queue& queue : queues_)
        if (has_more(queue) && (!first || comes_before(queue, *first))) first = &queue;
      if (!first) break;
      const double before = seconds();
      attempt(first->open[first->next++]);
      first->seconds += seconds() - before;
    }
  }
  /// Decisions that have time of their own are tried in one order, whichever code they are of; all else in
  /// turn by time.
  bool comes_before(const Queue& a, const Queue& b) const {
    if (part_ == Part::decisions) return a.open[a.next].turn < b.open[b.next].turn;
    return a.seconds / a.weight < b.seconds / b.weight;
  }
  /// Adds the next op's registers where nothing else is left.
  bool has_more(Queue& queue) {
    while (queue.next == queue.open.size() && queue.ops_left > 0) {
      queue.open.clear(), queue.next = 0;
      add_registers(queue.launch, queue.by_suspicion[--queue.ops_left], queue);
    }
    return queue.next < queue.open.size();
  }

  /// Lines take turns, the more suspect ones more often.
  void take_turns(std::vector<Candidate>& open) const {
    const auto by_turn = [](const Candidate& a, const Candidate& b) { return a.turn < b.turn; };
    for (Candidate& c : open) {
      c.turn = kLater[c.simplicity] + 1 - c.suspicion;
      if (part_ == Part::decisions && c.simplicity == kChoice) c.turn += kChoiceLater;
      if (c.simplicity == kBound && runs_.code(c.launch).signatures[c.op].flow() != Flow::comparison)
        c.turn += kCountLater;
    }
    std::stable_sort(open.begin(), open.end(), by_turn);
    std::map<int, int> of_line;
    for (Candidate& c : open) c.turn += kOfSameLine * of_line[c.line]++;
    std::stable_sort(open.begin(), open.end(), by_turn);
  }

  /// By op. What only decides (integers, predicates, guards) is as suspect as what it decides, on average, or
  /// as its place.
  std::vector<double> suspicions(const vm::Code& code, const vm::ChangedRuns::Executed& executed) const {
    const size_t count = code.ops.size();
    std::vector<double> known(count, -1);
    std::unordered_map<vm::Slot, std::vector<size_t>> readers;
    std::map<std::pair<int32_t, int32_t>, double> of_instruction;
    for (size_t at = 0; at < count; ++at) {
      const Op& op = code.ops[at];
      if (op.function < 0 || op.instruction < 0) continue;
      const auto [own, is_new] = of_instruction.try_emplace({op.function, op.instruction});
      if (is_new) own->second = search_.suspicion(code.module.get(), op.function, op.instruction);
      if (own->second > 0) known[at] = own->second;
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
        if (weight > 0 && (known[at] < 0 || decides)) known[at] = std::max(known[at], sum / weight);
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
    queue.launch = launch, queue.ops_left = part_ == Part::decisions ? 0 : code.ops.size();
    const auto known = suspicion_.find(launch);
    const std::vector<double>& suspicion =
        known != suspicion_.end() ? known->second : suspicion_[launch] = suspicions(code, executed);
    const std::set<size_t> merely = merely_guarding(code);
    const std::map<size_t, bool> loops = loop_conditions(code);
    const std::set<size_t> counts = counting(code);
    std::set<int> heads;
    for (const auto& [at, ends] : loops)
      if (const Place& place = place_of(code, code.ops[at]); place.where.line > 0) heads.insert(place.line);
    for (size_t at = 0; at < code.ops.size(); ++at) queue.by_suspicion.push_back(at);
    std::stable_sort(queue.by_suspicion.begin(), queue.by_suspicion.end(),
                     [&](size_t a, size_t b) { return suspicion[a] < suspicion[b]; });
    for (size_t at = code.ops.size(); at-- > 0;) {
      const Op& op = code.ops[at];
      if (op.function < 0 || op.instruction < 0 || (!executed.times[at] && !op.guarded)) continue;
      const Place& place = place_of(code, op);
      const auto loop = loops.find(at);
      const Standing standing{merely.contains(at), loop != loops.end() && !loop->second,
                              loop != loops.end() && loop->second,
                              heads.contains(place.line) && counts.contains(at)};
      for (const auto& [change, simplicity] : ways_of(code, op, executed, place.floats, standing)) {
        if (!is_wanted(simplicity)) continue;
        const Key key{place.chain, place.opcode, static_cast<int>(change.of), change.source,
                      static_cast<int>(change.instead)};
        const auto [known, is_new] = of_key.try_emplace(key, queue.open.size());
        if (is_new) queue.open.push_back({{}, launch, at, change, simplicity, suspicion[at], place.line});
        queue.open[known->second].changes[launch].push_back(change);
        Key common = key;
        std::get<0>(common) = place.line;
        Candidate& everywhere =
            common_
                .try_emplace(common, Candidate{{}, launch, at, change, simplicity, suspicion[at], place.line})
                .first->second;
        everywhere.changes[launch].push_back(change);
        chains_[common].insert({launch, place.chain});
      }
      if (part_ == Part::decisions && code.signatures[at].flow() == Flow::comparison)
        add_registers(launch, at, queue);
      if (executed.times[at] && is_wanted(kStep))
        add_readers(code, launch, at, place, suspicion, of_key, queue);
    }
  }
  const Place& place_of(const vm::Code& code, const Op& op) {
    const auto [known, is_new] = places_.try_emplace({code.module.get(), op.function, op.instruction});
    Place& place = known->second;
    if (!is_new) return place;
    const auto number_of = [&](const std::string& text) {
      return texts_.try_emplace(text, static_cast<int>(texts_.size())).first->second;
    };
    const SourceLocation where =
        locations_.try_emplace(code.module.get(), *code.module).first->second.of(op.function, op.instruction);
    const std::string line = fmt::format("{}:{}", where.file, where.line > 0 ? where.line : -where.ptx_line);
    place = {number_of(line),
             number_of(fmt::format("{} {}", line, fmt::join(where.frames, " "))),
             number_of(instruction_of(code, op)->opcode),
             {},
             search_.may_compute_wrong(where),
             where};
    if (where.frames.size() > 1) {  // the first is the instruction's own line
      const std::vector<std::string> calls(where.frames.begin() + 1, where.frames.end());
      place.own = {number_of(where.frames.front()), number_of(fmt::format("in {}", fmt::join(calls, " ")))};
    }
    return place;
  }
  void add_registers(size_t launch, size_t at, Queue& queue) {
    const vm::Code& code = runs_.code(launch);
    const Op& op = code.ops[at];
    if (!runs_.executed(launch).times[at] || op.function < 0 || op.instruction < 0) return;
    if (!lifetimes_.contains(launch)) lifetimes_[launch] = lifetimes(code, runs_.executed(launch));
    const std::map<vm::Slot, Lifetime>& all = lifetimes_[launch];
    const vm::Signature& signature = code.signature(op);
    const bool floats = place_of(code, op).floats;
    const std::vector<CalledBodies::Site>* const calls = bodies().alike({launch, at});
    if (!calls && part_ == Part::decisions) return;
    if (calls && !called_.insert(calls).second) return;  // of another call
    for (size_t i = 0; i < signature.reads.size() && i < 4; ++i) {
      const vm::Use& use = signature.reads[i];
      if (use.slot == vm::no_slot || use.purpose == vm::Purpose::guard || use.cell == vm::Cell::none)
        continue;
      if (is_float(use) && !floats) continue;
      if (calls) {
        add_registers_of_calls(launch, at, i, *calls, queue);
        continue;
      }
      for (const vm::Slot by : others_for(all, use, at)) {
        const OpChange change{OpChange::Of::source, at, i, Instead::another, by};
        queue.open.push_back({{{launch, {change}}}, launch, at, change, kRegister, 0, -1});
      }
    }
  }
  /// In all calls of the function at once.
  void add_registers_of_calls(size_t launch, size_t at, size_t source,
                              const std::vector<CalledBodies::Site>& calls, Queue& queue) {
    const std::map<vm::Slot, Lifetime>& all = lifetimes_[launch];
    const vm::Use& use = runs_.code(launch).signatures[at].reads[source];
    const auto own = all.find(use.slot);
    const bool real = own == all.end() ? is_float(use) : own->second.real;
    for (const vm::Slot by : bodies().own_registers({launch, at})) {
      const auto life = all.find(by);
      if (by == use.slot || life == all.end() || life->second.cell != use.cell || life->second.real != real)
        continue;
      const OpChange change{OpChange::Of::source, at, source, Instead::another, by};
      Candidate c{{},
                  launch,
                  at,
                  change,
                  kRegister,
                  suspicion_[launch][at],
                  place_of(runs_.code(launch), runs_.code(launch).ops[at]).line};
      for (const CalledBodies::Site& call : calls)
        if (const vm::Slot there = bodies().in_call({launch, at}, by, call); there != vm::no_slot)
          c.changes[call.launch].push_back({OpChange::Of::source, call.op, source, Instead::another, there});
      queue.open.push_back(std::move(c));
    }
  }
  /// Of all launches that run, made where they are first asked for.
  const CalledBodies& bodies() {
    if (bodies_) return *bodies_;
    bodies_.emplace();
    for (size_t launch = 0; launch < runs_.launches(); ++launch) {
      if (runs_.executed(launch).times.empty()) continue;
      const vm::Code& code = runs_.code(launch);
      std::vector<CalledBodies::Where> where;
      for (const Op& op : code.ops)
        where.push_back(op.function < 0 || op.instruction < 0 ? CalledBodies::Where()
                                                              : place_of(code, op).own);
      bodies_->add(launch, code, where);
    }
    return *bodies_;
  }
  /// All that a line reads of one integer register, a loop's bound that is tested in several ways.
  void add_readers(const vm::Code& code, size_t launch, size_t at, const Place& place,
                   const std::vector<double>& suspicion, std::map<Key, size_t>& of_key, Queue& queue) {
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
        const Key key{place.chain, -1, static_cast<int>(OpChange::Of::source), use.slot,
                      static_cast<int>(instead)};
        const auto [known, is_new] = of_key.try_emplace(key, queue.open.size());
        if (is_new) queue.open.push_back({{}, launch, at, change, kStep, suspicion[at], place.line});
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
    if (!watched_.empty()) {
      const auto some = runs_.run_watched(c.changes);
      if (!some || search_.left(*some, watched_) > kMends) return;
    }
    const auto outputs = runs_.run(c.changes);
    if (!outputs) return;
    const RepairVerdict verdict = search_.judge(*outputs);
    if (!verdict.harmless || (!verdict.whole && verdict.left > kMends)) return;
    const vm::Code& code = runs_.code(c.launch);
    const Op& op = code.ops[c.op];
    Repair repair{link_of(*code.module, op.function, op.instruction, source_), sentence_of(code, c.change),
                  c.simplicity, verdict.whole ? 0 : std::max(verdict.left, 1e-6)};
    note_places(code, c.change, c.simplicity, source_, search_.may_compute_wrong, repair);
    const bool of_compiler = repair.at.where.line == 0 && !repair.at.where.file.empty();
    if (verdict.whole && first_whole_ < 0 && !of_compiler) first_whole_ = seconds();
    found_.push_back(std::move(repair));
  }

  vm::ChangedRuns& runs_;
  const SourceText& source_;
  const RepairSearch& search_;
  const double start_;
  Part part_ = Part::all;
  std::vector<vm::OutputElement> watched_;
  std::map<size_t, std::vector<double>> suspicion_;  ///< by launch and op
  std::vector<Queue> queues_;
  std::map<size_t, std::map<vm::Slot, Lifetime>> lifetimes_;
  std::optional<CalledBodies> bodies_;
  std::set<const std::vector<CalledBodies::Site>*> called_;  ///< whose registers were tried
  std::map<Key, Candidate> common_;
  std::map<Key, std::set<std::pair<size_t, int>>> chains_;  ///< launches and chains
  std::map<const ptx::Module*, Locations> locations_;
  std::map<std::tuple<const ptx::Module*, int32_t, int32_t>, Place> places_;
  std::unordered_map<std::string, int> texts_;
  std::vector<Repair> found_;
  double first_whole_ = -1;  ///< when it was found
};

}  // namespace

std::vector<Repair> find_repairs(vm::ChangedRuns& runs, const SourceText& source,
                                 const RepairSearch& search) {
  return Search(runs, source, search).find();
}

}  // namespace assay
