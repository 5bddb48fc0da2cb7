// Rows whose behaviour needs the warp or the engine: memory, exchange between lanes, tensor cores, control.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/instruction_row.h"

namespace assay::vm {

class Decoder;

void add_memory_rows(std::vector<Row>&);
void add_atomic_rows(std::vector<Row>&);
void add_async_copy_rows(std::vector<Row>&);
void add_exchange_rows(std::vector<Row>&);
void add_matrix_rows(std::vector<Row>&);
void add_matrix_memory_rows(std::vector<Row>&);
void add_wgmma_rows(std::vector<Row>&);
void add_mbarrier_rows(std::vector<Row>&);
void add_wmma_rows(std::vector<Row>&);
void add_packed_compare_rows(std::vector<Row>&);
void add_register_rows(std::vector<Row>&);
void add_control_rows(std::vector<Row>&);
void add_device_call_rows(std::vector<Row>&);
void add_cluster_rows(std::vector<Row>&);
void add_bulk_copy_rows(std::vector<Row>&);
void add_tensor_copy_rows(std::vector<Row>&);
void add_tensor_map_rows(std::vector<Row>&);
void add_video_rows(std::vector<Row>&);
void add_stack_rows(std::vector<Row>&);

using DecodeFunction = void (*)(Decoder&, const ptx::Instruction&, Op&);
/// Appends a row that the engine runs as Kind::warp.
Row& add_warp_row(std::vector<Row>&, std::string pattern, Meaning, WarpFunction, DecodeFunction);

}  // namespace assay::vm
