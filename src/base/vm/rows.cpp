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
  add_device_call_rows(table);
  add_cluster_rows(table);
  add_bulk_copy_rows(table);
  add_tensor_copy_rows(table);
  add_tensor_map_rows(table);
  for (Row& row : table) row.form = ptx::form_of(alternatives(row.pattern).front());
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

/// The table's spelling by what all spellings have in common.
const std::unordered_map<std::string, std::string>& spellings() {
  static const std::unordered_map<std::string, std::string> made = [] {
    std::unordered_map<std::string, std::string> result;
    for (const Row& row : rows())
      for (const std::string& form : forms_of(row)) result.emplace(ptx::unordered_form(form), form);
    return result;
  }();
  return made;
}

}  // namespace

void add_lane_row(std::vector<Row>& table, const LaneRow& row, std::initializer_list<const char*> parts) {
  Row made;
  for (const char* part : parts) made.pattern += part;
  made.kind = row.kind;
  made.flow = row.flow;
  made.status = row.status;
  made.result = row.result;
  std::copy(std::begin(row.sources), std::end(row.sources), made.sources.begin());
  made.lanes = row.lanes;
  made.mask = row.mask;
  made.real = row.real;
  table.push_back(std::move(made));
}

Row& add_warp_row(std::vector<Row>& table, std::string pattern, Meaning meaning, WarpFunction function,
                  DecodeFunction decode) {
  Row made;
  static_cast<Meaning&>(made) = std::move(meaning);
  made.pattern = std::move(pattern);
  made.kind = Kind::warp;
  made.warp = function;
  made.decode = decode;
  return table.emplace_back(std::move(made));
}

Control control_of(Kind kind) {
  switch (kind) {
    case Kind::branch:
      return Control::branch;
    case Kind::branch_table:
      return Control::branch_table;
    case Kind::call:
      return Control::call;
    case Kind::ret:
      return Control::ret;
    case Kind::exit:
      return Control::exit;
    case Kind::trap:
      return Control::trap;
    case Kind::barrier:
      return Control::barrier;
    default:
      return Control::none;
  }
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

std::string spelling_of(std::string_view opcode) {
  std::string canonical = ptx::canonical_form(opcode);
  if (index().contains(canonical)) return canonical;
  const auto found = spellings().find(ptx::unordered_form(canonical));
  return found == spellings().end() ? canonical : found->second;
}

const Row* find_row(std::string_view opcode) {
  const auto exact = index().find(std::string(opcode));
  if (exact != index().end()) return exact->second;
  const auto found = index().find(spelling_of(opcode));
  return found == index().end() ? nullptr : found->second;
}

const Row* find_row(const ptx::Instruction& instruction) {
  if (instruction.form.is_unpack) return find_row(instruction.opcode + " unpack");
  if (instruction.form.is_pack) return find_row(instruction.opcode + " pack");
  return find_row(instruction.opcode);
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
