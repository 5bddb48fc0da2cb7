// A stretch of a basic block whose results are tested together: what has to be kept until then, the test, and
// the code aside that tells what was born.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/watch/accumulators.h"
#include "src/base/watch/rewriter.h"
#include "src/base/watch/watched_instruction.h"

namespace assay::watch {

/// A wgmma in flight: its operands as they were when it was issued.
struct Multiplication {
  const ptx::Instruction* instruction = nullptr;
  WatchedInstruction watched;
  std::string a, b;  ///< registers with descriptors; `a` empty: fragments in the instruction's own registers
};

class Segment {
 public:
  /// `marks_cold`: the code aside is said to run seldom (WatchOptions::marks_cold_code).
  Segment(const ptx::Function& function, AddedRegisters& registers, Accumulators& accumulators,
          bool marks_cold)
      : function_(function), registers_(registers), accumulators_(accumulators), marks_cold_(marks_cold) {}

  bool empty() const { return items_.empty() && states_.empty(); }
  void forget() { values_.clear(), current_.clear(), origin_.clear(); }
  /// Of results alone, without those that a later one tells of.
  int kept_results(int32_t instruction, const std::vector<int32_t>& last_use);
  /// All lanes of a warp come to what is looked at, and do it together.
  void needs_whole_warp() { whole_warp_ = true; }
  /// It stands in code that runs seldom.
  void set_aside(bool is) { is_aside_ = is; }
  /// No further instruction can be taken.
  bool full() const { return items_.size() >= 32; }
  /// Values that the program itself does not keep as long; `last_use`: of each register, in the text.
  int kept(int32_t instruction, const std::vector<int32_t>& last_use) const;

  /// What has to stand before an instruction of the text: copies of what it overwrites, and of registers of
  /// a scope that ends before the segment does (`scoped`).
  void before(const ptx::Instruction&, const WatchedInstruction&, const std::vector<bool>& scoped,
              const std::vector<int32_t>& writes, Code&);
  /// What has to stand behind it.
  void after(const ptx::Instruction&, const WatchedInstruction&, const std::vector<bool>& scoped,
             int32_t site, Code&);

  /// Whether results of the segment lie in registers that a product adds to in place.
  bool holds(const WatchedInstruction& product) const;
  /// Whether one of its products adds in place to one of the registers: what is noted of them is needed.
  bool adds_to(const std::vector<int32_t>& registers) const;
  /// Sums of a group of wgmma that have been waited for, all in the same registers.
  void take_sums(std::vector<Multiplication> group, int32_t site, Code&);

  /// A register that products add to and that something else was written to.
  void take_state(int32_t reg, Code&);

  /// The test where the segment ends, and the code aside. `name`: of its labels. `inside`: the code aside
  /// follows the test at once, as labels of this scope are not seen from elsewhere.
  void finish(const std::string& name, bool inside, Code& test, Code& aside);
  /// The test alone: whole warps go to the label `name`_born, and come back.
  void branch(const std::string& name, Code& test);
  /// Whether any lane of those that are here has something that is not finite: a predicate of all of them.
  std::string vote(const std::string& found, Code&);

 private:
  struct Value {
    std::string name;  ///< the register that holds it now
    ptx::Type type = ptx::Type::none;
    int32_t reg = -1;      ///< of the program, as long as it holds it; -1: a copy
    bool covered = false;  ///< not finite only if another one is not
    /// The same but for -infinity, of which ex2 makes 0: that was born only where this value is finite; -1:
    /// not so.
    int first = -1;
    /// The value that ex2 takes, or that is looked at closely, not one that this one is made of.
    bool may_be_masked = false;
    bool is_told = false;  ///< ex2's result tells of all else that is not finite
    int maker = -1;        ///< into items_: lane by lane, without a guard

    bool is_tested() const { return !covered && (first < 0 || may_be_masked); }
  };
  struct Part {
    int value = -1;                                             ///< into values_; -1: a literal
    int origin = -1;                                            ///< another value that it is finite only with
    bool reaches_result = false, reaches_but_negative = false;  ///< see FloatOperand
    ptx::Type type = ptx::Type::none;
    uint64_t literal = 0;
  };
  struct Item {
    int32_t site = -1;
    const ptx::Instruction* instruction = nullptr;
    WatchedInstruction watched;
    std::vector<Part> sources, results;
    int guard = -1;                     ///< value
    std::vector<Multiplication> group;  ///< of sums
    std::string made;                   ///< of a product: the register with a result that was born
  };
  /// A result element, or what it came of, as f32 or f64.
  struct Element {
    std::string name;
    bool wide = false, finite = false;
  };

  /// What a register passes on of a value, and as which type.
  struct Origin {
    int value = -1;
    ptx::Type type = ptx::Type::none;
  };

  int read(int32_t reg, ptx::Type, bool scoped, Code&);
  Part part(const FloatOperand&, const std::vector<bool>& scoped, Code&);
  Origin origin_of(const FloatOperand&) const;
  void copy(Value&, Code&);
  void cover(bool closely = false);
  void cover_sources(const Item&);
  void let_be_masked(const Item&);
  bool is_added_to(const Value&) const;
  int first_of(int value) const;
  bool is_made_of(int value, int first, int depth = 0) const;
  Value& value(const Part& part) { return values_[static_cast<size_t>(part.value)]; }
  std::string added(AddedRegisters::Class of) { return registers_.make(of); }

  // segment_fold.cpp
  struct Folded {
    const Value* value;
    std::string guard;  ///< "@%p1 ", "@!%p1 " or nothing
  };
  std::string test(bool closely, Code&);
  void look_closely(const std::string& any, const std::string& back, Code&);
  void clear();
  void mark_frequency(int times, Code&) const;
  void fold_exponents(const std::vector<const Value*>&, const std::string& found, bool first, Code&);
  void fold_floats(const std::vector<Folded>&, const std::string& found, bool first, Code&);
  void fold_doubles(const std::vector<Folded>&, const std::string& found, bool first, Code&);
  void fold_halves(const std::vector<Folded>&, ptx::Type, const std::string& found, bool first, Code&);

  // segment_births.cpp
  std::vector<Element> elements(const Part&, Code&);
  std::vector<Element> elements(const std::string& name, ptx::Type, Code&);
  void begin_births(Code&);
  void births_of_scalar(const Item&, int number, Code&);
  void births_of_product(Item&, int number, Code&);
  std::vector<std::string> finite_factors(const Item&, bool clean, Code&);
  void nan_born(const std::string& p, const Element& made, const std::vector<Element>& of, Code&);
  void infinity_born(const std::string& p, const Element& made, const std::vector<Element>& of, Code&);
  void note_accumulator(const Part&, Code&);
  void mark(const Item&, int number, const std::string& nan, const std::string& infinity, Code&);
  std::string without_infinities(const std::string& name, vm::Element, Code&);
  void note(const std::string& name, Code&);
  void load(const Item&, Code&);
  void widen(const std::string& to, const Part&, Code&);

  // segment_sums.cpp
  /// Elements of D that are not finite and were: NaN, infinities, 64 to a word.
  struct Candidates {
    std::vector<std::string> nan, infinite;
  };
  void births_of_sums(Item&, const std::string& name, int number, Code&);
  Candidates candidates(Item&, Code&);
  void reject_word(const Multiplication&, const Candidates&, size_t word, const std::string& rows,
                   const std::string& name, Code&);
  std::string flags_of_rows(const Multiplication&, Code&);
  void place_element(const std::string& e, const std::string& row, const std::string& column, Code&);
  void find_special(const std::string& bits, vm::Element, const std::string& nan, const std::string& infinite,
                    Code&);
  std::string element_address(const std::string& descriptor, bool mn_major, vm::Element,
                              const std::string& line, const std::string& k, Code&);

  const ptx::Function& function_;
  AddedRegisters& registers_;
  Accumulators& accumulators_;
  const bool marks_cold_;
  std::vector<Value> values_;
  std::vector<Item> items_;
  std::vector<Part> states_;
  std::map<int32_t, int> current_;  ///< register -> value that it holds
  std::map<int32_t, Origin> origin_;
  Item begun_;
  bool whole_warp_ = false, is_aside_ = false;
  // Of the code aside: lanes that came there, births by item (infinities 32 bits higher), zeros.
  std::string lanes_, mask_, zero_half_, zero_word_;
  std::string kind_, operand_[3], result_;  ///< of the birth to be noted
};

}  // namespace assay::watch
