// What the recording machine hands back: the instruction instances that made or carried a non-finite value,
// and which input elements they depended on.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/ptx/program.h"

namespace assay::vm {

/// Where a non-finite operand came from when no recorded instruction made it.
enum class Source : uint8_t { event, literal, input, unwritten, beyond };

/// One operand of an event, decoded.
struct EventOperand {
  std::string name;  ///< "%f12", "0fFF800000", "a[k=3]" of a tensor-core sum
  std::string type;  ///< "f32", "bf16", ...
  double value = 0;
  uint64_t bits = 0;
  int32_t parent = -1;            ///< the event that made or carried it, where it is non-finite
  Source source = Source::event;  ///< of a non-finite operand without a parent
};

/// One recorded instruction instance that made or carried a non-finite value.
struct Event {
  int32_t launch = 0;                ///< index into Program::launches
  int32_t module = 0, function = 0;  ///< into Recording::modules and its functions
  int32_t instruction = 0;           ///< index into the function's body
  std::array<uint32_t, 3> block{}, thread{};
  std::vector<EventOperand>
      operands;  ///< sources in PTX order; of a tensor-core sum the terms that decide, k ascending
  double result = 0;
  bool born = false;            ///< NaN from operands none of which is NaN, or Inf from finite ones
  std::vector<int64_t> inputs;  ///< provenance: (input ordinal << 40 | flat element), sorted
  bool inputs_truncated = false;
};

/// What stands behind one element of an output.
struct Carrier {
  int32_t event = -1;             ///< event behind a non-finite element, -1: none
  Source source = Source::event;  ///< where there is no event: a copied input or literal, or never written
  std::vector<int64_t> inputs;    ///< provenance of the element, as in Event::inputs
  bool inputs_truncated = false;
  int32_t launch = -1, module = -1, function = -1,
          instruction = -1;  ///< the store that wrote it; -1: none did
};

/// The part of an event that a walk needs: cheap, where Event collects provenance.
struct EventLinks {
  bool born = false;
  bool outside_nan = false;       ///< a NaN operand that no recorded instruction made
  bool outside_infinity = false;  ///< an infinite one
  std::vector<int32_t> parents;   ///< events of its non-finite operands, earliest term first
};

struct Recording {
  int32_t event_count = 0;
  bool events_truncated = false;  ///< the log was full: later carriers were not recorded, births were
  std::function<Event(int32_t)> event;
  std::function<Event(int32_t)> event_without_inputs;  ///< the same but for Event::inputs: cheap
  std::function<EventLinks(int32_t)> links;
  std::function<Carrier(const std::string& output, int64_t flat)> carrier;
  std::function<int32_t(const std::string& output, int64_t flat)> carrier_event;  ///< Carrier::event: cheap
  std::vector<std::string> input_names;                                           ///< by input ordinal
  std::vector<std::shared_ptr<const ptx::Module>> modules;
};

}  // namespace assay::vm
