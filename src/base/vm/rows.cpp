// The instruction table: lane rows for the host's instruction set, then the rows that need the warp.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/vm/availability.h"
#include "src/base/vm/instruction_row.h"
#include "src/base/vm/rows/warp_rows.h"

#define ASSAY_LANES portable
#include "src/base/vm/rows/lane_rows.h"
#if defined(__x86_64__)
namespace assay::vm::avx2 {
#define ASSAY_LANE_ROWS(family) void add_##family##_rows(std::vector<Row>&);
#include "src/base/vm/rows/lane_rows.def"
#undef ASSAY_LANE_ROWS
LaneKit kit();
}  // namespace assay::vm::avx2
#endif

namespace assay::vm {
namespace {

/// ASSAY_LANES=portable in the environment forces the portable set (the bits are the same).
bool use_avx2() {
#if defined(__x86_64__)
  const char* wish = std::getenv("ASSAY_LANES");
  if (wish && std::string_view(wish) == "portable") return false;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

std::vector<Row> make_rows() {
  std::vector<Row> table = lane_rows(use_avx2() ? "avx2" : "portable");
  add_memory_rows(table);
  add_atomic_rows(table);
  add_async_copy_rows(table);
  add_exchange_rows(table);
  add_matrix_rows(table);
  add_matrix_memory_rows(table);
  add_wgmma_rows(table);
  add_mbarrier_rows(table);
  add_wmma_rows(table);
  add_packed_compare_rows(table);
  add_register_rows(table);
  add_control_rows(table);
  return table;
}
/// "a{b,c}{,d}" -> "ab", "ac", "abd", "acd".
void expand(const std::string& pattern, std::vector<std::string>& forms) {
  const size_t open = pattern.find('{');
  if (open == std::string::npos) {
    forms.push_back(pattern);
    return;
  }
  const size_t close = pattern.find('}', open);
  const std::string head = pattern.substr(0, open), tail = pattern.substr(close + 1);
  for (size_t at = open + 1; at <= close;) {
    const size_t comma = std::min(pattern.find(',', at), close);
    expand(head + pattern.substr(at, comma - at) + tail, forms);
    at = comma + 1;
  }
}

using Index = std::unordered_map<std::string, const Row*>;

const Index& index() {
  static const Index made = [] {
    Index result;
    for (const Row& row : rows())
      for (const std::string& form : forms_of(row)) result.emplace(form, &row);
    return result;
  }();
  return made;
}

/// Qualifiers that change no bits on this machine: cache operators and hints, memory order and scope,
/// uniformity.
bool is_ignored(std::string_view base, std::string_view part) {
  static constexpr std::string_view memory[] = {
      "ca",      "cg",      "cs",      "lu", "cv",  "wb",  "wt",  "nc",      "volatile", "weak", "relaxed",
      "acquire", "release", "acq_rel", "sc", "gpu", "sys", "cta", "cluster", "unified",  "mmio", "noftz"};
  if (part.starts_with("L1::") || part.starts_with("L2::")) return true;
  if (base == "bra" || base == "call" || base == "ret" || base == "brx") return part == "uni";
  if (base == "bar" || base == "barrier") return part == "cta" || part == "aligned";
  if (base != "ld" && base != "st" && base != "atom" && base != "red" && base != "cp" && base != "fence" &&
      base != "membar" && base != "ldu" && base != "mbarrier")
    return false;
  return std::find(std::begin(memory), std::end(memory), part) != std::end(memory);
}

}  // namespace

void add_lane_row(std::vector<Row>& table, const LaneRow& row, std::initializer_list<const char*> parts) {
  Row made;
  for (const char* part : parts) made.pattern += part;
  made.kind = row.kind;
  made.effect = row.effect;
  made.status = row.status;
  made.result = row.result;
  std::copy(std::begin(row.sources), std::end(row.sources), made.sources.begin());
  made.lanes = row.lanes;
  made.mask = row.mask;
  made.real = row.real;
  table.push_back(std::move(made));
}

std::vector<std::string> lane_sets() {
  std::vector<std::string> sets{"portable"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back("avx2");
#endif
  return sets;
}

std::vector<Row> lane_rows(std::string_view set) {
  std::vector<Row> table;
#if defined(__x86_64__)
  if (set == "avx2") {
#define ASSAY_LANE_ROWS(family) avx2::add_##family##_rows(table);
#include "src/base/vm/rows/lane_rows.def"
#undef ASSAY_LANE_ROWS
    return table;
  }
#endif
  (void)set;
#define ASSAY_LANE_ROWS(family) portable::add_##family##_rows(table);
#include "src/base/vm/rows/lane_rows.def"
#undef ASSAY_LANE_ROWS
  return table;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = make_rows();
  return table;
}

std::vector<std::string> alternatives(const std::string& pattern) {
  std::vector<std::string> forms;
  expand(pattern, forms);
  return forms;
}

std::vector<std::string> forms_of(const Row& row) {
  std::vector<std::string> forms = alternatives(row.pattern);
  std::erase_if(forms, [](const std::string& form) {
    const int least = least_architecture(form);
    return least == 0 || least > *std::rbegin(architectures);
  });
  return forms;
}

std::string canonical_form(std::string_view opcode) {
  const size_t dot = std::min(opcode.find('.'), opcode.size());
  const std::string_view base = opcode.substr(0, dot);
  std::string result(base);
  for (size_t at = dot; at < opcode.size();) {
    const size_t end = std::min(opcode.find('.', at + 1), opcode.size());
    std::string_view part = opcode.substr(at + 1, end - at - 1);
    at = end;
    if (is_ignored(base, part)) continue;
    for (const std::string_view scope : {"::cta", "::entry", "::func"})
      if (part.ends_with(scope)) part.remove_suffix(scope.size());
    result += '.';
    result += part;
  }
  return result;
}

const Row* find_row(std::string_view opcode) {
  const auto exact = index().find(std::string(opcode));
  if (exact != index().end()) return exact->second;
  const auto found = index().find(canonical_form(opcode));
  return found == index().end() ? nullptr : found->second;
}

const LaneKit& lane_kit() {
#if defined(__x86_64__)
  static const LaneKit made = use_avx2() ? avx2::kit() : portable::kit();
#else
  static const LaneKit made = portable::kit();
#endif
  return made;
}

}  // namespace assay::vm
