// One launch on the process's own memory.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "include/assay_engine.h"
#include "src/base/program/byte_set.h"
#include "src/base/program/program.h"
#include "src/base/vm/code.h"

/// PTX text whose entries stay decoded as long as it lives.
struct assay_module {
  assay::Module source;
  std::shared_ptr<const assay::ptx::Module> parsed;
  mutable std::mutex mutex;
  mutable std::map<std::string, std::shared_ptr<const assay::vm::Code>> entries;

  /// Throws BadInput for an entry that there is not, or that the machine cannot run.
  const assay::vm::Code& entry(const std::string& name) const;
};

namespace assay::vm {
struct DeviceHeap;
}  // namespace assay::vm

namespace assay::binding {

std::unique_ptr<assay_module> load_module(std::string ptx, std::string path);
nlohmann::json describe(const assay_module&);

/// Without checks the launch works on the storages as they lie there. With checks it is judged on copies of
/// those that its arguments reach, at the same addresses, and what it wrote is copied back: addresses are the
/// arguments' and, followed on, the 64-bit words of integer and untyped storages.
/// `heap`, where there is one, is what kernels have allocated before, and becomes what they leave;
/// `unwritten`, by a storage's address, the bytes that hold nothing yet, and becomes those that still do.
nlohmann::json launch(const assay_module&, const assay_launch&,
                      std::shared_ptr<const vm::DeviceHeap>* heap = nullptr,
                      std::map<uint64_t, ByteSet>* unwritten = nullptr);

}  // namespace assay::binding
