#include "src/base/watch/rewriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "src/base/vm/signature.h"
#include "src/base/watch/finished_wgmma.h"
#include "src/base/watch/float_type.h"
#include "src/base/watch/insertions.h"
#include "src/base/watch/repeatable.h"
#include "src/base/watch/segment.h"
#include "src/base/watch/text_characters.h"

namespace assay::watch {
namespace {

using Kind = WatchedInstruction::Kind;

struct Extent {
  size_t begin = 0, end = 0;  ///< the ';' included
};

class FunctionRewriter {
 public:
  FunctionRewriter(std::string_view text, const ptx::Module& module, int32_t function,
                   std::vector<Extent> extents, size_t from, const WatchOptions& options, WatchedText& made,
                   int32_t first_site, bool marks_cold)
      : text_(text),
        f_(module.functions[static_cast<size_t>(function)]),
        number_(function),
        extents_(std::move(extents)),
        from_(from),
        options_(options),
        made_(made),
        first_site_(first_site),
        marks_cold_(marks_cold),
        ranges_(f_),
        segment_(f_, registers_, accumulators_, marks_cold) {}

  void run(Insertions& insertions) {
    find_scopes();
    find_blocks();
    find_uses();
    for (const ptx::Instruction& in : f_.body) {
      watched_.push_back(watched(in, ranges_));
      const WatchedInstruction& what = watched_.back();
      if (what.kind == Kind::sums || (what.kind == Kind::product && what.in_place)) accumulators_.add(what);
    }
    const auto count = static_cast<int32_t>(f_.body.size());
    for (int32_t i = 0; i < count;) {
      if (starts_[static_cast<size_t>(i)] && i > 0) end_segment(i - 1, false, insertions);
      if (const int32_t end = end_of_stretch(i); end > i) {
        stretch(i, end, insertions);
        i = end;
      } else {
        instruction(i++, insertions);
      }
    }
    end_segment(count - 1, false, insertions);
    for (const Multiplication& left : in_flight_) made_.unwatched.push_back(left.instruction->opcode);
    if (aside_.text.empty() && registers_.declarations().empty()) return;
    Code begin;
    accumulators_.begin(begin);
    if (marks_cold_ && may_ask_for_registers()) insertions.add(opening_, registers_directive());
    insertions.add(opening_ + 1, "\n" + registers_.declarations() + accumulators_.declarations() +
                                     descriptor_declarations() + begin.text);
    made_.counts.added += begin.instructions;
    if (!aside_.text.empty()) insertions.add(closing_, "\tret;\n" + aside_.text);
    made_.counts.added_aside += aside_.instructions;
  }

 private:
  /// How deep in braces each instruction stands, and where the function's own braces are.
  void find_scopes() {
    depth_.assign(f_.body.size(), 1);
    // The name of an entry or function is followed by its parameters, or by its body.
    size_t at = text_.rfind(f_.name, extents_[0].begin);
    while (at != text_.npos && at >= from_ && !is_header(at))
      at = at == 0 ? text_.npos : text_.rfind(f_.name, at - 1);
    header_ = at;
    each_character(text_, at, extents_[0].begin,
                   [&](size_t i, char c) { return c == '{' ? opening_ = i, false : true; });
    int depth = 0;
    size_t behind = opening_;
    for (size_t i = 0; i <= extents_.size(); ++i) {
      const size_t end = i < extents_.size() ? extents_[i].begin : text_.size();
      each_character(text_, behind, end, [&](size_t position, char c) {
        depth += c == '{' ? 1 : c == '}' ? -1 : 0;
        if (depth == 0 && c == '}') return closing_ = position, false;
        return true;
      });
      if (i == extents_.size()) break;
      depth_[i] = depth;
      behind = extents_[i].end;
    }
  }
  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
  }
  /// Whether the function's name at `at` is that of its definition.
  bool is_header(size_t at) const {
    const char before = at ? text_[at - 1] : ' ', after = text_[at + f_.name.size()];
    return !is_name(before) && before != '.' && !is_name(after);
  }

  /// Without a number of blocks per multiprocessor ptxas gives very long entries 32 registers and spills the
  /// rest; one block is what it may count on anyway.
  bool may_ask_for_registers() const {
    const std::string_view directives = text_.substr(header_, opening_ - header_);
    const auto names = [&](const char* directive) { return directives.find(directive) != directives.npos; };
    return (names(".reqntid") || names(".maxntid")) && !names(".minnctapersm") && !names(".maxnreg");
  }

  /// PTX ISA, "Performance-Tuning Directives"; a multiprocessor of sm_70 to sm_100 has 65536 registers, which
  /// threads are given by eights, and holds 32 blocks and 2048 threads at most.
  std::string registers_directive() const {
    constexpr int kRegisters = 65536, kMost = 255;
    const std::array<int32_t, 3>& block = f_.required_block;
    const int threads = block[0] > 0 ? block[0] * block[1] * block[2] : f_.max_threads;
    if (threads <= 0 || options_.own_registers <= 0) return ".minnctapersm 1\n";
    const int own = (options_.own_registers + 7) / 8 * 8,
              blocks = std::min({kRegisters / (threads * own), 2048 / threads, 32});
    const int kept = std::max(1, static_cast<int>(std::ceil(options_.kept_blocks * blocks)));
    const int most = kRegisters / (threads * kept) / 8 * 8;
    return most > kMost ? ".minnctapersm 1\n" : fmt::format(".maxnreg {}\n", most);
  }

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
          if (depth_[i] == 1) scoped_[static_cast<size_t>(reg)] = false;
        }
    }
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
    insertions.add(extents_[i].begin, before.text);
    if (watches) {
      segment_.after(in, what, scoped_, next_site(), after);
      note_site(number, what);
    } else {
      for (const int32_t reg : states) segment_.take_state(reg, after);
    }
    insertions.add(extents_[i].end, after.text.empty() ? "" : "\n" + after.text);
    made_.counts.added += before.instructions + after.instructions;
    if (in.form.operation == ptx::Operation::wgmma_wait_group) waited(number, in, insertions);
    if (segment_.full() || segment_.kept(number, last_use_) > options_.kept_registers)
      end_segment(number, false, insertions);
  }

  /// Of a stretch from here that can run again: its results are tested at its end, and where one is not
  /// finite the code aside goes through it once more, with segments and their tests. So what it computes on
  /// the way need not be kept; what it begins with is, and results that no later one tells of. Without one:
  /// `from`.
  int32_t end_of_stretch(int32_t from) {
    if (depth_[static_cast<size_t>(from)] > 1) return from;
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
      if (depth_[i] > 1) continue;
      const std::set<int32_t>& begins = stretch.begins_with();
      const auto dead = std::count_if(begins.begin(), begins.end(), [&](int32_t reg) {
        return last_use_[static_cast<size_t>(reg)] <= number;
      });
      const int kept = trial.kept_results(number, last_use_) + static_cast<int>(dead);
      if (kept > 4 * options_.kept_registers) break;
      if (watched >= options_.least_repeated && kept <= options_.kept_registers) end = number + 1;
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
      insertions.add(extents_[i].begin, before.text);
      insertions.add(extents_[i].end, after.text.empty() ? "" : "\n" + after.text);
      made_.counts.added += before.instructions + after.instructions;
    }
    const std::string name = fmt::format("$assay_{}_{}", number_, segments_++);
    Code test;
    results.branch(name, test);
    made_.counts.added += test.instructions;
    insertions.add(extents_[static_cast<size_t>(to - 1)].end, "\n" + test.text);
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
    const size_t begin = extents_[static_cast<size_t>(from)].begin,
                 end = extents_[static_cast<size_t>(to - 1)].end;
    leave_out_names(begin, end, again);
    aside_.label(name + "_born");
    aside_.text += "\t" + again.into(text_, begin, end) + "\n";
    aside_.line("bra.uni " + name + "_back");
    aside_.instructions += made_.counts.added - added + to - from;
    made_.counts.added = added, made_.counts.instructions = instructions + to - from;
  }
  /// Labels, to which no branch leads, and registers of the function's scope stay where they were.
  void leave_out_names(size_t begin, size_t end, Insertions& insertions) const {
    int depth = 0;
    each_character(text_, begin, end, [&](size_t i, char c) {
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      const char before = text_[i - 1];
      if (c == '.' && depth == 0 && !is_name(before) && text_.compare(i, 5, ".reg ") == 0)
        insertions.leave_out(i, text_.find(';', i) + 1);
      if (c != ':' || before == ':' || text_[i + 1] == ':') return true;
      size_t name = i;
      while (name > begin && is_name(text_[name - 1])) --name;
      insertions.leave_out(name, i + 1);
      return true;
    });
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
      segment_.finish(fmt::format("$assay_{}_{}", number_, segments_++), depth_[i] > 1, test, aside_);
    }
    if (test.text.empty()) return;
    made_.counts.added += test.instructions;
    insertions.add(before ? extents_[i].begin : extents_[i].end, (before ? "" : "\n") + test.text);
  }

  std::string_view text_;
  const ptx::Function& f_;
  const int32_t number_;
  const std::vector<Extent> extents_;
  const size_t from_;  ///< where the function's header may begin
  const WatchOptions& options_;
  WatchedText& made_;
  const int32_t first_site_;
  const bool marks_cold_;
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
  size_t header_ = 0, opening_ = 0, closing_ = 0;  ///< of the name, and the body's braces
  std::vector<int> depth_;                         ///< by instruction; 1: the function's own scope
  std::vector<bool> starts_;                       ///< a branch leads there
  std::vector<int32_t> last_use_;                  ///< by register, in the order of the text
  std::vector<bool> scoped_;                       ///< by register: named in inner scopes alone
  std::vector<vm::TextSignature> signatures_;
};

/// Behind the directives that a module begins with.
size_t behind_header(std::string_view text) {
  size_t found = 0;
  each_character(text, 0, text.size(), [&](size_t i, char c) {
    for (const std::string_view word : {".version", ".target", ".address_size"})
      if (c == '.' && text.substr(i, word.size()) == word) found = std::min(text.find('\n', i), text.size());
    return c != '{' && c != '(';
  });
  return found;
}

bool is_at_least(const ptx::Module& module, double version) {
  return std::atof(module.version.c_str()) >= version;
}

/// Than activemask, and than lanes that run apart.
bool is_older(const ptx::Module& module) {
  const size_t digits = module.target.find_first_of("0123456789");
  const int architecture = digits == module.target.npos ? 0 : std::atoi(module.target.c_str() + digits);
  return architecture < 70 || !is_at_least(module, 6.3);
}

/// The text, of PTX 9.0 where it was of an earlier one.
std::string raised(std::string text, const ptx::Module& module) {
  if (is_at_least(module, 9)) return text;
  size_t at = text.npos;
  each_character(text, 0, text.size(), [&](size_t i, char c) {
    if (c == '.' && text.compare(i, 8, ".version") == 0) at = text.find(module.version, i);
    return at == text.npos;
  });
  return at == text.npos ? text : text.replace(at, module.version.size(), "9.0");
}

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
    std::vector<Extent> extents;
    for (const ptx::Instruction& in : function.body) {
      const size_t begin =
          lines[static_cast<size_t>(in.ptx_line - 1)] + static_cast<size_t>(in.ptx_column - 1);
      extents.push_back({begin, text.find(';', begin) + 1});
    }
    const size_t last = extents.back().end;
    FunctionRewriter(text, module, static_cast<int32_t>(f), std::move(extents), from, options, made,
                     first_site, marks_cold)
        .run(insertions);
    from = last;
  }
  made.ptx = insertions.into(text, 0, text.size());
  if (marks_cold) made.ptx = raised(std::move(made.ptx), module);
  return made;
}

}  // namespace assay::watch
