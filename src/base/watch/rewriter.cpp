#include "src/base/watch/rewriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "src/base/vm/signature.h"
#include "src/base/watch/finished_wgmma.h"
#include "src/base/watch/float_type.h"
#include "src/base/watch/function_text.h"
#include "src/base/watch/insertions.h"
#include "src/base/watch/module_header.h"
#include "src/base/watch/registers_directive.h"
#include "src/base/watch/rehearsal_text.h"
#include "src/base/watch/repeatable.h"
#include "src/base/watch/scaling.h"
#include "src/base/watch/segment.h"

namespace assay::watch {
namespace {

using Kind = WatchedInstruction::Kind;

/// Of kernels whose notes are mostly taken aside, hardly anything that runs is spilled for so many blocks.
constexpr double kBlocksOfRehearsed = 0.6;
/// What tests keep in text that is run only where the rehearsal found something: few of them are compiled in
/// half the time, and what is spilled for them is spilled there.
constexpr int kKeptAside = 64;

class FunctionRewriter {
 public:
  FunctionRewriter(FunctionText text, const ptx::Module& module, int32_t function,
                   const WatchOptions& options, WatchedText& made, int32_t first_site, bool marks_cold)
      : text_(std::move(text)),
        f_(module.functions[static_cast<size_t>(function)]),
        number_(function),
        options_(options),
        made_(made),
        first_site_(first_site),
        marks_cold_(marks_cold),
        kept_(options.kept_registers),
        ranges_(f_),
        segment_(f_, registers_, accumulators_, marks_cold) {}

  void run(Insertions& insertions) {
    find_blocks();
    find_uses();
    for (const ptx::Instruction& in : f_.body) {
      watched_.push_back(watched(in, ranges_));
      const WatchedInstruction& what = watched_.back();
      if (what.kind == Kind::sums || (what.kind == Kind::product && what.in_place)) accumulators_.add(what);
    }
    find_rehearsal();
    if (marks_cold_) kept_ = kept_registers(f_, text_.directives(), options_, rehearsal_.has_value());
    const auto count = static_cast<int32_t>(f_.body.size());
    for (int32_t i = 0; i < count;) {
      if (starts_[static_cast<size_t>(i)] && i > 0) end_segment(i - 1, false, insertions);
      enter(i, insertions);
      const int64_t added = made_.counts.added;
      const bool aside = rehearsal_ && rehearsal_->holds[static_cast<size_t>(i)];
      if (const std::optional<Scaling> products = scaling(i)) {
        scale(i, *products, insertions);
        i = products->end;
      } else if (const int32_t end = end_of_stretch(i); end > i) {
        stretch(i, end, insertions);
        i = end;
      } else {
        instruction(i++, insertions);
      }
      if (aside) aside_.instructions += made_.counts.added - added, made_.counts.added = added;
    }
    end_segment(count - 1, false, insertions);
    for (const Multiplication& left : in_flight_) made_.unwatched.push_back(left.instruction->opcode);
    if (aside_.text.empty() && registers_.declarations().empty()) return;
    Code begin;
    accumulators_.begin(begin);
    std::string declarations = registers_.declarations() + accumulators_.declarations();
    if (rehearsal_) {
      const RehearsalText again = rehearsal_text();
      const Code code = again.rehearsal();
      again.begin(begin);
      declarations += again.declarations();
      aside_.text += code.text, made_.counts.added += code.instructions;
    }
    WatchOptions registers = options_;
    if (rehearsal_) registers.kept_blocks = std::max(registers.kept_blocks, kBlocksOfRehearsed);
    if (marks_cold_) insertions.add(text_.opening(), registers_directive(f_, text_.directives(), registers));
    insertions.add(text_.opening() + 1, "\n" + declarations + descriptor_declarations() + begin.text);
    made_.counts.added += begin.instructions;
    if (!aside_.text.empty()) insertions.add(text_.closing(), "\tret;\n" + aside_.text);
    made_.counts.added_aside += aside_.instructions;
  }

 private:
  /// Where branches lead. Most labels of compilers stand for line tables alone, one per inlined call.
  void find_blocks() {
    starts_.assign(f_.body.size() + 1, false);
    for (const ptx::Instruction& in : f_.body)
      for (const ptx::Operand& operand : in.operands) mark_targets(operand);
  }
  void mark_targets(const ptx::Operand& operand) {
    if (operand.kind == ptx::Operand::Kind::label && operand.target >= 0)
      starts_[static_cast<size_t>(operand.target)] = true;
    for (const ptx::Operand& element : operand.elements) mark_targets(element);
  }

  void find_uses() {
    last_use_.assign(f_.registers.size(), -1);
    scoped_.assign(f_.registers.size(), true);
    for (size_t i = 0; i < f_.body.size(); ++i) {
      signatures_.push_back(vm::signature_of(f_.body[i]));
      for (const auto* list : {&signatures_[i].reads, &signatures_[i].writes})
        for (const int32_t reg : *list) {
          last_use_[static_cast<size_t>(reg)] = static_cast<int32_t>(i);
          if (text_.depth(i) == 1) scoped_[static_cast<size_t>(reg)] = false;
        }
    }
  }

  /// The part that runs once without notes; the rewritten one is entered at its end.
  void find_rehearsal() {
    for (size_t i = 0; i < f_.body.size(); ++i) depth_.push_back(text_.depth(i));
    rehearsal_ = rehearsal_of(view_);
    if (!rehearsal_) return;
    int watched = 0;
    for (size_t i = 0; i < f_.body.size(); ++i) {
      const Kind kind = watched_[i].kind;
      watched +=
          rehearsal_->holds[i] && (kind == Kind::scalar || kind == Kind::product || kind == Kind::sums);
    }
    const bool told = watched >= options_.least_rehearsed &&
                      rehearsal_tests(view_, *rehearsal_, watched_, starts_, rehearsal_tests_);
    if (!told) return rehearsal_.reset();
    for (const int32_t gate : rehearsal_->gates) starts_[static_cast<size_t>(gate) + 1] = true;
    for (const int32_t leave : rehearsal_->leaves) starts_[static_cast<size_t>(leave)] = true;
  }
  RehearsalText rehearsal_text() const {
    return {text_, view_, *rehearsal_, rehearsal_tests_, number_, marks_cold_};
  }

  /// Before an instruction: where the rehearsal comes in, and whether the text from here on runs seldom.
  void enter(int32_t number, Insertions& insertions) {
    if (!rehearsal_) return;
    const auto i = static_cast<size_t>(number);
    const auto is_among = [&](const std::vector<int32_t>& all, int32_t which) {
      return std::find(all.begin(), all.end(), which) != all.end();
    };
    int32_t from = -1;
    if (is_among(rehearsal_->leaves, number)) from = number;
    if (is_among(rehearsal_->gates, number - 1)) from = number - 1;
    segment_.set_aside(rehearsal_->holds[i]);
    std::string text;
    if (from >= 0) text = rehearsal_text().label_of(from) + ":\n";
    if (marks_cold_ && starts_[i])
      text += fmt::format("\t.pragma \"frequency {}\";\n", rehearsal_->holds[i] ? 1 : 1'000'000);
    insertions.add(text_.at(i).begin, text);
  }

  /// Segments end where the run may go elsewhere, and before what leaves registers to asynchronous work.
  bool ends_segment(size_t i) const {
    const vm::TextSignature& s = signatures_[i];
    const bool stays = s.control == vm::Control::none || s.control == vm::Control::barrier;
    return !stays || (s.meaning && s.meaning->asynchronous.completion == vm::Completion::wgmma_group);
  }

  void instruction(int32_t number, Insertions& insertions) {
    const auto i = static_cast<size_t>(number);
    const ptx::Instruction& in = f_.body[i];
    const WatchedInstruction& what = watched_[i];
    ++made_.counts.instructions;
    if (what.kind == Kind::refused) made_.unwatched.push_back(in.opcode);
    if (ends_segment(i) || (what.in_place ? segment_.holds(what) : segment_.adds_to(signatures_[i].writes)))
      end_segment(number, true, insertions);
    const bool watches = what.kind == Kind::scalar || what.kind == Kind::product;
    Code before, after;
    if (what.in_place) accumulators_.emit(before);
    const std::vector<int32_t> states = what.in_place ? std::vector<int32_t>{} : states_of(i, before);
    if (watches || !segment_.empty()) segment_.before(in, what, scoped_, signatures_[i].writes, before);
    if (what.kind == Kind::sums) issue(in, what, before);
    insertions.add(text_.at(i).begin, before.text);
    if (watches) {
      segment_.after(in, what, scoped_, next_site(), after);
      note_site(number, what);
    } else {
      for (const int32_t reg : states) segment_.take_state(reg, after);
    }
    insertions.add(text_.at(i).end, after.text.empty() ? "" : "\n" + after.text);
    made_.counts.added += before.instructions + after.instructions;
    if (in.form.operation == ptx::Operation::wgmma_wait_group) waited(number, in, insertions);
    const int most = rehearsal_ && rehearsal_->holds[i] ? std::max(kept_, kKeptAside) : kept_;
    if (segment_.full() || segment_.kept(number, last_use_) > most) end_segment(number, false, insertions);
  }

  /// Products by few factors from here on, which are tested before they run.
  std::optional<Scaling> scaling(int32_t from) const {
    if (rehearsal_ && rehearsal_->holds[static_cast<size_t>(from)]) return std::nullopt;
    return scaling_from(f_, watched_, from, starts_, depth_, scoped_);
  }
  void scale(int32_t from, const Scaling& products, Insertions& insertions) {
    if (from > 0) end_segment(from - 1, false, insertions);
    const std::string name = fmt::format("$assay_{}_{}", number_, segments_++);
    Code test;
    const std::string any = segment_.vote(test_of_scaling(products, f_, registers_, test), test);
    test.line(fmt::format("@{} bra.uni {}_born", any, name));
    std::vector<int32_t> sums;  // that are finite if they are not tested again
    for (int32_t i = from; i < products.end; ++i)
      for (const int32_t reg : signatures_[static_cast<size_t>(i)].writes)
        if (accumulators_.holds(reg)) sums.push_back(reg);
    accumulators_.forget(sums, "", test);
    accumulators_.emit(test);
    registers_.free_all();
    made_.counts.added += test.instructions;
    insertions.add(text_.at(static_cast<size_t>(from)).begin, test.text);
    go_through_again(from, products.end, name);
    insertions.add(text_.at(static_cast<size_t>(products.end - 1)).end,
                   "\n" + name + "_back:\n" + (marks_cold_ ? "\t.pragma \"frequency 1000000\";\n" : ""));
  }

  /// Of a stretch from here that can run again: its results are tested at its end, and where one is not
  /// finite the code aside goes through it once more, with segments and their tests. So what it computes on
  /// the way need not be kept; what it begins with is, and results that no later one tells of. Without one:
  /// `from`.
  int32_t end_of_stretch(int32_t from) {
    const bool runs_seldom = rehearsal_ && rehearsal_->holds[static_cast<size_t>(from)];
    if (text_.depth(static_cast<size_t>(from)) > 1 || runs_seldom) return from;
    AddedRegisters unused;
    Segment trial(f_, unused, accumulators_, marks_cold_);
    RepeatableStretch stretch;
    int32_t end = from;
    int watched = 0;
    for (auto i = static_cast<size_t>(from); i < f_.body.size(); ++i) {
      const ptx::Instruction& in = f_.body[i];
      const WatchedInstruction& what = watched_[i];
      const auto number = static_cast<int32_t>(i);
      const std::vector<int32_t>& writes = signatures_[i].writes;
      const bool adds =
          what.in_place || what.kind == Kind::sums ||
          std::any_of(writes.begin(), writes.end(), [&](int32_t r) { return accumulators_.holds(r); });
      if ((number > from && starts_[i]) || adds || !stretch.take(in, signatures_[i])) break;
      Code ignored;
      trial.before(in, what, scoped_, writes, ignored);
      if (what.kind == Kind::scalar || what.kind == Kind::product)
        trial.after(in, what, scoped_, 0, ignored), ++watched;
      if (text_.depth(i) > 1) continue;
      const std::set<int32_t>& begins = stretch.begins_with();
      const auto dead = std::count_if(begins.begin(), begins.end(), [&](int32_t reg) {
        return last_use_[static_cast<size_t>(reg)] <= number;
      });
      const int kept = trial.kept_results(number, last_use_) + static_cast<int>(dead);
      if (kept > 4 * kept_) break;
      if (watched >= options_.least_repeated && kept <= kept_) end = number + 1;
    }
    return end;
  }

  void stretch(int32_t from, int32_t to, Insertions& insertions) {
    if (from > 0) end_segment(from - 1, false, insertions);
    Segment results(f_, registers_, accumulators_, marks_cold_);
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i) {
      const WatchedInstruction& what = watched_[i];
      Code before, after;
      results.before(f_.body[i], what, scoped_, signatures_[i].writes, before);
      if (what.kind == Kind::scalar || what.kind == Kind::product)
        results.after(f_.body[i], what, scoped_, 0, after);
      if (f_.body[i].form.operation == ptx::Operation::ldmatrix) results.needs_whole_warp();
      insertions.add(text_.at(i).begin, before.text);
      insertions.add(text_.at(i).end, after.text.empty() ? "" : "\n" + after.text);
      made_.counts.added += before.instructions + after.instructions;
    }
    const std::string name = fmt::format("$assay_{}_{}", number_, segments_++);
    Code test;
    results.branch(name, test);
    made_.counts.added += test.instructions;
    insertions.add(text_.at(static_cast<size_t>(to - 1)).end, "\n" + test.text);
    go_through_again(from, to, name);
  }

  /// The same instructions aside, watched segment by segment.
  void go_through_again(int32_t from, int32_t to, const std::string& name) {
    const int64_t added = made_.counts.added, instructions = made_.counts.instructions;
    Insertions again;
    segment_.set_aside(true);
    for (int32_t i = from; i < to; ++i) instruction(i, again);
    end_segment(to - 1, false, again);
    segment_.set_aside(false);
    const size_t begin = text_.at(static_cast<size_t>(from)).begin,
                 end = text_.at(static_cast<size_t>(to - 1)).end;
    text_.leave_out_names(begin, end, again);
    aside_.label(name + "_born");
    if (marks_cold_) aside_.text += "\t.pragma \"frequency 1\";\n";
    aside_.text += "\t" + again.into(text_.whole(), begin, end) + "\n";
    aside_.line("bra.uni " + name + "_back");
    aside_.instructions += made_.counts.added - added + to - from;
    made_.counts.added = added, made_.counts.instructions = instructions + to - from;
  }
  /// Registers that products add to and that the instruction writes something else to. Those that it leaves
  /// finite for certain are not among them.
  std::vector<int32_t> states_of(size_t i, Code& code) {
    const ptx::Instruction& in = f_.body[i];
    std::vector<int32_t> states;
    for (const int32_t reg : signatures_[i].writes)
      if (accumulators_.holds(reg)) states.push_back(reg);
    if (states.empty()) return states;
    std::string guard;
    if (in.predicate >= 0)
      guard = fmt::format("@{}{} ", in.predicate_negated ? "!" : "",
                          f_.registers[static_cast<size_t>(in.predicate)].name);
    accumulators_.forget(states, guard, code);
    const bool literal = in.form.operation == ptx::Operation::mov && in.operands.size() == 2 &&
                         in.operands[1].kind == ptx::Operand::Kind::immediate;
    if (literal && std::isfinite(value_of(accumulators_.type(states[0]),
                                          literal_bits(in.operands[1], accumulators_.type(states[0])))))
      states.clear();
    return states;
  }

  /// A wgmma: where it does not add to what was there, that counts for nothing; descriptors are kept until
  /// its sums are tested.
  void issue(const ptx::Instruction& in, const WatchedInstruction& what, Code& code) {
    Multiplication made{&in, what, "", ""};
    const ptx::Operand& adds = in.operands[3];
    std::vector<int32_t> registers;
    for (const FloatOperand& result : what.results)
      if (result.operand->kind == ptx::Operand::Kind::reg) registers.push_back(result.operand->reg);
    if (adds.kind == ptx::Operand::Kind::reg) {
      accumulators_.forget(
          registers,
          fmt::format("@{}{} ", adds.negated ? "" : "!", f_.registers[static_cast<size_t>(adds.reg)].name),
          code);
    } else if (adds.bits == 0) {
      accumulators_.forget(registers, "", code);
      accumulators_.emit(code);
    }
    if (in_flight_.empty()) issued_ = 0;
    const size_t number = issued_++;
    most_in_flight_ = std::max(most_in_flight_, number + 1);
    const auto keep = [&](const char* prefix, const ptx::Operand& descriptor) {
      const std::string name = fmt::format("{}{}", prefix, number);
      code.line(fmt::format("mov.b64 {}, {}", name, f_.registers[static_cast<size_t>(descriptor.reg)].name));
      return name;
    };
    if (in.operands[1].kind == ptx::Operand::Kind::reg) made.a = keep("%assay_a", in.operands[1]);
    made.b = keep("%assay_b", in.operands[2]);
    in_flight_.push_back(std::move(made));
  }
  std::string descriptor_declarations() const {
    return most_in_flight_ ? fmt::format("\t.reg .b64 %assay_a<{0}>, %assay_b<{0}>;\n", most_in_flight_) : "";
  }

  /// Behind a wait for all wgmma, or for those that it surely ends.
  void waited(int32_t number, const ptx::Instruction& in, Insertions& insertions) {
    if (in.operands.empty() || in.operands[0].kind != ptx::Operand::Kind::immediate) return;
    std::vector<Multiplication> ended;
    if (in.operands[0].bits == 0) {
      ended.swap(in_flight_);
    } else {
      const std::vector<int32_t>& finished = finished_[number];
      const auto stays = [&](const Multiplication& wgmma) {
        const auto at = static_cast<int32_t>(wgmma.instruction - f_.body.data());
        return std::find(finished.begin(), finished.end(), at) == finished.end();
      };
      const auto first = std::stable_partition(in_flight_.begin(), in_flight_.end(), stays);
      ended.assign(std::make_move_iterator(first), std::make_move_iterator(in_flight_.end()));
      in_flight_.erase(first, in_flight_.end());
      if (ended.empty()) return;
    }
    take_sums(std::move(ended), number, insertions);
  }

  /// Those with the same sums are one site, the last of them.
  void take_sums(std::vector<Multiplication> ended, int32_t number, Insertions& insertions) {
    std::map<int32_t, std::vector<Multiplication>> groups;
    for (Multiplication& wgmma : ended)
      groups[wgmma.watched.results[0].operand->reg].push_back(std::move(wgmma));
    for (auto& [reg, group] : groups) {
      Code code;
      const auto last = static_cast<int32_t>(group.back().instruction - f_.body.data());
      const WatchedInstruction what = group.back().watched;
      segment_.take_sums(std::move(group), next_site(), code);
      note_site(last, what);
    }
    end_segment(number, false, insertions);
  }

  int32_t next_site() const { return first_site_ + static_cast<int32_t>(made_.sites.size()); }

  void note_site(int32_t number, const WatchedInstruction& what) {
    WatchedSite site{number_, number};
    site.product = what.kind != Kind::scalar;
    site.result = what.results[0].type;
    for (size_t k = 0; k < what.sources.size() && !site.product; ++k) {
      site.sources.push_back(what.sources[k].type);
      site.positions.push_back(static_cast<uint8_t>(what.sources[k].operand -
                                                    f_.body[static_cast<size_t>(number)].operands.data()));
    }
    made_.sites.push_back(std::move(site));
    ++made_.counts.watched;
  }

  /// Before instruction `number`, or behind it.
  void end_segment(int32_t number, bool before, Insertions& insertions) {
    const auto i = static_cast<size_t>(number);
    Code test;
    if (segment_.empty()) {
      segment_.forget();
      accumulators_.emit(test);
    } else {
      segment_.finish(fmt::format("$assay_{}_{}", number_, segments_++), text_.depth(i) > 1, test, aside_);
    }
    if (test.text.empty()) return;
    made_.counts.added += test.instructions;
    insertions.add(before ? text_.at(i).begin : text_.at(i).end, (before ? "" : "\n") + test.text);
  }

  const FunctionText text_;
  const ptx::Function& f_;
  const int32_t number_;
  const WatchOptions& options_;
  WatchedText& made_;
  const int32_t first_site_;
  const bool marks_cold_;
  int kept_;  ///< registers
  const ValueRanges ranges_;
  AddedRegisters registers_;
  Accumulators accumulators_;
  Segment segment_;
  int segments_ = 0;
  std::vector<WatchedInstruction> watched_;
  std::vector<Multiplication> in_flight_;   ///< issued, and not waited for, in the order of the text
  size_t issued_ = 0, most_in_flight_ = 0;  ///< since none was in flight
  std::map<int32_t, std::vector<int32_t>> finished_ = finished_wgmma(f_);
  Code aside_;
  std::vector<int> depth_;
  const FunctionView view_{f_, signatures_, depth_};
  std::optional<Rehearsal> rehearsal_;
  std::vector<RehearsalTest> rehearsal_tests_;
  std::vector<bool> starts_;       ///< a branch leads there
  std::vector<int32_t> last_use_;  ///< by register, in the order of the text
  std::vector<bool> scoped_;       ///< by register: named in inner scopes alone
  std::vector<vm::TextSignature> signatures_;
};

}  // namespace

WatchedText rewritten(std::string_view text, const ptx::Module& module, const WatchOptions& options,
                      int32_t first_site) {
  WatchedText made;
  if (is_older(module)) {
    made.ptx = text;
    made.unwatched.push_back(fmt::format("{}: PTX {} for {}; the watch needs 6.3 and sm_70", module.path,
                                         module.version, module.target));
    return made;
  }
  Insertions insertions;
  std::vector<size_t> lines{0};
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') lines.push_back(i + 1);
  insertions.add(behind_header(text), fmt::format("\n.visible .global .align 8 .u64 {} = {};\n",
                                                  kBufferVariable, options.buffer_address));
  size_t from = 0;
  const bool marks_cold = options.marks_cold_code && is_at_least(module, 7);
  for (size_t f = 0; f < module.functions.size(); ++f) {
    const ptx::Function& function = module.functions[f];
    if (function.body.empty()) continue;
    FunctionText place(text, function, lines, from);
    from = place.at(function.body.size() - 1).end;
    FunctionRewriter(std::move(place), module, static_cast<int32_t>(f), options, made, first_site, marks_cold)
        .run(insertions);
  }
  made.ptx = insertions.into(text, 0, text.size());
  if (marks_cold) made.ptx = raised(std::move(made.ptx), module);
  return made;
}

}  // namespace assay::watch
