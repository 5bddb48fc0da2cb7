// Where a fuzz run leaves what it finds: a database, or nowhere.
#pragma once
#include <optional>
#include <string>

#include "fuzz/fuzz.h"
#include "fuzz/write_queue.h"

namespace assay {

/// A database that fails is given up, and the listener told; the run goes on without it.
class RunStore {
 public:
  /// Empty: nowhere. Throws BadInput as Database does.
  RunStore(const std::string& where, Listener& listener) : listener_(listener) {
    if (!where.empty()) queue_.emplace(where);
  }

  /// Null: there is none, or it was given up.
  Database* database() { return queue_ ? &queue_->database() : nullptr; }
  void write(WriteQueue::Write);
  /// What waits for a server gets a last chance.
  void finish();
  /// Why it was given up; empty: it was not.
  const std::string& lost() const { return lost_; }

 private:
  void give_up(const std::string& why);

  Listener& listener_;
  std::optional<WriteQueue> queue_;
  std::string lost_;
};

}  // namespace assay
