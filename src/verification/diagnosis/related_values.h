// What is lacking may be a value that the thread has at hand: a term or a factor that a statement leaves out
// or has too many, or the operand that should stand for another.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/vm/value_slice.h"
#include "src/verification/diagnosis/element_slopes.h"

namespace assay {

struct RelatedValue {
  enum class How : uint8_t { plus, minus, times, divided, instead } how = How::plus;
  uint32_t maker = 0;    ///< an instance that makes such a value,
  uint32_t user = 0;     ///< for this one
  size_t apart = 0;      ///< statements between them
  std::string sentence;  ///< for the reader, by whoever knows the lines
};

/// Values of the slice by the threads that hold them, in the order in which they are made.
class RelatedValues {
 public:
  /// `statement`: by instance what it belongs to, one operation of one line; SIZE_MAX: nothing.
  RelatedValues(const vm::ValueSlice&, const ElementSlopes&, const std::vector<double>& lacking,
                const std::vector<size_t>& statement);

  /// The nearest statement whose last values before those of the instances, or first ones after them, would
  /// make of them what makes every element right. None by chance.
  std::optional<RelatedValue> find(const std::vector<uint32_t>& instances) const;

 private:
  /// A statement's value nearest to an instance, before or after it.
  struct Near {
    size_t statement = 0;
    bool after = false;
    uint32_t instance = 0;
    size_t apart = 0;
  };
  struct Tried {
    size_t statement = 0;
    bool after = false;
    RelatedValue related;
  };
  std::vector<Near> near(uint32_t instance) const;
  std::vector<Tried> fitting(const std::vector<uint32_t>& instances, uint16_t element) const;
  bool mends(const std::vector<uint32_t>& instances, const Tried&) const;

  const vm::ValueSlice& slice_;
  const ElementSlopes& slopes_;
  const std::vector<double>& lacking_;
  const std::vector<size_t>& statement_;
  std::vector<uint32_t> thread_;               ///< by instance
  std::vector<std::vector<uint32_t>> values_;  ///< by thread, ascending by record
};

}  // namespace assay
