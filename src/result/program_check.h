// What a program shows by being run, where nobody claims what it computes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/fields/names.h"
#include "src/base/program/outcome.h"

namespace assay {

/// A tensor that the run wrote.
struct WrittenTensor {
  std::string name, shape;  ///< "[n=1000] fp32"
  int64_t elements = 0;
  double smallest = 0, largest = 0;  ///< of finite elements
  int64_t nans = 0, infinities = 0;
  int64_t born = 0;  ///< of those, elements whose value an instruction of the program made
};
template <typename Io>
void fields(Io& io, WrittenTensor& x) {
  io.type("written_tensor", "a tensor that the run wrote");
  ASSAY_FIELD(name);
  ASSAY_FIELD(shape);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(smallest);
  ASSAY_FIELD(largest);
  ASSAY_FIELD(nans);
  ASSAY_FIELD(infinities);
  ASSAY_FIELD(born, "of those, elements whose value an instruction of the program made");
}

/// A size of the launch file.
struct ProgramSize {
  std::string name;
  int64_t value = 0;
};
template <typename Io>
void fields(Io& io, ProgramSize& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(value);
}

struct CheckedProgram {
  std::string file;                   ///< the launch file or capsule
  std::vector<std::string> launches;  ///< "scan: 4 x 2 x 1 blocks of 256 threads"
  std::vector<ProgramSize> sizes;
  uint64_t seed = 0;
  std::vector<WrittenTensor> written;
};
template <typename Io>
void fields(Io& io, CheckedProgram& x) {
  io.type("program", "what ran, where no operator is claimed");
  ASSAY_FIELD(file);
  ASSAY_FIELD(launches);
  ASSAY_FIELD(sizes);
  ASSAY_FIELD(seed);
  ASSAY_FIELD(written);
}

enum class RepeatKind : uint8_t { order, poison, architecture, recorded };
constexpr std::array<std::string_view, 4> names_of(RepeatKind) {
  return {"order", "poison", "architecture", "recorded"};
}

/// The run once more, and what came out otherwise.
struct Repeat {
  RepeatKind kind{};
  std::string how;        ///< "blocks and warps in descending order"
  int64_t differing = 0;  ///< elements of all tensors written; NaN equals NaN
  std::string element;    ///< the first of them, with both values
  double largest = 0;     ///< largest |difference| / rms of the tensor, over finite elements
  /// It comes of the order in which floats were added by atomics, and of nothing else.
  bool by_order_of_sums = false;
  /// No finding: what the architectures' own roundings explain.
  bool expected = false;
  std::string departure;  ///< where the runs part first, with both values; empty: not looked for
  std::optional<SourceLocation> where;
  std::string note;  ///< why something was not done; or empty
};
template <typename Io>
void fields(Io& io, Repeat& x) {
  io.type("repeat", "the run once more, and what came out otherwise");
  ASSAY_FIELD(kind);
  ASSAY_FIELD(how);
  ASSAY_FIELD(differing);
  ASSAY_FIELD(element);
  ASSAY_FIELD(largest, "largest difference over the tensor's root mean square");
  ASSAY_FIELD(by_order_of_sums, "it comes of the order in which atomics added floats, and of nothing else");
  ASSAY_FIELD(expected, "no finding: the architectures' own roundings explain it");
  ASSAY_FIELD(departure, "where the runs part first");
  ASSAY_FIELD(where);
  ASSAY_FIELD(note);
}

}  // namespace assay
