// The instruction table: lane rows for the host's instruction set, then the rows that need the warp.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/vm/availability.h"
#include "src/base/vm/instruction_row.h"
#include "src/base/vm/rows/lane_rows.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/shadow_kit.h"

// A program that decodes and never runs (the watch's library) is spared the sets for single hosts.
#if defined(__x86_64__) && !defined(ASSAY_PORTABLE_LANES)
#define ASSAY_HOST_LANES
#endif

#define ASSAY_LANE_SET(set)             \
  namespace assay::vm::set {            \
  void add_all_rows(std::vector<Row>&); \
  LaneKit kit();                        \
  ShadowKit shadow_kit();               \
  }
ASSAY_LANE_SET(portable)
#ifdef ASSAY_HOST_LANES
ASSAY_LANE_SET(avx2)
ASSAY_LANE_SET(avx512)
#endif
#undef ASSAY_LANE_SET

namespace assay::vm {
namespace {

/// What the lane rows were compiled for.
struct LaneSet {
  std::string_view name;
  bool (*runs_here)();
  void (*add_rows)(std::vector<Row>&);
  LaneKit (*kit)();
  ShadowKit (*shadow_kit)();
};
/// The best of the host last.
constexpr LaneSet lane_set_table[] = {
    {"portable", [] { return true; }, portable::add_all_rows, portable::kit, portable::shadow_kit},
#ifdef ASSAY_HOST_LANES
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); },
     avx2::add_all_rows, avx2::kit, avx2::shadow_kit},
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
     },
     avx512::add_all_rows, avx512::kit, avx512::shadow_kit},
#endif
};

/// The last of the table that this processor has, up to the one that ASSAY_LANES in the environment names
/// (the bits are the same).
const LaneSet& host_set() {
  static const LaneSet& chosen = [&]() -> const LaneSet& {
    const char* wish = std::getenv("ASSAY_LANES");
    const LaneSet* best = lane_set_table;
    for (const LaneSet& set : lane_set_table) {
      if (set.runs_here()) best = &set;
      if (wish && wish == set.name) break;
    }
    return *best;
  }();
  return chosen;
}

std::vector<Row> make_rows() {
  std::vector<Row> table = lane_rows(host_set().name);
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
  add_video_rows(table);
  add_stack_rows(table);
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
  std::vector<std::string> sets;
  for (const LaneSet& set : lane_set_table)
    if (set.runs_here()) sets.emplace_back(set.name);
  return sets;
}

namespace {
const LaneSet& set_named(std::string_view name) {
  for (const LaneSet& set : lane_set_table)
    if (set.name == name) return set;
  return lane_set_table[0];
}
}  // namespace

std::vector<Row> lane_rows(std::string_view set) {
  std::vector<Row> table;
  set_named(set).add_rows(table);
  return table;
}

LaneKit lane_kit(std::string_view set) {
  return set_named(set).kit();
}
ShadowKit shadow_kit(std::string_view set) {
  return set_named(set).shadow_kit();
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
  // Kept, as far as there is one: programs have few opcodes, and a spelling takes long to find.
  static thread_local std::unordered_map<std::string, const Row*> known;
  if (const auto found = known.find(instruction.opcode); found != known.end()) return found->second;
  const Row* const row = find_row(instruction.opcode);
  if (row) known.emplace(instruction.opcode, row);
  return row;
}

LaneKit host_lane_kit() {
  return host_set().kit();
}

const ShadowKit& shadow_kit() {
  static const ShadowKit made = host_set().shadow_kit();
  return made;
}

}  // namespace assay::vm
