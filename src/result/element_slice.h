// What stands behind one output element, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/result/origin.h"

namespace assay {

/// A step of the chain through a slice: the instance nearest the output of a run of instances on one source
/// line.
struct SliceStep {
  ChainLink at;
  std::vector<OriginOperand> operands;
  double result = 0;
  std::string type;  ///< of the result
  std::array<uint32_t, 3> block{}, thread{};
  int64_t times = 1;  ///< so many rounds of a loop over this step and its neighbours with the same count
};

/// All instances of a slice on one source line.
struct SliceLine {
  ChainLink at;  ///< the instruction with the most instances
  int64_t instances = 0;
  double smallest = 0, largest = 0;  ///< magnitudes of finite floating-point results
  std::vector<int64_t> from;         ///< lines (indices into ElementSlice::lines) that it took values from
};

/// What a slice read of one input.
struct SliceInput {
  std::string input;
  int64_t elements = 0;
  std::string first, last, largest;  ///< elements; largest: of greatest magnitude, NaN above all
  double value = 0;                  ///< of `largest`
};

struct SliceNodeOperand {
  std::string name, type;
  uint64_t bits = 0;
  int64_t made_by = -1;  ///< instance, or -1:
  std::string source;    ///< then "input", "literal" or "unwritten-memory"; else empty
  std::string input;     ///< element, of an input
};
struct SliceNode {
  int64_t line = 0;  ///< index into ElementSlice::lines
  std::string instruction, type;
  uint64_t bits = 0;
  double value = 0;  ///< of a floating-point result, else 0
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<SliceNodeOperand> operands;
};

/// The instruction instances behind one output element, finite or not.
struct ElementSlice {
  std::string element;
  double value = 0;
  int64_t instances = 0;
  bool truncated =
      false;  ///< the slice has more instances than were kept: the nearest to the output are here
  int64_t blocks = 0, blocks_of = 0;  ///< run again, of all blocks of the plan
  bool unwritten = false;             ///< memory or a register that nothing wrote takes part
  std::vector<SliceStep>
      chain;  ///< input first, output last: at each instance the operand that decides its size
  std::vector<SliceLine> lines;  ///< most instances first
  std::vector<SliceInput> inputs;
  std::vector<SliceNode> nodes;  ///< consumers before producers; all instances, or the first ones
};

}  // namespace assay
