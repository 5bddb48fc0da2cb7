// What stands behind wrong output elements on one source line, and which other values of it would make them
// right.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/ptx/program.h"
#include "src/base/vm/value_slice.h"
#include "src/result/origin.h"
#include "src/verification/diagnosis/element_slopes.h"
#include "src/verification/diagnosis/related_values.h"

namespace assay {

/// What is lacking may stay by so much of it: derivatives are those at the machine's values, and a change of
/// several factors of one product is no sum of changes. Of a program that rounds to
/// 16 bits on its way: bf16 rounds to 2^-9, so four such roundings.
inline constexpr double kLeftWhereExplained = 0x1p-11, kLeftOfHalves = 0x1p-7;

/// An instruction of a module's text.
using Site = std::tuple<const ptx::Module*, int32_t, int32_t>;

/// What stands behind some output elements on one source line.
struct ExplainedLine {
  ChainLink at;
  std::vector<uint32_t> instances;  ///< of the slice
  Site read;                        ///< an instruction that takes it from memory; of no module: none does
  bool of_compiler = false;         ///< which made it of no line of the source
  bool computes = false;            ///< it does not only move values
  uint64_t made_of = 0;             ///< inputs, by their ordinals
  uint32_t nearest = UINT32_MAX;    ///< of its instances the least place in a slice, the output's being 0
  bool reads_only = true;           ///< from inputs

  size_t changes = 0;                      ///< fewest values that were found to explain what is lacking
  size_t values = 0;                       ///< among so many; instances that are the same value count once
  double factor = 0;                       ///< where all of them times this do; else 0
  double left = 1;                         ///< of what is lacking, what no change explains
  double enough = kLeftWhereExplained;     ///< and may stay
  std::vector<uint32_t> changed;           ///< those values, each as one of its instances
  std::vector<std::vector<double>> moves;  ///< and how the elements move with it
  std::set<uint16_t> reached;              ///< elements that what is changed moves
  bool displaced =
      false;  ///< what they would have to be are other values of the line, or of the input it reads
  size_t undue = 0, undue_of = 0;  ///< of so many values of one operation, so many would have to be 0
  std::optional<uint32_t>
      superfluous;                     ///< where `related` is a value that it is made of, what stands between
  std::vector<uint32_t> number_from;   ///< where that multiplies by a number, what hands it on to there
  std::optional<uint32_t> taken;       ///< where `related` is made of what it is made of too
  std::vector<uint32_t> same_product;  ///< where `related` is a factor, elsewhere in the product
  std::vector<uint32_t> alike;         ///< and what takes `related`
  std::optional<RelatedValue> related;  ///< with it added, or multiplied by it, or with it instead

  bool explains() const { return left < enough; }
};

/// Instances of a line whose values no other of them takes: what the line makes.
std::vector<uint32_t> made_by_line(const vm::ValueSlice&, std::vector<uint32_t> instances);

/// A slice, how the elements move with it, and by how much they are wrong.
struct WrongElements {
  const vm::ValueSlice& slice;
  const ElementSlopes& slopes;
  const std::vector<double>& lacking;
  const std::vector<uint32_t>& numbers;  ///< value_numbers of the slice

  /// All values of the line times one number, or the fewest that were found.
  void explain(ExplainedLine&) const;
  /// The instance whose change explains most of what is left, and so on; where that is none, or no wonder,
  /// those that are the same value together.
  void explain_by_values(ExplainedLine&) const;

 private:
  struct Groups;
  bool scaled(ExplainedLine&) const;
  bool scaled(ExplainedLine&, const std::vector<uint32_t>& instances) const;
  Groups by_value(const ExplainedLine&) const;
  void explain_by(const Groups&, ExplainedLine&) const;
  void note_reached(ExplainedLine&, uint32_t instance) const;
};

/// How little it is by chance that the line explains what it does, as thresholds.h counts: each element that
/// its changes move, beyond as many as they are, agrees to what is left, or kLeftWhereExplained; and which
/// values were changed was chosen.
double bits_of(const ExplainedLine&);

}  // namespace assay
