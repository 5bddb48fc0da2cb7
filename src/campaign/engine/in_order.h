// Records in the order of their jobs' numbers, in whatever order they come: what is made of them then does
// not depend on how many workers there are.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace assay {

template <typename Record>
class InOrder {
 public:
  /// Numbers count from 0, each once.
  void add(int64_t number, Record record) { waiting_.emplace(number, std::move(record)); }
  /// The next record in order, where it has come.
  std::optional<Record> next() {
    if (waiting_.empty() || waiting_.begin()->first != taken_) return std::nullopt;
    ++taken_;
    return std::move(waiting_.extract(waiting_.begin()).mapped());
  }
  /// Those that wait at the end, in order, for a job that gave none.
  std::vector<Record> rest() {
    std::vector<Record> all;
    for (auto& [number, record] : std::exchange(waiting_, {})) all.push_back(std::move(record));
    return all;
  }
  /// How many next() gave.
  int64_t taken() const { return taken_; }

 private:
  std::map<int64_t, Record> waiting_;
  int64_t taken_ = 0;
};

}  // namespace assay
