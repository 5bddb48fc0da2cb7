// What a run comes to.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "src/base/fields/names.h"

namespace assay {

/// Of a run, or of several together. Exit statuses and reports follow from it; a new one is added here.
enum class Verdict : uint8_t { pass, finding, undecided, domain };
constexpr std::array<std::string_view, 4> names_of(Verdict) {
  return {"pass", "finding", "undecided", "domain"};
}

/// Of a sweep's cell over its seeds: in this order, the worst of them. `refused`: no case of that setting is
/// accepted.
enum class CellVerdict : uint8_t { pass, domain, refused, undecided, finding };
constexpr std::array<std::string_view, 5> names_of(CellVerdict) {
  return {"pass", "domain", "refused", "undecided", "finding"};
}

}  // namespace assay
