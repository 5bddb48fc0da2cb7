// A module's text cut into modules of one entry each.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::ptx {

struct SingleEntry {
  std::string name, text;
};

/// For each entry of a module as nvcc writes it: what stands outside functions but debug information, the
/// functions that this or the entry names, directly or through others, and the entry.
std::vector<SingleEntry> single_entries(std::string_view text);

}  // namespace assay::ptx
