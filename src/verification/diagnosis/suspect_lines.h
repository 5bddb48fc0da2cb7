// Source lines that can have made finite values wrong: a line is a suspect where other values of its
// instructions would make every wrong element right and leave every right one as it is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/program/program.h"
#include "src/base/ptx/program.h"
#include "src/base/tensor/tensor.h"
#include "src/base/vm/machine.h"
#include "src/result/suspect_line.h"
#include "src/verification/diagnosis/explained_line.h"

namespace assay {

/// An output element, what it is in exact arithmetic and what it should be.
struct JudgedElement {
  std::string output;
  int64_t flat = 0;
  double is = 0, should = 0;
  bool wrong = false;
};

/// In how many slices an instruction stands.
struct Behind {
  uint32_t wrong = 0, right = 0;  ///< elements
  double worth = 0.5;             ///< how much of what is wrong its line explains, and how surely: 0 to 1
};

struct SuspectLines {
  std::vector<SuspectLine> likeliest;  ///< eight
  /// How little is said of the first of them: nothing new where it lacks a value that the thread has, one
  /// factor, or so many values and one.
  size_t changes = SIZE_MAX;
  size_t wrong = 0;  ///< elements that were looked at
  /// Any values that reach the wrong elements would do.
  bool says_nothing() const { return changes > wrong; }
  std::vector<SuspectLine> related;  ///< of them: what is lacking is another value that the thread has
  bool along =
      false;  ///< that is found by what stands along operands: no line beside a change that mends all
  std::vector<SuspectLine> passed_on;    ///< by which the value of the first of these goes on
  std::vector<SuspectLine> in_product;   ///< where a factor that the first of these lacks could stand as well
  std::vector<SuspectLine> alike;        ///< what takes the value that the first of these lacks
  std::vector<SuspectLine> superfluous;  ///< what the first of these takes should have gone past it
  std::vector<SuspectLine> displaced;  ///< of them: the right values are there, elsewhere or at another step
  std::vector<SuspectLine> addressed;  ///< where the first of these reads, other statements that say where
  std::set<std::string> explain;  ///< "FILE:LINE" of all whose values can explain a part of what is wrong
  std::map<Site, Behind> behind;
  std::map<std::string, SuspectLine> alone;   ///< of an input the likeliest line that takes it and no other
  std::map<std::string, SuspectLine> takers;  ///< the likeliest that takes it alone, beside others
  std::map<std::string, SuspectLine> reads;   ///< the likeliest that takes it from its tensor
  std::map<std::string, SuspectLine> loads;   ///< what does so and explains most, be it little
  std::map<std::string, SuspectLine> places;  ///< what says where that reads
  std::map<std::string, SuspectLine> blocks;  ///< and of which sequence and head
};
/// Of a program that is not optimised, whose lines have many values each, those alone that say something: of
/// copies those that are not the value's only use (the others can be wrong only if what they copy is; every
/// argument of a call is copied), and what explains all, and not by chance.
enum class Values { all, telling };

/// Slices are taken for at most so many seconds. None where nothing is wrong or no slice
/// tells.
SuspectLines suspect_lines(const Program&, const TensorMap& inputs, const vm::MachineOptions&,
                           const std::vector<JudgedElement>&, Values, double seconds);

}  // namespace assay
