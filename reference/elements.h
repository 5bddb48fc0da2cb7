// Elements of matrices with their places, which no division has to find.
#pragma once
#include <cstddef>

namespace assay {

/// f(i, row, column) of `count` elements that lie one after the other, row by row from the first on.
template <typename F>
inline void for_each_element(size_t count, size_t columns, const F& f) {
  for (size_t i = 0, row = 0; i < count; ++row)
    for (size_t column = 0; column < columns && i < count; ++column, ++i) f(i, row, column);
}

}  // namespace assay
