// Plans, tensors and outcomes as bytes, between a program and its GPU worker: the same binary on both sides,
// so the form has no version and is not checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/program/outcome.h"
#include "src/base/program/program.h"

namespace assay {

class WireWriter {
 public:
  std::vector<std::byte> bytes;

  template <typename Number>
  void number(Number value) {
    raw(&value, sizeof value);
  }
  void text(const std::string& value);
  void tensor(const Tensor&);
  void tensors(const TensorMap&);
  void program(const Program&);
  void outcome(const Outcome&);

 private:
  void raw(const void* data, size_t size);
};

/// Reads back what WireWriter wrote, in the same order.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number value;
    raw(&value, sizeof value);
    return value;
  }
  std::string text();
  Tensor tensor();
  TensorMap tensors();
  Program program();
  Outcome outcome();

 private:
  void raw(void* data, size_t size);
  std::span<const std::byte> rest_;
};

}  // namespace assay
