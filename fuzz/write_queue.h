// What a campaign writes to its database, in its order. While the database's server is away, writes wait here
// and the campaign goes on.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "fuzz/database.h"

namespace assay {

class WriteQueue {
 public:
  /// One transaction, so that it can be repeated. What it refers to has to live until it was carried out.
  using Write = std::function<void(Database&)>;

  /// `least_pause` passes between two tries to reach a server that is away.
  explicit WriteQueue(const std::string& where,
                      std::chrono::milliseconds least_pause = std::chrono::seconds(1))
      : database_(where), least_pause_(least_pause) {}

  Database& database() { return database_; }

  /// Carries out what waits, and this. Where the server is away it waits, and `why_away` says why. Throws
  /// BadInput where a write fails otherwise.
  void add(Write);
  /// Tries until all is carried out, for at most so long. False: something still waits.
  bool finish(std::chrono::milliseconds);

  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  /// Empty while the server answers.
  const std::string& why_away() const { return why_away_; }

 private:
  using Clock = std::chrono::steady_clock;
  void carry_out();

  Database database_;
  std::deque<Write> waiting_;
  std::string why_away_;
  std::chrono::milliseconds least_pause_;
  Clock::time_point next_try_{};
};

}  // namespace assay
