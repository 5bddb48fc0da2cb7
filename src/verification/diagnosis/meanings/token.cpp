// Meanings of which tokens are written and read, and of where sequences end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/verification/diagnosis/meanings/normaliser.h"
#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

/// Most tokens that are tried one by one.
constexpr size_t kMostSingles = 160;

std::vector<Pattern> all_patterns(const FailingRun& run) {
  std::vector<Pattern> patterns = common_patterns(run);
  for (Pattern& p : single_tokens(run, kMostSingles)) patterns.push_back(std::move(p));
  return patterns;
}

std::vector<Variant> dropped(const FailingRun& run) {
  return at_patterns(run, all_patterns(run), "nothing is written", [](const TokenPlace& p) {
    return Events{{p.row, -1, p.row}};
  });
}

/// Gradients summed over tokens where each block of rows also counts the first `extra` rows of the next.
std::optional<Prediction> with_rows_of_the_next(const FailingRun& run, int64_t block, int64_t extra) {
  TensorMap inputs = run.inputs();
  for (const std::string& name : run.cotangents()) {
    const int64_t width = token_width(inputs.at(name));
    if (width == 0) continue;
    inputs[name] = mapped(inputs.at(name), [=](double x, int64_t flat) {
      const int64_t row = flat / width;
      return row >= block && row % block < extra ? 2 * x : x;
    });
  }
  std::optional<Prediction> p = evaluate_with(run, inputs);
  for (const OutputComparison& o : *run.judged)  // a row stored twice is the same row
    if (p && token_width(run.outputs->at(o.name)) > 0) p->erase(o.name);
  return p;
}

/// Sums over tokens with some of their terms twice.
void append_twice_in_sums(const FailingRun& run, std::vector<Variant>& v) {
  if (!run.backward || !only_sums_are_wrong(run)) return;
  for (const std::string& name : run.cotangents()) {
    const Tensor& d = run.inputs().at(name);
    const int64_t width = token_width(d);
    if (width == 0) continue;
    for (const Slab& slab : slabs_of(d.size() / width)) {
      v.push_back({fmt::format("of {} tokens {} enter a sum twice", d.size() / width, slab.text),
                   [&run, name, slab, width] {
                     std::optional<Prediction> p =
                         evaluate_with(run, name, mapped(run.inputs().at(name), [&](double x, int64_t flat) {
                                         return slab.kept(flat / width) ? 2 * x : x;
                                       }));
                     for (const OutputComparison& o : *run.judged)  // those of single tokens are not summed
                       if (p && token_width(run.outputs->at(o.name)) > 0) p->erase(o.name);
                     return p;
                   }});
      v.back().sweep = true;
    }
  }
}

/// Of operators without a state: what sums over tokens is a gradient of a parameter.
std::vector<Variant> summed_twice(const FailingRun& run) {
  std::vector<Variant> v;
  if (!run.backward || !run.states().empty() || is_schedulable(run)) return v;
  const int64_t rows = run.problem.sizes.B * run.problem.sizes.T;
  for (const int64_t block : {16, 32, 64, 128, 256, 512})
    for (const int64_t extra :
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 21, 25, 28, 32, 36, 42, 51, 64, 85, 128, 256}) {
      if (block >= rows || extra > block) continue;
      v.push_back({fmt::format("each block of {} rows also counts the first {} of the next", block, extra),
                   [&run, block, extra] { return with_rows_of_the_next(run, block, extra); }});
      v.back().sweep = true;
    }
  return v;
}

std::vector<Variant> twice(const FailingRun& run) {
  std::vector<Variant> v = summed_twice(run);
  append_twice_in_sums(run, v);
  if (!v.empty() || reads_before_write(run)) return v;
  return at_patterns(run, all_patterns(run), "written twice", [](const TokenPlace& p) {
    return Events{{p.row, p.row, -1}, {-1, p.row, p.row}};
  });
}

/// The reference minus `weight` times what one token's write gives, the weight fitted to the wrong elements.
std::optional<Prediction> reweighed(const FailingRun& run, const Pattern& at, std::string& text,
                                    Numbers& numbers) {
  const auto without = evaluate_schedule(run, schedule_of(run, [&](const TokenPlace& p) {
                                           return Events{{p.row, at.holds(p) ? -1 : p.row, p.row}};
                                         }));
  if (!without) return std::nullopt;
  Prediction p = reference_prediction(run);
  double over = 0, under = 0;
  for (const OutputComparison* o : run.wrong()) {
    const auto found = without->find(o->name);
    if (found == without->end()) continue;
    const Tensor& got = run.outputs->at(o->name);
    const PredictedOutput& clean = p.at(o->name);
    const ReferenceOutput& right = *run.expected(o->name);
    for (size_t i = 0; i < clean.mid.size(); ++i) {
      const double unit = right.bound[i] + right.rad[i];
      if (o->verdicts[i] != ElementVerdict::violation || !(unit > 0)) continue;
      const double term = (clean.mid[i] - found->second.mid[i]) / unit;
      const double error = (got.value(static_cast<int64_t>(i)) - clean.mid[i]) / unit;
      if (std::isfinite(term) && std::isfinite(error)) over += error * term, under += term * term;
    }
  }
  if (!(under > 0)) return std::nullopt;
  const double weight = over / under;
  const bool dropped_or_twice = std::fabs(weight + 1) < 0x1p-9 || std::fabs(weight - 1) < 0x1p-9;
  if (std::fabs(weight) > 64 || dropped_or_twice) return std::nullopt;
  text = fmt::format(" {:.6g}", 1 + weight);
  numbers[""] = 1 + weight;
  Prediction other = combine(1 + weight, p, -weight, *without);
  for (auto& [name, output] : other)
    for (size_t i = 0; i < output.mid.size(); ++i)
      output.bound[i] += left_by_fit(run, name, output.mid[i] - p.at(name).mid[i]);
  return other;
}

std::vector<Variant> scaled_token(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_schedulable(run) || !is_linear(run)) return v;
  for (const Pattern& at : single_tokens(run, kMostSingles)) {
    const auto weight = std::make_shared<std::string>();
    const auto numbers = std::make_shared<Numbers>();
    Variant variant{fmt::format("the term written {} has the weight", at.text),
                    [&run, at, weight, numbers] { return reweighed(run, at, *weight, *numbers); },
                    at.choices};
    variant.fitted = weight, variant.numbers = numbers;
    variant.sweep = true;
    v.push_back(std::move(variant));
  }
  return v;
}

std::vector<Variant> no_diagonal(const FailingRun& run) {
  if (reads_before_write(run)) return {};
  std::vector<Variant> v = divisor_without_own_token(run);
  append(v, divisor_gradient_without_own_token(run));
  append(v, at_patterns(run, common_patterns(run), "read before it is written", [](const TokenPlace& p) {
           return Events{{p.row, -1, p.row}, {-1, p.row, -1}};
         }));
  append(v, at_patterns(run, {common_patterns(run).front()}, "read before it decays and is written",
                        [](const TokenPlace& p) {
                          return Events{{-1, -1, p.row}, {p.row, p.row, -1}};
                        }));
  return v;
}

/// At the last token of a block of C all its tokens, the last first, from an empty state: each reads the
/// later ones.
Events block_backwards(const TokenPlace& p, int64_t C) {
  Events e;
  if (p.t % C != C - 1 && p.t != p.length - 1) return e;
  e.push_back({-1, -1, -1, true});
  for (int64_t row = p.row; row >= p.row - p.t % C; --row) {
    e.push_back({-1, -1, row});
    e.push_back({-1, row, -1});
    e.push_back({row, -1, -1});
  }
  return e;
}

/// The reference, and what each token would read of the later ones of its block: the block run backwards,
/// decays times `gate`.
std::optional<Prediction> with_later_ones(const FailingRun& run, int64_t C, double gate) {
  FailingRun changed = run;
  TensorMap inputs = run.inputs();
  for (const std::string& name : run.gates())
    inputs[name] = mapped(inputs.at(name), [gate](double g, int64_t) { return gate * g; });
  changed.owned = std::make_shared<const TensorMap>(std::move(inputs));
  changed.problem.inputs = changed.owned.get();
  Schedule later = schedule_of(run, [C](const TokenPlace& p) { return block_backwards(p, C); });
  later.initial_state = later.final_state = false;
  return sum_of(reference_prediction(run), evaluate_schedule(changed, later));
}

/// The same of the next token only, or of all later ones of a block, each pair with the operands of its two
/// tokens exchanged: what a score matrix that holds k_i . q_j above the diagonal gives without its mask.
std::optional<Prediction> with_mirrored_pairs(const FailingRun& run, const std::string& reads, int64_t C,
                                              bool next) {
  FailingRun changed = run;
  TensorMap inputs = run.inputs();
  Tensor &query = inputs.at(reads), &key = inputs.at("k");
  std::swap(query, key);
  std::swap(query.name, key.name);
  changed.owned = std::make_shared<const TensorMap>(std::move(inputs));
  changed.problem.inputs = changed.owned.get();
  Schedule later = schedule_of(run, [C, next](const TokenPlace& p) {
    if (!next) return block_backwards(p, C);
    const bool pair = p.t + 1 < p.length && p.t % C != C - 1;
    return Events{{-1, -1, -1, true}, {-1, pair ? p.row + 1 : -1, -1}, {pair ? p.row + 1 : -1, -1, p.row}};
  });
  later.initial_state = later.final_state = false;
  std::optional<Prediction> extra = evaluate_schedule(changed, later);
  if (!extra) return extra;
  const std::string of_query = "d" + reads;
  if (extra->count(of_query) && extra->count("dk")) std::swap(extra->at(of_query), extra->at("dk"));
  return sum_of(reference_prediction(run), extra);
}

void append_mirrored_pairs(const FailingRun& run, std::vector<Variant>& v) {
  const std::string reads = run.inputs().count("q") ? "q" : "r";
  const auto q = run.inputs().find(reads), k = run.inputs().find("k");
  if (q == run.inputs().end() || k == run.inputs().end() || q->second.size() != k->second.size()) return;
  for (const int64_t C : {8, 16, 32, 64})
    for (const bool next : {true, false}) {
      v.push_back({fmt::format("{} of a block of {} too, with the two tokens' {} and k exchanged",
                               next ? "the next token" : "all later tokens", C, reads),
                   [&run, reads, C, next] { return with_mirrored_pairs(run, reads, C, next); }});
      v.back().sweep = true;
    }
}

/// Each token is read after `ahead` more have been written.
std::vector<Variant> future(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_schedulable(run)) return v;
  v.push_back(on_schedule(run, "read after the next token's decay and write",
                          schedule_of(run, [](const TokenPlace& p) {
                            Events e{{p.row, p.row, -1}};
                            if (p.t > 0) e.push_back({-1, -1, p.row - 1});
                            if (p.t == p.length - 1) e.push_back({-1, -1, p.row});
                            return e;
                          })));
  if (!can_reset(run) || !is_linear(run)) return v;
  v.push_back({"the next token's term is read too", [&run] {
                 Schedule next = schedule_of(run, [](const TokenPlace& p) {
                   const bool last = p.t == p.length - 1;
                   return Events{{-1, -1, -1, true}, {-1, last ? -1 : p.row + 1, -1}, {-1, -1, p.row}};
                 });
                 next.initial_state = next.final_state = false;
                 const auto usual = [](const TokenPlace& p) { return Events{{p.row, p.row, p.row}}; };
                 return sum_of(evaluate_schedule(run, schedule_of(run, usual)), evaluate_schedule(run, next));
               }});
  for (const int64_t C : {16, 8, 32, 64})  // a diagonal block without a mask
    for (const double gate : {-1.0, 0.0})
      v.push_back({fmt::format("every token of a block of {} also reads the later ones, {}", C,
                               gate == 0 ? "undecayed" : "with the inverse decays"),
                   [&run, C, gate] { return with_later_ones(run, C, gate); }});
  append_mirrored_pairs(run, v);
  return v;
}

std::vector<Variant> bonus(const FailingRun& run) {
  std::vector<Variant> v;
  if (!reads_before_write(run) || !run.inputs().count("u")) return v;
  v.push_back(on_input(run, "u taken as zero", "u", zeros));
  v.push_back(on_input(run, "u taken as one", "u",
                       [](const Tensor& u) { return mapped(u, [](double, int64_t) { return 1.0; }); }));
  const Tensor& u = run.inputs().at("u");
  for (size_t axis = 0; axis < u.axes.size(); ++axis)
    for (const IndexMap& map : index_maps(u.axes[axis].size))
      v.push_back(on_input(
          run, fmt::format("u of another {}, {}", u.axes[axis].name == "H" ? "head" : "channel", map.text),
          "u", [axis, map](const Tensor& x) { return moved(x, static_cast<int>(axis), map.from); }));
  return v;
}

Events whole(const FailingRun& run, size_t sequence, bool read) {
  Events e;
  const auto [first, length] = run.spans()[sequence];
  for (int64_t t = 0; t < length; ++t) e.push_back({first + t, first + t, read ? first + t : -1});
  return e;
}

std::vector<Variant> boundary_ignored(const FailingRun& run) {
  std::vector<Variant> v;
  const auto spans = run.spans();
  if (spans.size() < 2 || !is_schedulable(run)) return v;
  Schedule all, one;
  for (size_t n = 0; n < spans.size(); ++n) {
    Events before_all, before_one;
    for (size_t m = 0; m < n; ++m) {
      const Events e = whole(run, m, false);
      before_all.insert(before_all.end(), e.begin(), e.end());
      if (m + 1 == n) before_one = e;
    }
    const Events own = whole(run, n, true);
    before_all.insert(before_all.end(), own.begin(), own.end());
    before_one.insert(before_one.end(), own.begin(), own.end());
    all.sequences.push_back(before_all), one.sequences.push_back(before_one);
  }
  v.push_back(on_schedule(run, "the state runs on over all boundaries", all));
  v.push_back(on_schedule(run, "the sequence before comes first", one));
  all.initial_state = one.initial_state = false;
  v.push_back(on_schedule(run, "the state runs on over all boundaries from zero", all));
  for (const int64_t by : {-1, 1}) {  // the boundary one token early or late
    Schedule moved_edge;
    for (size_t n = 0; n < spans.size(); ++n) {
      Events e;
      int64_t from = spans[n].first + (n > 0 ? by : 0);
      const int64_t to = spans[n].first + spans[n].second + (n + 1 < spans.size() ? by : 0);
      for (; from < to; ++from) e.push_back({from, from, from});
      moved_edge.sequences.push_back(e);
    }
    v.push_back(on_schedule(run, fmt::format("each boundary one token too {}", by > 0 ? "late" : "early"),
                            moved_edge));
  }
  for (const bool first : {true, false}) {
    Schedule missed;  // the state of the sequence before, read where this one's should be
    for (size_t n = 0; n < spans.size(); ++n) {
      Events e;
      const auto [start, length] = spans[n];
      for (int64_t t = 0; t < length; ++t) {
        const bool edge = first ? t == 0 : t == length - 1;
        e.push_back({start + t, n > 0 && edge ? -1 : start + t, start + t});
      }
      missed.sequences.push_back(e);
    }
    v.push_back(on_schedule(
        run,
        fmt::format("the {} token of every sequence but the first is not written", first ? "first" : "last"),
        missed));
  }
  return v;
}

}  // namespace

std::vector<Meaning> token_meanings() {
  return {{"bonus-missing", "the bonus u is ignored, or another head's", "check where u enters", bonus},
          {"sequence-boundary-ignored",
           "packed sequences: the state runs on over a boundary, or the boundary is off",
           "check which offsets a sequence starts and ends at", boundary_ignored},
          {"diagonal-missing", "the token's own term is missing from its output",
           "the causal mask must keep the diagonal: s <= t", no_diagonal},
          {"future-token-included", "a later token is read", "check the causal mask", future},
          {"token-dropped", "a token's term is missing in all that follows",
           "check the rows that enter the sum", dropped},
          {"token-counted-twice", "a token's term enters twice, in what follows or in a sum over tokens",
           "check the rows that enter the sum", twice},
          {"token-scaled", "a token's term enters with another weight", "check what multiplies it",
           scaled_token}};
}

}  // namespace assay
