// The memory that a caller lends to a launch, and the launch as a step of a program.
#pragma once
#include <string>
#include <vector>

#include "include/assay_engine.h"
#include "src/base/program/program.h"
#include "src/base/vm/code.h"
#include "src/base/vm/device_heap.h"

namespace assay::binding {

/// What a module of one launch alone is called.
inline constexpr const char* kModuleOfOne = "module";

/// The caller's storages: sorted, what overlaps made one, empty ones left out.
class Storages {
 public:
  explicit Storages(const assay_launch&);

  /// No two of one name, for a program that finds them by it.
  void tell_apart();

  size_t size() const { return arrays_.size(); }
  const assay_array& operator[](size_t i) const { return arrays_[i]; }
  const std::string& name(size_t i) const { return names_[i]; }
  std::byte* data(size_t i) const { return reinterpret_cast<std::byte*>(arrays_[i].address); }

  /// The storage that holds a byte; -1: none.
  int64_t find(uint64_t address) const;

 private:
  std::vector<assay_array> arrays_;
  std::vector<std::string> names_;
};

/// The launch, of the module kModuleOfOne. Throws BadInput where its arguments do not fit the entry.
Launch launch_of(const assay_module&, const assay_launch&);
/// Storages that addresses in the arguments or in objects of the device's heap reach, or that are variables
/// which the entry names, and in turn those that addresses in them reach.
std::vector<bool> reached(const Launch&, const vm::Code&, const Storages&,
                          const vm::DeviceHeap* heap = nullptr);
/// A storage's bytes: the tensor that fills it, or its elements in a row.
Tensor contents_of(const assay_array&, const std::string& name);

}  // namespace assay::binding
