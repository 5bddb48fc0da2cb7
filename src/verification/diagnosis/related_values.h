// What is lacking may be a value that the thread has at hand: a term or a factor that a statement leaves out
// or has too many, or the operand that should stand for another.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/vm/thread_values.h"
#include "src/base/vm/value_slice.h"
#include "src/verification/diagnosis/element_slopes.h"

namespace assay {

struct RelatedValue {
  enum class How : uint8_t { plus, minus, times, divided, instead, past, lanes } how = How::plus;
  int32_t maker = -1;  ///< an instance that makes such a value, -1: no output is made of it; `past` that one
  size_t statement = 0;  ///< which makes it; of lanes, of how many
  uint32_t user = 0;     ///< for this instance
  size_t apart = 0;      ///< statements between them
  double number = 0;     ///< of the user's
  bool taken = false;    ///< it is what the maker takes, not what it makes
  std::string sentence;  ///< for the reader, by whoever knows the lines
};

/// Values by the threads that hold them, in the order in which they are made.
class RelatedValues {
 public:
  /// `statement`: by instance what it belongs to, one operation of one line; SIZE_MAX: nothing.
  RelatedValues(const vm::ValueSlice&, const ElementSlopes&, const std::vector<double>& lacking,
                const std::vector<size_t>& statement);

  /// Also those that no output is made of, near some instances. `statement_of`: of an instruction.
  void add(const vm::ValuesNear&, const std::vector<uint32_t>& instances,
           const std::function<size_t(const vm::ThreadValues&, const vm::HeldValue&)>& statement_of);

  /// From now on also what stands along the operands: what their makers take, what else is made of them.
  void look_along();

  /// The nearest statement whose values before those of the instances, or after them, or those of the lanes
  /// beside them, would make of them what makes every element right. None by chance.
  std::optional<RelatedValue> find(const std::vector<uint32_t>& instances) const;

  /// The same of some instances of a statement whose values have to change, and by how much, where the others
  /// are right: a case that the statement forgets. `bits`: how little it is by chance that those changes mend
  /// all.
  std::optional<RelatedValue> find(const std::vector<uint32_t>& instances, const std::vector<double>& changes,
                                   double bits) const;

 private:
  /// Which value of a statement: the last before an instance, the first after it, the last after it and
  /// before the instance's own statement runs again, the last before that ran the time before; what the maker
  /// of an operand takes, in its place or beside it, what another makes of that operand.
  enum class When : uint8_t { before, after, last, earlier, lanes, upstream, aside, downstream };
  struct Held {
    uint32_t record = 0;
    size_t statement = 0;
    double number = 0;
    int32_t instance = -1;
    int32_t function = -1;
  };
  struct Near {
    size_t statement = 0;  ///< of lanes: bits of their numbers
    When when = When::before;
    double number = 0;
    int32_t instance = -1;
    size_t apart = 0;
    int operand = -1;  ///< in place of this one alone
    int taken = -1;    ///< upstream, aside: which operand of the maker, and of which operand
  };
  struct Tried {
    size_t statement = 0;
    When when = When::before;
    int taken = -1;
    int operand = -1;  ///< it alone is another; -1: the result
    RelatedValue related;
  };
  struct Taken {
    double number = 0, slope = 0;
  };
  /// None: it has no such operand.
  std::optional<Taken> taken(uint32_t instance, int operand) const;
  const std::vector<Near>& near(uint32_t instance) const;
  void add_beside(uint32_t instance, std::vector<Near>&) const;
  bool looks_along() const { return !first_taker_.empty(); }
  void add_along(uint32_t instance, std::vector<Near>&) const;
  std::vector<Tried> fitting(const std::vector<uint32_t>& instances, uint16_t element, int operand) const;
  bool mends(const std::vector<uint32_t>& instances, const Tried&) const;

  const vm::ValueSlice& slice_;
  const ElementSlopes& slopes_;
  const std::vector<double>& lacking_;
  const std::vector<size_t>& statement_;
  const std::vector<double> by_operand_;        ///< derivatives
  std::vector<uint32_t> takers_, first_taker_;  ///< of each instance, those that take what it
                                                ///< makes; empty: not looked along
  std::vector<uint32_t> thread_;                ///< by instance
  std::vector<std::vector<Held>> values_;       ///< by thread, ascending by record
  std::map<std::array<uint32_t, 7>, uint32_t> threads_;
  struct OfWarp {
    vm::WarpValues values;
    uint8_t lane = 0;
  };
  std::unordered_map<uint32_t, OfWarp> warp_;  ///< by instance
  mutable std::unordered_map<uint32_t, std::vector<Near>> near_;
};

}  // namespace assay
