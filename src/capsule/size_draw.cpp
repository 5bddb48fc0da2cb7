#include "src/capsule/size_draw.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace assay {

int64_t fitted_size(const NamedSize& size, int64_t value) {
  value = std::clamp(value, size.from, size.to);
  const int64_t down = value / size.multiple * size.multiple;
  if (down >= size.from) return down;
  const int64_t up = (size.from + size.multiple - 1) / size.multiple * size.multiple;
  return up <= size.to ? up : size.value;
}

int64_t draw_size(const NamedSize& size, const RandomStream& random, int64_t place) {
  if (!size.varies()) return size.value;
  const auto below = [&](int64_t n, int64_t what) { return random.below(n, {place, what}); };
  switch (below(5, 0)) {
    case 0:
      return fitted_size(size, size.value);
    case 1:
      return fitted_size(size, below(2, 1) ? size.from : std::min(size.to, size.from + 1));
    case 2:
    case 3:
      return fitted_size(size,
                         kSizeEdges[static_cast<size_t>(below(std::size(kSizeEdges), 2))] + below(3, 3) - 1);
    default: {  // uniform in its logarithm
      const double low = std::log2(static_cast<double>(std::max<int64_t>(1, size.from))),
                   high = std::log2(static_cast<double>(std::max<int64_t>(1, size.to)));
      return fitted_size(size,
                         static_cast<int64_t>(std::exp2(low + (high - low) * random.uniform({place, 4}))));
    }
  }
}

}  // namespace assay
