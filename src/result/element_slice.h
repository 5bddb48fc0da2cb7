// What stands behind one output element, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
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
template <typename Io>
void fields(Io& io, SliceStep& x) {
  ASSAY_FIELD(at);
  ASSAY_FIELD(operands);
  ASSAY_FIELD(result);
  ASSAY_FIELD(type);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(times, "rounds of a loop over this step and its neighbours with this count");
}

/// All instances of a slice on one source line.
struct SliceLine {
  ChainLink at;  ///< the instruction with the most instances
  int64_t instances = 0;
  double smallest = 0, largest = 0;  ///< magnitudes of finite floating-point results
  std::vector<int64_t> from;         ///< lines (indices into ElementSlice::lines) that it took values from
};
template <typename Io>
void fields(Io& io, SliceLine& x) {
  ASSAY_FIELD(at);
  ASSAY_FIELD(instances);
  ASSAY_FIELD(smallest);
  ASSAY_FIELD(largest);
  ASSAY_FIELD(from);
}

/// What a slice read of one input.
struct SliceInput {
  std::string input;
  int64_t elements = 0;
  std::string first, last, largest;  ///< elements; largest: of greatest magnitude, NaN above all
  double value = 0;                  ///< of `largest`
};
template <typename Io>
void fields(Io& io, SliceInput& x) {
  ASSAY_FIELD(input);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(first);
  ASSAY_FIELD(last);
  ASSAY_FIELD(largest);
  ASSAY_FIELD(value);
}

/// Where an operand comes from that no instance of the slice made.
enum class OperandSource : uint8_t { made, input, literal, unwritten_memory, beyond };
constexpr std::array<std::string_view, 5> names_of(OperandSource) {
  return {"", "input", "literal", "unwritten-memory", "beyond"};
}

struct SliceNodeOperand {
  std::string name, type;
  uint64_t bits = 0;
  int64_t made_by = -1;                        ///< instance, or -1:
  OperandSource source = OperandSource::made;  ///< then where it comes from
  std::string input;                           ///< element, of an input
};
template <typename Io>
void fields(Io& io, SliceNodeOperand& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(type);
  io("bits", Bits{x.bits});
  ASSAY_FIELD(made_by, "index into nodes; -1: from outside, or not listed");
  ASSAY_FIELD(source);
  ASSAY_FIELD(input, "the input's element");
}
struct SliceNode {
  int64_t line = 0;  ///< index into ElementSlice::lines
  std::string instruction, type;
  uint64_t bits = 0;
  double value = 0;  ///< of a floating-point result, else 0
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<SliceNodeOperand> operands;
};
template <typename Io>
void fields(Io& io, SliceNode& x) {
  ASSAY_FIELD(line, "index into lines");
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(type);
  io("bits", Bits{x.bits});
  ASSAY_FIELD(value);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(operands);
}

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
template <typename Io>
void fields(Io& io, ElementSlice& x) {
  io.type("slice", "the instruction instances behind one output element");
  ASSAY_FIELD(element);
  ASSAY_FIELD(value);
  ASSAY_FIELD(instances);
  ASSAY_FIELD(truncated);
  ASSAY_FIELD(blocks, "run again, of blocks_of");
  ASSAY_FIELD(blocks_of);
  ASSAY_FIELD(unwritten);
  ASSAY_FIELD(chain, "input first, output last: at each instance the operand that decides its size");
  ASSAY_FIELD(lines);
  ASSAY_FIELD(inputs);
  ASSAY_FIELD(nodes, "instances, consumers before producers; of more than 16384 the nearest to the output");
  io.made(
      "nodes_left_out", [&] { return std::optional(x.instances - static_cast<int64_t>(x.nodes.size())); },
      "instances that are counted and are not among the nodes");
}

}  // namespace assay
