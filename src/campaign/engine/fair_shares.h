// Whose turn it is: several parties (kernels) get equal times, whatever one of their jobs costs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

class FairShares {
 public:
  explicit FairShares(size_t parties) : parties_(parties) {}

  void begin(size_t party) { ++parties_[party].begun; }
  /// A job that begin() counted took so long.
  void end(size_t party, double seconds) {
    ++parties_[party].ended;
    parties_[party].spent_s += seconds;
  }
  /// What belongs to its jobs, and is none.
  void spend(size_t party, double seconds) { parties_[party].spent_s += seconds; }

  /// The party that had the least so far, the first of equals; a job in flight counts as its party's average,
  /// or as everybody's where it has none.
  size_t least_served() const {
    double spent = 0;
    int64_t ended = 0;
    for (const Party& party : parties_) spent += party.spent_s, ended += party.ended;
    const double typical = ended > 0 ? spent / static_cast<double>(ended) : 1;
    size_t least = 0;
    for (size_t i = 1; i < parties_.size(); ++i)
      if (parties_[i].served(typical) < parties_[least].served(typical)) least = i;
    return least;
  }

 private:
  struct Party {
    double spent_s = 0;
    int64_t begun = 0, ended = 0;
    double served(double typical) const {
      const double average = ended > 0 ? spent_s / static_cast<double>(ended) : typical;
      return spent_s + average * static_cast<double>(begun - ended);
    }
  };
  std::vector<Party> parties_;
};

}  // namespace assay
