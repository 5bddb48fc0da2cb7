#include "src/binding/gpus.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"

namespace assay::binding {
namespace {

constexpr int KiB = 1 << 10, MiB = 1 << 20;
constexpr int64_t GiB = int64_t{1} << 30;

/// CUDA C++ Programming Guide, "Compute Capabilities"; data sheets of A100, L40, H100 SXM and H200 SXM.
constexpr Gpu kGpus[] = {
    {"NVIDIA H100 80GB HBM3", "sm_90", 132, 80 * GiB, 227 * KiB, 228 * KiB, 2048, 32, 50 * MiB, 1980000,
     2619000, 5120},
    {"NVIDIA H200", "sm_90", 132, 140 * GiB, 227 * KiB, 228 * KiB, 2048, 32, 60 * MiB, 1980000, 3201000,
     6144},
    {"NVIDIA A100-SXM4-80GB", "sm_80", 108, 80 * GiB, 163 * KiB, 164 * KiB, 2048, 32, 40 * MiB, 1410000,
     1593000, 5120},
    {"NVIDIA L40", "sm_89", 142, 45 * GiB, 99 * KiB, 100 * KiB, 1536, 24, 96 * MiB, 2490000, 9001000, 384},
};

}  // namespace

int Gpu::capability() const {
  return std::atoi(arch + 3);
}

std::span<const Gpu> gpus() {
  return kGpus;
}

const Gpu& gpu_of(const std::string& arch) {
  for (const Gpu& gpu : kGpus)
    if (arch == gpu.arch) return gpu;
  throw BadInput(fmt::format("\"{}\" is no architecture of the machine: sm_80, sm_89, sm_90", arch));
}

nlohmann::json describe_gpus() {
  nlohmann::json rows = nlohmann::json::array();
  for (const Gpu& gpu : kGpus)
    rows.push_back({{"name", gpu.name},
                    {"arch", gpu.arch},
                    {"multiprocessors", gpu.multiprocessors},
                    {"total_memory", gpu.memory_bytes},
                    {"shared_memory_optin", gpu.shared_per_block_optin},
                    {"shared_memory_per_multiprocessor", gpu.shared_per_multiprocessor},
                    {"threads_per_multiprocessor", gpu.threads_per_multiprocessor},
                    {"l2_cache", gpu.l2_bytes},
                    {"clock", gpu.clock_khz},
                    {"memory_clock", gpu.memory_clock_khz},
                    {"memory_bus", gpu.memory_bus_bits}});
  return rows;
}

}  // namespace assay::binding
