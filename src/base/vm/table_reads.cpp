#include "src/base/vm/table_reads.h"

#include <algorithm>
#include <map>
#include <vector>

#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

struct Table {
  std::string name;
  uint64_t base = 0, row_bytes = 0;
  std::vector<char> read;  ///< by row: whether a byte of it was
};

/// Notes which rows of tables a launch reads, and which load reads of which table.
struct ReadTrace : PlainTrace {
  static constexpr unsigned hooks = hook::after;

  void after(Warp& warp, const Op& op, uint32_t mask) {
    if (warp.space != ptx::Space::global || !reads_memory(*warp.block->context->code, op)) return;
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) note(op, warp.address[lane]);
  }
  static bool reads_memory(const Code& code, const Op& op) {
    const Signature& signature = code.signature(op);
    return std::any_of(signature.accesses.begin(), signature.accesses.end(), [](const Access& access) {
      return access.direction != Access::Direction::write &&
             (access.space == ptx::Space::global || access.space == ptx::Space::generic);
    });
  }
  void note(const Op& op, uint64_t address) {
    const uint64_t bytes = uint64_t{op.element_bytes} * std::max<uint32_t>(op.vector_length, 1);
    for (size_t t = 0; t < tables.size(); ++t) {
      Table& table = tables[t];
      if (address - table.base >= table.row_bytes * table.read.size()) continue;
      const size_t last =
          std::min((address + bytes - 1 - table.base) / table.row_bytes, table.read.size() - 1);
      for (size_t row = (address - table.base) / table.row_bytes; row <= last; ++row) table.read[row] = 1;
      of_load[{op.function, op.instruction}] = t;
    }
  }

  std::vector<Table> tables;
  std::map<std::pair<int32_t, int32_t>, size_t> of_load;
};

std::vector<Table> tables_of(const Program& program, const PreparedProgram& prepared) {
  std::vector<Table> tables;
  for (const Tensor& constant : program.constants) {
    const std::optional<Place> place = prepared.memory().find(constant.name);
    if (!place || constant.axes.empty() || constant.size() == 0) continue;
    const auto rows = static_cast<size_t>(constant.axes.front().size);
    tables.push_back({constant.name, place->address(), constant.data.size() / rows, std::vector<char>(rows)});
  }
  return tables;
}

}  // namespace

std::optional<UnreadTable> find_unread_table(const Program& program, const TensorMap& inputs,
                                             const MachineOptions& options, const PlacedInstruction& guard) {
  PreparedProgram prepared(program, inputs, options);
  if (prepared.refused_launch()) return std::nullopt;
  PlainTrace plain;
  ReadTrace trace;
  trace.tables = tables_of(program, prepared);
  const auto launch = static_cast<size_t>(guard.launch);
  for (size_t i = 0; i < launch; ++i)
    if (run_traced(prepared, i, plain).trap) return std::nullopt;
  if (trace.tables.empty() || run_traced(prepared, launch, trace).trap) return std::nullopt;
  for (const auto& [load, of] : trace.of_load) {
    const Table& table = trace.tables[of];
    const bool whole = std::all_of(table.read.begin(), table.read.end(), [](char read) { return read != 0; });
    if (whole || load.first != guard.function || load.second > guard.instruction) continue;
    PlacedInstruction at = guard;
    at.instruction = load.second;
    return UnreadTable{at, table.name};
  }
  return std::nullopt;
}

}  // namespace assay::vm
