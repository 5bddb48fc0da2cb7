// The GPUs that the machine answers as, where programs ask their device for what it is.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace assay::binding {

struct Gpu {
  const char* name;  ///< as its driver gives it
  const char* arch;
  int multiprocessors;
  int64_t memory_bytes;
  int shared_per_block_optin, shared_per_multiprocessor;  ///< bytes
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int l2_bytes;
  int clock_khz, memory_clock_khz, memory_bus_bits;

  int capability() const;  ///< 90 of sm_90
};

/// Of several with one architecture, the first is meant by it.
std::span<const Gpu> gpus();
/// Throws BadInput for an architecture that there is not.
const Gpu& gpu_of(const std::string& arch);
nlohmann::json describe_gpus();

}  // namespace assay::binding
