#include "src/base/watch/birth_buffer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "src/base/watch/float_type.h"

namespace assay::watch {
namespace {

template <class T>
T read(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool is_born(Born born, double x) {
  return born == Born::nan ? std::isnan(x) : std::isinf(x);
}

/// Values of one half of the result: the operands, the result last.
std::vector<double> values_of(const WatchedSite& site, const Record& record, int half) {
  std::vector<double> values;
  const bool packed = ptx::is_packed(site.result);
  const bool crosses = packed && site.sources.size() == 2 && !ptx::is_packed(site.sources[0]);
  for (size_t i = 0; i < site.sources.size(); ++i) {
    if (crosses && static_cast<int>(i) != 1 - half) continue;
    values.push_back(
        value_of(site.sources[i], record.operands[i], ptx::is_packed(site.sources[i]) ? half : 0));
  }
  values.push_back(value_of(site.result, record.result, half));
  return values;
}

/// Those of the half in which it was born.
std::vector<double> values_of(const WatchedSite& site, const Record& record) {
  for (int half = 0; half < (ptx::is_packed(site.result) ? 2 : 1); ++half) {
    std::vector<double> values = values_of(site, record, half);
    bool clean = is_born(record.born, values.back());
    for (size_t i = 0; i + 1 < values.size(); ++i)
      clean &= record.born == Born::nan ? !std::isnan(values[i]) : std::isfinite(values[i]);
    if (clean) return values;
  }
  return values_of(site, record, 0);
}

}  // namespace

std::vector<Record> records_of(std::span<const std::byte> buffer) {
  std::vector<Record> records;
  for (size_t at = place::head, i = 0; at + place::record <= buffer.size(); at += place::record, ++i) {
    Record r;
    r.count = read<uint32_t>(buffer, at + place::count);
    if (r.count == 0) continue;
    r.site = static_cast<int32_t>(i / kRecordsPerSite), r.born = static_cast<Born>(i % kRecordsPerSite);
    r.launch = read<uint32_t>(buffer, at + place::launch);
    r.nanoseconds = read<uint64_t>(buffer, at + place::time);
    r.block = read<std::array<uint32_t, 3>>(buffer, at + place::block);
    r.thread = read<std::array<uint32_t, 3>>(buffer, at + place::thread);
    r.operands = read<std::array<uint64_t, 3>>(buffer, at + place::operands);
    r.result = read<uint64_t>(buffer, at + place::result);
    records.push_back(r);
  }
  return records;
}

std::string example_of(const WatchedSite& site, const Record& record) {
  const std::vector<double> values = values_of(site, record);
  std::string text;
  for (size_t i = 0; i + 1 < values.size(); ++i) text += fmt::format("{}{:.6g}", i ? ", " : "", values[i]);
  return fmt::format("{}{}-> {:.6g}", text, text.empty() ? "" : " ", values.back());
}

bool is_division_by_zero(const ptx::Instruction& instruction, const WatchedSite& site, const Record& record) {
  using ptx::Operation;
  const Operation operation = instruction.form.operation;
  const bool divides = operation == Operation::div || operation == Operation::rcp ||
                       operation == Operation::rsqrt || operation == Operation::lg2;
  if (!divides || record.born != Born::infinity) return false;
  const std::vector<double> values = values_of(site, record);
  return values.size() >= 2 && values[values.size() - 2] == 0;
}

bool was_infinite(const WatchedSite& site, const Record& record) {
  if (record.born != Born::nan || site.product) return false;
  const std::vector<double> values = values_of(site, record);
  for (size_t i = 0; i + 1 < values.size(); ++i)
    if (std::isinf(values[i])) return true;
  return false;
}

}  // namespace assay::watch
