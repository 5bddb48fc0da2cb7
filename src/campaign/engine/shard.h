// A part of a campaign, for job schedulers and matrices of CI: shard i of n. What a shard does depends on the
// campaign, i and n alone.
#pragma once
#include <cstdint>
#include <string>

namespace assay {

struct Shard {
  int64_t number = 1, of = 1;  ///< number: 1 to of

  bool whole() const { return of == 1; }
  /// Of jobs in a list: every of-th.
  bool takes(int64_t job) const { return job % of == number - 1; }
  /// Of `all` jobs in a row: those from here on ...
  int64_t begin(int64_t all) const { return before(number - 1, all); }
  /// ... up to this one.
  int64_t end(int64_t all) const { return before(number, all); }
  /// "2/4".
  std::string text() const { return std::to_string(number) + "/" + std::to_string(of); }

 private:
  int64_t before(int64_t shards, int64_t all) const {
    return all / of * shards + all % of * shards / of;  // all * shards / of could leave 64 bits
  }
};

}  // namespace assay
