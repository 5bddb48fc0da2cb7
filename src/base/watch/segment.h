// A stretch of a basic block whose results are tested together: what has to be kept until then, the test, and
// the code aside that tells what was born.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/watch/rewriter.h"
#include "src/base/watch/watched_instruction.h"

namespace assay::watch {

/// Registers that the rewriter adds to a function, by class. Those of a segment are free again after it.
class AddedRegisters {
 public:
  enum class Class : uint8_t { half, word, wide, predicate };
  std::string make(Class);
  void free_all() { used_ = {}; }
  /// ".reg .b32 %assay_r<7>;" and so on.
  std::string declarations() const;

 private:
  std::array<int, 4> used_{}, most_{};
};

/// PTX text with the number of its instructions.
struct Code {
  std::string text;
  int64_t instructions = 0;
  void line(std::string_view instruction);
  void label(std::string_view name);
};

class Segment {
 public:
  Segment(const ptx::Function& function, AddedRegisters& registers) : function_(function), registers_(registers) {}

  bool empty() const { return items_.empty(); }
  void forget() { values_.clear(), current_.clear(), origin_.clear(); }
  /// No further instruction can be taken.
  bool full() const { return items_.size() >= 32; }
  /// Values that the program itself does not keep as long; `last_use`: of each register, in the text.
  int kept(int32_t instruction, const std::vector<int32_t>& last_use) const;

  /// What has to stand before an instruction of the text: copies of what it overwrites, and of registers of
  /// a scope that ends before the segment does (`scoped`).
  void before(const ptx::Instruction&, const WatchedInstruction&, const std::vector<bool>& scoped,
              const std::vector<int32_t>& writes, Code&);
  /// What has to stand behind it.
  void after(const ptx::Instruction&, const WatchedInstruction&, const std::vector<bool>& scoped, int32_t site,
             Code&);

  /// The test where the segment ends, and the code aside. `name`: of its labels. `inside`: the code aside
  /// follows the test at once, as labels of this scope are not seen from elsewhere.
  void finish(const std::string& name, bool inside, Code& test, Code& aside);

 private:
  struct Value {
    std::string name;  ///< the register that holds it now
    ptx::Type type = ptx::Type::none;
    int32_t reg = -1;  ///< of the program, as long as it holds it; -1: a copy
    bool covered = false;  ///< not finite only if another one is not
  };
  struct Part {
    int value = -1;   ///< into values_; -1: a literal
    int origin = -1;  ///< another value that it is finite only with
    bool reaches_result = false;
    ptx::Type type = ptx::Type::none;
    uint64_t literal = 0;
  };
  struct Item {
    int32_t site = -1;
    const ptx::Instruction* instruction = nullptr;
    WatchedInstruction watched;
    std::vector<Part> sources, results;
    int guard = -1;  ///< value
    std::string made;  ///< of a product: the register with a result that was born
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
  void cover();
  Value& value(const Part& part) { return values_[static_cast<size_t>(part.value)]; }
  std::string added(AddedRegisters::Class of) { return registers_.make(of); }

  // segment_fold.cpp
  struct Folded {
    const Value* value;
    std::string guard;  ///< "@%p1 ", "@!%p1 " or nothing
  };
  std::string test(Code&);
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
  void mark(const Item&, int number, const std::string& nan, const std::string& infinity, Code&);
  std::string without_infinities(const std::string& name, ptx::Type, vm::Element, Code&);
  void note(const std::string& name, Code&);
  void load(const Item&, Code&);
  void widen(const std::string& to, const Part&, Code&);

  const ptx::Function& function_;
  AddedRegisters& registers_;
  std::vector<Value> values_;
  std::vector<Item> items_;
  std::map<int32_t, int> current_;  ///< register -> value that it holds
  std::map<int32_t, Origin> origin_;
  Item begun_;
  bool whole_warp_ = false;
  // Of the code aside: lanes that came there, births by item (infinities 32 bits higher), zeros.
  std::string lanes_, mask_, zero_half_, zero_word_;
  std::string kind_, operand_[3], result_;  ///< of the birth to be noted
};

}  // namespace assay::watch
