// How output elements move with the values of the instances behind them, of one slice of them all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/vm/value_slice.h"

namespace assay {

/// By instance the elements that move with it: those from first[instance] to first[instance + 1].
struct ElementSlopes {
  std::vector<uint32_t> first;
  std::vector<uint16_t> element;  ///< ascending
  std::vector<double> slope;      ///< none is 0
  std::vector<uint32_t>
      nearest;  ///< by instance its least place in the slice of an element: the output's is 0

  bool moves(size_t instance) const { return first[instance] != first[instance + 1]; }
  /// Do the same elements move as much with both?
  bool alike(size_t instance, size_t other) const;
  double times(size_t instance, const std::vector<double>& by_element) const;
  double square(size_t instance) const;
  std::vector<double> column(size_t instance, size_t elements) const;
};

/// The number that an instance makes; 0 where it makes no float.
double number_of(const vm::ValueSlice&, uint32_t instance);

/// `weights`: what the slopes of each element are multiplied by. `reached` is told every instance that stands
/// behind an element, whether or not that moves with it.
ElementSlopes slopes_of(const vm::ValueSlice&, const std::vector<double>& weights,
                        const std::function<void(size_t element, size_t instance)>& reached);

}  // namespace assay
