// Meanings of what a delta rule takes out of its state: by how much, read when, and solved for how.
#include <fmt/format.h>

#include <algorithm>

#include "src/verification/diagnosis/meanings/general_run.h"
#include "src/verification/diagnosis/meanings/propose.h"
#include "src/verification/diagnosis/meanings/rule_run.h"

namespace assay {
namespace {

constexpr int64_t kTiles[] = {16, 64, 32, 8};

Variant by_rule(const FailingRun& run, std::string text, const RuleChange& change) {
  return {std::move(text), [&run, change] { return evaluate_rule(run, change); }};
}

bool solves_in_tiles(const FailingRun& run) {
  return is_delta_rule(run) || is_general_rule(run);
}

/// The change in tiles of each size that the longest sequence has more tokens than one of, and what it is
/// where gradients are wrong: of what goes backwards alone, of the states that it is made of too.
std::vector<Variant> in_tiles(const FailingRun& run, const std::string& text, RuleChange change) {
  std::vector<Variant> v;
  if (!solves_in_tiles(run)) return v;
  int64_t longest = 0;
  for (const auto& [first, length] : run.spans()) longest = std::max(longest, length);
  int64_t all = 0;  // tiles that are the whole sequence are one choice
  for (const int64_t tile : kTiles) {
    if (tile >= longest && all++ > 0) continue;
    change.tile = tile;
    const std::string where = text + fmt::format(" in tiles of {}", tile);
    v.push_back(by_rule(run, where, change));
    if (!run.backward) continue;
    RuleChange only = change;
    only.in_states = false;
    v.push_back(by_rule(run, where + ", backwards alone", only));
  }
  return v;
}

std::vector<Variant> rate_missing(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_delta_rule(run) || run.inputs().count("beta") == 0) return v;
  const auto one = [](double) { return 1.0; };
  v.push_back(on_input(run, "beta taken as 1", "beta",
                       [](const Tensor& t) { return mapped(t, [](double, int64_t) { return 1.0; }); }));
  RuleChange taken, written;
  taken.taken = one, written.written = one;
  v.push_back(by_rule(run, "what is read is taken away without beta", taken));
  v.push_back(by_rule(run, "v is written without beta", written));
  return v;
}

std::vector<Variant> rate_squared(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_delta_rule(run) || run.inputs().count("beta") == 0) return v;
  const auto squared = [](double beta) { return beta * beta; };
  v.push_back(on_input(run, "beta squared", "beta",
                       [](const Tensor& t) { return mapped(t, [](double x, int64_t) { return x * x; }); }));
  RuleChange taken, written;
  taken.taken = squared, written.written = squared;
  v.push_back(by_rule(run, "what is read is taken away times beta squared", taken));
  v.push_back(by_rule(run, "v is written times beta squared", written));
  return v;
}

std::vector<Variant> removal_missing(const FailingRun& run) {
  RuleChange change;
  change.taken = [](double) { return 0.0; };
  return is_delta_rule(run) ? std::vector{by_rule(run, "nothing is taken away", change)}
                            : std::vector<Variant>{};
}

std::vector<Variant> read_undecayed(const FailingRun& run) {
  if (!is_delta_rule(run) || run.gates().empty()) return {};
  RuleChange change;
  change.read_before_decay = true;
  std::vector<Variant> v = {by_rule(run, "what is taken away is read before the token's decay", change)};
  return v;
}

std::vector<Variant> solve_skipped(const FailingRun& run) {
  RuleChange change;
  change.inverse = [](const RuleSquare& N, const std::vector<double>&) {
    return inverse_of_one_plus(RuleSquare(N.n));
  };
  return in_tiles(run, "updates are not solved for", change);
}

std::vector<Variant> solve_transposed(const FailingRun& run) {
  RuleChange change;
  change.inverse = [](const RuleSquare& N, const std::vector<double>&) {
    const RuleSquare X = inverse_of_one_plus(N);
    RuleSquare y(N.n);
    for (int64_t i = 0; i < N.n; ++i)
      for (int64_t j = 0; j < N.n; ++j) y(i, j) = X(j, i);
    return y;
  };
  return in_tiles(run, "the inverse enters transposed", change);
}

std::vector<Variant> solve_off_by_one(const FailingRun& run) {
  RuleChange early, own;
  early.inverse = [](const RuleSquare& N, const std::vector<double>&) {
    RuleSquare L = N;
    for (int64_t i = 1; i < L.n; ++i) L(i, i - 1) = 0;
    return inverse_of_one_plus(L);
  };
  own.inverse = [](const RuleSquare& N, const std::vector<double>& of_tokens) {
    RuleSquare L = N;
    for (int64_t i = 0; i < L.n; ++i) L(i, i) = of_tokens[static_cast<size_t>(i)];
    return inverse_of_one_plus(L);
  };
  std::vector<Variant> v = in_tiles(run, "the token before is not solved for", early);
  append(v, in_tiles(run, "a token's own update is solved for too", own));
  return v;
}

/// 1 - N + N^2 - .. of so many terms.
RuleSquare series(const RuleSquare& N, int terms) {
  RuleSquare sum = inverse_of_one_plus(RuleSquare(N.n)), power = sum;
  for (int n = 1; n < terms; ++n) {
    RuleSquare next(N.n);
    for (int64_t i = 0; i < N.n; ++i)
      for (int64_t m = 0; m < i; ++m)
        for (int64_t j = 0; j <= m; ++j) next(i, j) -= N(i, m) * power(m, j);
    power = next;
    for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += power.values[i];
  }
  return sum;
}

std::vector<Variant> solve_cut_short(const FailingRun& run) {
  std::vector<Variant> v;
  for (const int terms : {2, 4, 8}) {
    RuleChange change;
    change.inverse = [terms](const RuleSquare& N, const std::vector<double>&) { return series(N, terms); };
    append(v, in_tiles(run, fmt::format("the inverse is a series of {} terms", terms), change));
  }
  return v;
}

std::vector<Variant> decay_shifted_in_solve(const FailingRun& run) {
  if (run.gates().empty()) return {};
  const bool before = is_general_rule(run);  // it reads before its decay
  RuleChange other, with;
  other.pairs = before ? PairDecay::with_later : PairDecay::without_own, with.pairs = PairDecay::with_earlier;
  std::vector<Variant> v = in_tiles(
      run, fmt::format("keys are solved for {} the later token's decay", before ? "with" : "without"), other);
  append(v, in_tiles(run, "keys are solved for with the earlier token's decay too", with));
  return v;
}

std::vector<Variant> last_update_lost(const FailingRun& run) {
  RuleChange change;
  change.last_update_lost = true;
  return in_tiles(run, "the last token's update does not go on", change);
}

std::vector<Variant> gradient_without_solve(const FailingRun& run) {
  RuleChange change;
  change.gradient_of_solve = false, change.in_states = false;
  std::vector<Variant> v;
  if (!solves_in_tiles(run) || !run.backward) return v;
  const char* const which = is_general_rule(run) ? "da and db" : "dk and dbeta";
  for (const int64_t tile : kTiles) {
    change.tile = tile;
    v.push_back(by_rule(
        run, fmt::format("{} lack what passes through the matrix of tiles of {}", which, tile), change));
  }
  return v;
}

}  // namespace

std::vector<Meaning> removal_meanings() {
  return {{"rate-missing", "a delta rule's beta is ignored, where it takes away or where it writes",
           "check where beta enters", rate_missing},
          {"rate-squared", "a delta rule's beta enters twice", "check where beta enters", rate_squared},
          {"removal-missing", "a delta rule takes nothing out of its state",
           "check what is read with the key", removal_missing, 0.97},
          {"removal-undecayed", "a delta rule reads what it takes away before the token's decay",
           "decay the state before it is read with the key", read_undecayed},
          {"solve-skipped", "the updates of a tile's tokens do not know of each other",
           "check that the inverse of 1 + N multiplies them", solve_skipped},
          {"solve-transposed", "the inverse of a tile's matrix is transposed", "check its rows and columns",
           solve_transposed},
          {"solve-off-by-one", "a tile's matrix has its diagonal, or lacks what is next to it",
           "check the mask: strictly below the diagonal", solve_off_by_one},
          {"solve-cut-short", "the inverse of a tile's matrix is a series with too few terms",
           "as many terms as tokens, or substitution", solve_cut_short},
          {"solve-decay-shifted", "the decays between a tile's keys are those of a token more, or less",
           "check the running sums of g at both keys", decay_shifted_in_solve},
          {"update-lost-at-tile-edges", "a tile's last update is missing from the state that goes on",
           "check the rows of the sum over a tile's tokens", last_update_lost},
          {"gradient-without-solve", "gradients of keys and rates lack what passes through a tile's matrix",
           "add the gradient of 1 + N", gradient_without_solve}};
}

}  // namespace assay
