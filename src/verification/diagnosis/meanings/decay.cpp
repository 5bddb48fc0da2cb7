// Meanings of the decay: whose, when, and how often it acts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "src/verification/diagnosis/meanings/paths.h"
#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kForgotten = -6e4;  // a log decay whose weight is 0

std::vector<Variant> of_each_gate(
    const FailingRun& run,
    const std::function<void(const std::string&, const Tensor&, std::vector<Variant>&)>& add) {
  std::vector<Variant> variants;
  for (const std::string& name : run.gates()) add(name, run.inputs().at(name), variants);
  return variants;
}

TensorChange multiplied(double factor) {
  return [factor](const Tensor& g) { return mapped(g, [factor](double x, int64_t) { return factor * x; }); };
}

/// Every log decay times a factor.
std::vector<Variant> scaled_gate(const FailingRun& run, double factor, const char* text) {
  return of_each_gate(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    v.push_back(on_input(run, fmt::format("{}: {}", name, text), name, multiplied(factor)));
  });
}

std::vector<Variant> gate_missing(const FailingRun& run) {
  std::vector<Variant> v = scaled_gate(run, 0, "no decay at all");
  if (!run.gates().empty()) {
    std::vector<Pattern> patterns = common_patterns(run);
    patterns.erase(patterns.begin());  // at every token: as above
    append(v, at_patterns(run, patterns, "no decay", [](const TokenPlace& p) {
             return Events{{-1, p.row, p.row}};
           }));
  }
  append(v, gates_changed_on_a_path(run, "no decay", multiplied(0)));
  return v;
}

std::vector<Variant> gate_twice(const FailingRun& run) {
  std::vector<Variant> v = scaled_gate(run, 2, "twice its decay");
  if (!run.gates().empty()) {
    std::vector<Pattern> patterns = common_patterns(run);
    patterns.erase(patterns.begin());
    append(v, at_patterns(run, patterns, "the decay applied twice", [](const TokenPlace& p) {
             return Events{{p.row, -1, -1}, {p.row, p.row, p.row}};
           }));
  }
  append(v, gates_changed_on_a_path(run, "twice the decay", multiplied(2)));
  return v;
}

std::vector<Variant> decay_base(const FailingRun& run) {
  std::vector<Variant> v = scaled_gate(run, kLn2, "2^g for e^g");
  append(v, scaled_gate(run, 1 / kLn2, "e^x of an exponent meant for base 2"));
  append(v, gates_changed_on_a_path(run, "2^g for e^g", multiplied(kLn2)));
  append(v, gates_changed_on_a_path(run, "e^x of an exponent meant for base 2", multiplied(1 / kLn2)));
  return v;
}

/// How far the outputs are from `from` towards `to`, over the wrong elements, each in units of what it may be
/// off by: 1 where they are `to`.
double along(const FailingRun& run, const Prediction& from, const Prediction& to) {
  double over = 0, under = 0;
  for (const OutputComparison* o : run.wrong()) {
    const auto a = from.find(o->name), b = to.find(o->name);
    const auto got = run.outputs->find(o->name);
    if (a == from.end() || b == to.end() || got == run.outputs->end()) continue;
    const Tensor& is = got->second;
    const ReferenceOutput& right = *run.expected(o->name);
    for (size_t i = 0; i < a->second.mid.size(); ++i) {
      const double unit = right.bound[i] + right.rad[i];
      if (o->verdicts[i] != ElementVerdict::violation || !(unit > 0)) continue;
      const double step = (b->second.mid[i] - a->second.mid[i]) / unit;
      const double error = (is.value(static_cast<int64_t>(i)) - a->second.mid[i]) / unit;
      if (std::isfinite(step) && std::isfinite(error)) over += error * step, under += step * step;
    }
  }
  return under > 0 ? over / under : 0;
}

/// Every log decay times one factor, fitted to the wrong elements by Gauss's and Newton's method, the
/// derivative a difference. None where no factor from 1/16 to 16 is found.
std::optional<Prediction> scaled_by_fit(const FailingRun& run, const std::string& gate, std::string& text,
                                        double& factor) {
  constexpr double kStep = 0x1p-12, kFound = 0x1p-20, kMost = 16;
  constexpr int kSteps = 8;
  const auto at = [&](double factor) {
    return evaluate_with(run, gate, multiplied(factor)(run.inputs().at(gate)));
  };
  factor = 1;
  double change = 1;
  std::optional<Prediction> here = reference_prediction(run);
  for (int step = 0; step < kSteps && std::fabs(change) > kFound; ++step) {
    const std::optional<Prediction> there = at(factor * (1 + kStep));
    if (!there) return std::nullopt;
    change = along(run, *here, *there) * kStep;
    factor *= 1 + std::clamp(change, -0.5, 1.0);
    if (!(factor > 1 / kMost && factor < kMost) || !(here = at(factor))) return std::nullopt;
  }
  if (std::fabs(change) > kFound || std::fabs(factor - 1) < kFound) return std::nullopt;
  text = fmt::format(" {:.6g}", factor);
  const Prediction right = reference_prediction(run);
  for (auto& [name, output] : *here) {
    const auto expected = right.find(name);  // an output that the kernel does not have is in no reference
    for (size_t i = 0; expected != right.end() && i < output.mid.size(); ++i)
      output.bound[i] += left_by_fit(run, name, output.mid[i] - expected->second.mid[i]);
  }
  return here;
}

std::vector<Variant> gate_scaled(const FailingRun& run) {
  constexpr double kChoices = 16;  // of the factor, as of a term's weight
  return of_each_gate(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    const auto factor = std::make_shared<std::string>();
    const auto numbers = std::make_shared<Numbers>();
    Variant variant{
        fmt::format("{} enters times", name),
        [&run, name, factor, numbers] { return scaled_by_fit(run, name, *factor, (*numbers)[name]); },
        kChoices};
    variant.fitted = factor, variant.numbers = numbers, variant.input = name, variant.sweep = true;
    v.push_back(std::move(variant));
  });
}

std::vector<Variant> decay_of_another_head(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor& g, std::vector<Variant>& v) {
    const int axis = head_axis(g);
    if (axis < 0) return;
    for (const IndexMap& map : index_maps(g.axes[static_cast<size_t>(axis)].size))
      v.push_back(on_input(run, fmt::format("{} of another head, {}", name, map.text), name,
                           [axis, map](const Tensor& x) { return moved(x, axis, map.from); }));
    const auto tokens = static_cast<size_t>(axis_of(g, "T")), heads = static_cast<size_t>(axis);
    if (g.axes[tokens].size > 1 && g.axes[heads].size > 1)
      v.push_back(
          on_input(run, fmt::format("{} read as if its heads came before its tokens", name), name,
                   [tokens, heads](const Tensor& x) { return with_axes_exchanged(x, tokens, heads); }));
  });
}

std::vector<Variant> decay_of_another_sequence(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    for (const IndexMap& map : index_maps(run.sequences()))
      v.push_back(on_input(run, fmt::format("{} of another sequence, {}", name, map.text), name,
                           [&run, map](const Tensor& x) { return of_sequences(run, x, map.from); }));
  });
}

std::vector<Variant> decay_of_another_channel(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor& g, std::vector<Variant>& v) {
    const std::string& last = g.axes.back().name;
    if (last == "T" || last == "H") return;
    const int axis = static_cast<int>(g.axes.size()) - 1;
    for (const IndexMap& map : index_maps(g.axes.back().size))
      v.push_back(on_input(run, fmt::format("{} of another channel, {}", name, map.text), name,
                           [axis, map](const Tensor& x) { return moved(x, axis, map.from); }));
  });
}

std::vector<Variant> decay_shifted(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    for (const int64_t by : {1, -1})
      for (const bool keep : {false, true})
        v.push_back(on_input(run,
                             fmt::format("{} of the token {}{}", name, by > 0 ? "before" : "after",
                                         keep ? ", the outermost kept" : ""),
                             name,
                             [&run, by, keep](const Tensor& x) { return moved_in_time(run, x, by, keep); }));
    for (const int64_t C : chunk_sizes(run))
      for (const int64_t by : {1, -1})
        v.push_back(on_input(run,
                             fmt::format("{} of the token {} in each chunk of {}, the outermost kept", name,
                                         by > 0 ? "before" : "after", C),
                             name,
                             [&run, by, C](const Tensor& x) { return moved_in_chunks(run, x, by, C); }));
  });
}

std::vector<Variant> decay_of_one_token_of_a_block(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    append(v, of_one_token_of_each_block(run, name));
  });
}

std::vector<Variant> clamped(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor& g, std::vector<Variant>& v) {
    double least = 0;
    for (int64_t i = 0; i < g.size(); ++i) least = std::min(least, g.value(i));
    for (const double limit : {-1., -2., -3., -4., -5., -6., -8., -10., -12., -16., -20., -24., -32., -50.,
                               -64., -80., -88., -100.})
      if (least < limit)
        v.push_back(
            on_input(run, fmt::format("{} cut off at {}", name, limit), name, [limit](const Tensor& x) {
              return mapped(x, [limit](double g, int64_t) { return std::max(g, limit); });
            }));
  });
}

std::vector<Variant> rounded_gate(const FailingRun& run, Dtype dtype) {
  return of_each_gate(run, [&](const std::string& name, const Tensor& g, std::vector<Variant>& v) {
    if (format(g.dtype).precision > format(dtype).precision)
      v.push_back(on_input(run, fmt::format("{} rounded to {}", name, format(dtype).name), name,
                           [dtype](const Tensor& x) { return rounded_to(x, dtype); }));
    v.push_back(on_input(run, fmt::format("e^{} rounded to {}", name, format(dtype).name), name,
                         [dtype](const Tensor& x) {
                           return mapped(x, [dtype](double g, int64_t) {
                             const double weight = round_to(dtype, std::exp(g));
                             return weight > 0 ? std::log(weight) : kForgotten;
                           });
                         }));
  });
}

/// Steps of the cumulative sum from each chunk's start after that sum was rounded.
Tensor of_rounded_sums(const FailingRun& run, const Tensor& g, int64_t chunk, Dtype dtype) {
  const int64_t width = token_width(g);
  Tensor out(g.name, Dtype::fp64, g.axes);
  for (const auto& [first, length] : run.spans())
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0, before = 0;
      for (int64_t t = 0; t < length; ++t) {
        if (t % chunk == 0) sum = before = 0;
        sum += g.value((first + t) * width + c);
        const double now = round_to(dtype, sum);
        out.set((first + t) * width + c, now - before);
        before = now;
      }
    }
  return out;
}

std::vector<Variant> rounded_sum(const FailingRun& run) {
  return of_each_gate(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    std::vector<int64_t> chunks = chunk_sizes(run);
    chunks.push_back(int64_t{1} << 40);
    for (const int64_t chunk : chunks)
      for (const Dtype dtype : {Dtype::bf16, Dtype::fp16})
        v.push_back(on_input(
            run,
            fmt::format("the sum of {} since {} rounded to {}", name,
                        chunk > (1 << 30) ? "the first token" : fmt::format("the chunk of {}", chunk),
                        format(dtype).name),
            name, [&run, chunk, dtype](const Tensor& x) { return of_rounded_sums(run, x, chunk, dtype); }));
  });
}

/// Read with the decays up to the token before, the own term as it should be.
std::vector<Variant> exclusive(const FailingRun& run) {
  std::vector<Variant> v = edge_gates_changed_on_a_path(run, 0);
  if (!reads_before_write(run)) append(v, entering_read_otherwise(run));
  if (run.gates().empty() || !is_schedulable(run) || reads_before_write(run)) return v;
  if (is_linear(run) && can_reset(run))
    v.push_back({"a token reads the state before its own decay, its own term added", [&run] {
                   Schedule own = schedule_of(run, [](const TokenPlace& p) {
                     return Events{{-1, -1, -1, true}, {-1, p.row, p.row}};
                   });
                   own.initial_state = own.final_state = false;
                   return sum_of(evaluate_schedule(
                                     run, schedule_of(run,
                                                      [](const TokenPlace& p) {
                                                        return Events{{-1, -1, p.row}, {p.row, p.row, -1}};
                                                      })),
                                 evaluate_schedule(run, own));
                 }});
  append(v, at_patterns(run, common_patterns(run), "written and read before its own decay",
                        [](const TokenPlace& p) {
                          return Events{{-1, p.row, p.row}, {p.row, -1, -1}};
                        }));
  return v;
}

/// Keys times their token's own decay; none where the gate is not of the keys' tokens.
std::optional<FailingRun> with_decayed_keys(const FailingRun& run) {
  const auto k = run.inputs().find("k");
  if (run.gates().size() != 1 || k == run.inputs().end()) return std::nullopt;
  const Tensor& g = run.inputs().at(run.gates().front());
  if (g.size() == 0 || k->second.size() % g.size() != 0 || token_width(k->second) % token_width(g) != 0)
    return std::nullopt;
  const int64_t channels = k->second.size() / g.size();
  FailingRun changed = run;
  TensorMap inputs = run.inputs();
  inputs["k"] =
      mapped(k->second, [&](double x, int64_t flat) { return x * std::exp(g.value(flat / channels)); });
  changed.owned = std::make_shared<const TensorMap>(std::move(inputs));
  changed.problem.inputs = changed.owned.get();
  return changed;
}

/// Between two tokens lie the decays of both, of the one that was written and of the one that reads; a
/// token's own term is as it should be. Nothing is said of states and gates.
std::optional<Prediction> with_both_ends(const FailingRun& run) {
  const std::optional<FailingRun> decayed = with_decayed_keys(run);
  if (!decayed) return std::nullopt;
  const auto alone = [&](const FailingRun& of) {
    Schedule own = schedule_of(run, [](const TokenPlace& p) {
      return Events{{-1, -1, -1, true}, {-1, p.row, p.row}};
    });
    own.initial_state = own.final_state = false;
    return evaluate_schedule(of, own);
  };
  const auto all = evaluate_schedule(*decayed, schedule_of(run, [&](const TokenPlace& p) {
    return reads_before_write(run) ? Events{{p.row, -1, -1}, {-1, p.row, p.row}}
                                   : Events{{p.row, p.row, p.row}};
  }));
  const auto own_decayed = alone(*decayed), own = alone(run);
  if (!all || !own_decayed || !own) return std::nullopt;
  Prediction p = combine(1, *all, -1, *own_decayed);
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  if (const auto dk = p.find("dk"); dk != p.end()) {
    const Tensor &k = run.inputs().at("k"), &g = run.inputs().at(run.gates().front());
    const int64_t channels = k.size() / g.size();
    for (size_t i = 0; i < dk->second.mid.size(); ++i)
      dk->second.mid[i] *= std::exp(g.value(static_cast<int64_t>(i) / channels));
  }
  p = combine(1, p, 1, *own);
  for (auto& [name, output] : p) {
    const bool gate = name == "d" + run.gates().front() || name == "dg_gamma";
    const auto got = run.outputs->find(name);
    if (gate || (got != run.outputs->end() && token_width(got->second) == 0))
      std::fill(output.mid.begin(), output.mid.end(), nothing);
  }
  return p;
}

std::vector<Variant> inclusive(const FailingRun& run) {
  std::vector<Variant> v;
  if (run.gates().empty()) return v;
  if (can_reset(run) && is_linear(run))
    v.push_back({"the decays of both ends lie between a write and what reads it",
                 [&run] { return with_both_ends(run); }});
  std::vector<Pattern> patterns = common_patterns(run);
  append(v, edge_gates_changed_on_a_path(run, 2));
  append(v, leaving_decayed_by_own_gate(run));
  if (reads_before_write(run)) append(v, entering_read_otherwise(run));
  if (reads_before_write(run)) {
    append(v, at_patterns(run, patterns, "a token is read with its own decay", [](const TokenPlace& p) {
             return Events{{p.row, -1, -1}, {-1, p.row, p.row}};
           }));
    append(v,
           at_patterns(run, patterns, "a token's own write decays by its own gate", [](const TokenPlace& p) {
             return Events{{-1, p.row, p.row}, {p.row, -1, -1}};
           }));
    append(v, at_patterns(run, {patterns.front()}, "a token reads the state after its write, without bonus",
                          [](const TokenPlace& p) {
                            return Events{{p.row, p.row, -1}, {-1, -1, p.row}};
                          }));
    return v;
  }
  append(v, at_patterns(run, patterns, "a token's own write decays by its own gate", [](const TokenPlace& p) {
           return Events{{-1, p.row, -1}, {p.row, -1, p.row}};
         }));
  append(v, at_patterns(run, single_tokens(run, 96), "a token's own write decays by its own gate",
                        [](const TokenPlace& p) {
                          return Events{{-1, p.row, -1}, {p.row, -1, p.row}};
                        }));
  return v;
}

}  // namespace

std::vector<Meaning> decay_meanings() {
  const char* index = "check the offset with which the gate is loaded";
  return {
      {"gate-missing", "the decay is not applied: everywhere, or at certain tokens", "apply the decay there",
       gate_missing},
      {"gate-sign", "the decay is inverted", "check the sign of the exponent",
       [](const FailingRun& run) { return scaled_gate(run, -1, "the inverse decay"); }, 1, true},
      {"gate-applied-twice", "the decay acts twice", "two factors both hold that decay", gate_twice},
      {"decay-base", "exp for exp2, or the reverse", "check where log2(e) is multiplied", decay_base},
      {"gate-scaled", "the log decay enters times a constant", "check what multiplies it", gate_scaled, 0.93},
      {"gate-of-another-head", "another head's gate decays", index, decay_of_another_head},
      {"gate-of-another-sequence", "another sequence's gate decays", index, decay_of_another_sequence},
      {"gate-of-another-channel", "another channel's gate decays", index, decay_of_another_channel},
      {"gate-of-another-token", "the tokens of a block all decay with the gate of its first, or last",
       "check the row of the gate", decay_of_one_token_of_a_block},
      {"decay-shifted-one-step", "the gate of the token before or after decays", "check the row of the gate",
       decay_shifted},
      {"decay-exclusive-for-inclusive",
       "decays end one token early along T: what token i writes reaches token t without the decay of t",
       "the cumulative decay of what is read should include the token's own", exclusive},
      {"decay-inclusive-for-exclusive",
       "decays start one token early or end one late along T: what token i writes reaches token t with "
       "the decay of i too, or of t where t reads before it decays",
       "the cumulative decay of what is written or read should end one token earlier", inclusive},
      {"gate-clamped", "log decays are cut off at a limit", "a limit changes the mathematics: remove it",
       clamped},
      {"gate-rounded-to-bf16", "the log decay is rounded to bf16 before it is used",
       "keep the gate in its own format up to the exponential",
       [](const FailingRun& run) { return rounded_gate(run, Dtype::bf16); }, 1, false, true},
      {"gate-rounded-to-fp16", "the log decay is rounded to fp16 before it is used",
       "keep the gate in its own format up to the exponential",
       [](const FailingRun& run) { return rounded_gate(run, Dtype::fp16); }, 1, false, true},
      {"decay-sum-rounded", "the cumulative decay is rounded to bf16 or fp16",
       "a sum's rounding error becomes a relative error of the weight: keep it in fp32", rounded_sum, 1,
       false, true}};
}

}  // namespace assay
