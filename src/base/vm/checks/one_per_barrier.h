// Races that one barrier would order are one finding.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/vm/check_report.h"

namespace assay::vm {

struct Code;

/// By function the lines of its PTX that hold barriers of a block.
using BarrierLines = std::map<std::string, std::set<int32_t>>;
void note_barriers(const Code&, BarrierLines&);

/// Lanes of one store whose values differ: no barrier orders these.
bool is_of_one_store(const CheckFinding&);

/// Two accesses that no barrier parts leave room for one anywhere between them. Where one place lies between
/// both of several pairs, a barrier there orders them all: they are one finding, one pair of which is told
/// and the others are in `also`; a pair of one warp among pairs of several warps is one of these. Pairs that
/// a barrier does part race from one turn of a loop to the next: those are one that overlap. So are races of
/// several blocks that share a buffer and a line.
std::vector<CheckFinding> one_per_barrier(std::vector<CheckFinding>, const BarrierLines&);

}  // namespace assay::vm
