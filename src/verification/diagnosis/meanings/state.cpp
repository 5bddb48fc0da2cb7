// Meanings of the state: where it comes from, what becomes of it at chunk edges, and what is stored at the
// end.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/verification/diagnosis/meanings/normaliser.h"
#include "src/verification/diagnosis/meanings/passes.h"
#include "src/verification/diagnosis/meanings/propose.h"
#include "src/verification/diagnosis/rounded_state.h"

namespace assay {
namespace {

std::vector<Variant> of_each_state(
    const FailingRun& run,
    const std::function<void(const std::string&, const Tensor&, std::vector<Variant>&)>& add) {
  std::vector<Variant> variants;
  for (const std::string& name : run.states()) add(name, run.inputs().at(name), variants);
  return variants;
}

std::vector<Variant> ignored(const FailingRun& run) {
  return of_each_state(run, [&](const std::string& name, const Tensor&, std::vector<Variant>& v) {
    v.push_back(on_input(run, name + " taken as zero", name, zeros));
  });
}

/// Whose state is read in place of a sequence's and head's own.
struct Elsewhere {
  std::string text;
  std::function<Tensor(const Tensor&)> of;
};
std::vector<Elsewhere> elsewhere(const FailingRun& run, const Tensor& state) {
  std::vector<Elsewhere> list;
  for (const IndexMap& map : index_maps(run.sequences()))
    list.push_back({fmt::format("of another sequence, {}", map.text),
                    [&run, map](const Tensor& x) { return of_sequences(run, x, map.from); }});
  const int heads = head_axis(state), sequences = axis_of(state, "N");
  if (heads < 0) return list;
  for (const IndexMap& map : index_maps(state.axes[static_cast<size_t>(heads)].size))
    list.push_back({fmt::format("of another head, {}", map.text),
                    [heads, map](const Tensor& x) { return moved(x, heads, map.from); }});
  if (sequences >= 0 && state.axes[static_cast<size_t>(heads)].size > 1 && run.sequences() > 1)
    list.push_back({"read as if its heads came before its sequences", [heads, sequences](const Tensor& x) {
                      return with_axes_exchanged(x, static_cast<size_t>(sequences),
                                                 static_cast<size_t>(heads));
                    }});
  return list;
}

std::vector<Variant> of_another(const FailingRun& run) {
  std::vector<Variant> v =
      of_each_state(run, [&](const std::string& name, const Tensor& state, std::vector<Variant>& list) {
        for (const Elsewhere& other : elsewhere(run, state))
          list.push_back(on_input(run, name + " " + other.text, name, other.of));
      });
  std::vector<std::string> all =
      run.states();  // one function loads states, and their gradients on the way back
  for (const std::string& name : run.cotangents())
    if (axis_of(run.inputs().at(name), "N") >= 0) all.push_back(name);
  if (all.size() < 2) return v;
  for (const Elsewhere& other : elsewhere(run, run.inputs().at(all.front())))
    v.push_back({"states and their gradients " + other.text, [&run, all, other] {
                   TensorMap inputs = run.inputs();
                   for (const std::string& name : all) inputs[name] = other.of(inputs.at(name));
                   return evaluate_with(run, inputs);
                 }});
  return v;
}

/// The last two axes in the other order: element (r, c) is what lies at c * rows + r.
Tensor transposed(const Tensor& x) {
  const int64_t columns = x.axes.back().size, rows = x.axes[x.axes.size() - 2].size;
  return mapped(x, [&](double, int64_t flat) {
    const int64_t within = flat % (rows * columns), r = within / columns, c = within % columns;
    return x.value(flat - within + c * rows + r);
  });
}

/// Only what two limits in the wrong order let through: (r, c) with r below the columns and c below the rows.
Tensor cut_by_exchanged_limits(const Tensor& x) {
  const int64_t columns = x.axes.back().size, rows = x.axes[x.axes.size() - 2].size;
  return mapped(x, [&](double value, int64_t flat) {
    const int64_t within = flat % (rows * columns);
    return within / columns < columns && within % columns < rows ? value : 0.0;
  });
}

bool is_matrix(const Tensor& x) {
  return x.axes.size() >= 4 && x.axes.back().size * x.axes[x.axes.size() - 2].size > 1;
}

/// The same with final states (or their gradients) that have rows and columns exchanged.
Prediction with_states_transposed(const FailingRun& run, Prediction p) {
  for (auto& [name, output] : p) {
    const Tensor& got = run.outputs->count(name) ? run.outputs->at(name) : Tensor();
    if (axis_of(got, "N") < 0 || !is_matrix(got)) continue;
    const int64_t columns = got.axes.back().size, rows = got.axes[got.axes.size() - 2].size;
    const PredictedOutput before = output;
    for (int64_t flat = 0; flat < got.size(); ++flat) {
      const int64_t within = flat % (rows * columns), r = within % rows, c = within / rows;
      const auto to = static_cast<size_t>(flat), from = static_cast<size_t>(flat - within + r * columns + c);
      output.mid[to] = before.mid[from], output.bound[to] = before.bound[from];
    }
  }
  return p;
}

/// All states read and stored with their axes exchanged, or those of one name and what is stored of it.
std::optional<Prediction> read_and_stored_transposed(const FailingRun& run, const std::string& only) {
  TensorMap inputs = run.inputs();
  for (auto& [name, x] : inputs) {
    const bool state = axis_of(x, "N") >= 0 && is_matrix(x);  // cotangents of states too
    if (state && (only.empty() || name == only)) x = transposed(x);
  }
  std::optional<Prediction> p = evaluate_with(run, inputs);
  if (!p) return p;
  const Prediction stored = with_states_transposed(run, *p);
  if (only.empty()) return stored;
  std::vector<std::string> pair{"d" + only};  // states leave in the order in which they enter
  int64_t place = 0, at = 0;
  for (const ArgumentSpec& input : run.op->inputs) {
    if (input.name == only) break;
    place += input.role == Role::state;
  }
  for (const ArgumentSpec& output : run.op->outputs)
    if (output.role == Role::state && at++ == place) pair.emplace_back(output.name);
  for (const std::string& name : pair)
    if (p->count(name)) p->at(name) = stored.at(name);
  return p;
}

std::vector<Variant> transposed_state(const FailingRun& run) {
  std::vector<Variant> v = of_each_state(run, [&](const std::string& name, const Tensor& state,
                                                  std::vector<Variant>& list) {
    if (!is_matrix(state)) return;
    list.push_back(on_input(run, name + " read with rows and columns exchanged", name, transposed));
    list.push_back(on_input(run, name + " cut by limits in the wrong order", name, cut_by_exchanged_limits));
  });
  for (const std::string& name : run.cotangents())
    if (const Tensor& d = run.inputs().at(name); axis_of(d, "N") >= 0 && is_matrix(d))
      v.push_back(on_input(run, name + " read with rows and columns exchanged", name, transposed));
  v.push_back({"states stored with rows and columns exchanged",
               [&run] { return with_states_transposed(run, reference_prediction(run)); }});
  v.push_back({"states read and stored with rows and columns exchanged",
               [&run] { return read_and_stored_transposed(run, ""); }});
  for (const std::string& name : run.states())
    if (run.states().size() > 1 && is_matrix(run.inputs().at(name)))
      v.push_back({name + " read, and the state that it becomes stored, with rows and columns exchanged",
                   [&run, name] { return read_and_stored_transposed(run, name); }});
  return v;
}

std::vector<Variant> not_decayed(const FailingRun& run) {
  std::vector<Variant> v;
  if (run.states().empty() || run.gates().empty() || !is_linear(run) || !is_schedulable(run)) return v;
  v.push_back(
      {"the initial state is read as it was given", [&run] {
         const auto as_usual = [](const TokenPlace& p) { return Events{{p.row, p.row, p.row}}; };
         Schedule writes = schedule_of(run, as_usual);
         writes.initial_state = false;
         const Schedule state = schedule_of(run, [](const TokenPlace& p) { return Events{{-1, -1, p.row}}; });
         return sum_of(evaluate_schedule(run, writes), evaluate_schedule(run, state));
       }});
  return v;
}

std::vector<Variant> lost_at_edges(const FailingRun& run) {
  std::vector<Variant> v = divisor_of_own_chunk(run);
  append(v, divisor_gradient_of_own_chunk(run));
  append(v, gate_gradients_of_lost_states(run));
  if (!can_reset(run)) return v;
  for (const int64_t C : chunk_sizes(run)) {
    const std::pair<std::string, std::function<bool(const TokenPlace&)>> edges[] = {
        {fmt::format("nothing passes from one chunk of {} to the next", C),
         [C](const TokenPlace& p) { return p.t > 0 && p.t % C == 0; }},
        {fmt::format("nothing passes into the last chunk of {}", C),
         [C](const TokenPlace& p) { return p.t > 0 && p.t == (p.length - 1) / C * C; }},
        {fmt::format("nothing passes into the second chunk of {}", C),
         [C](const TokenPlace& p) { return p.t == C; }}};
    for (const auto& [text, is_edge] : edges)
      v.push_back(on_schedule(run, text, schedule_of(run, [&](const TokenPlace& p) {
                                return is_edge(p) ? Events{{-1, -1, -1, true}, {p.row, p.row, p.row}}
                                                  : Events{{p.row, p.row, p.row}};
                              })));
  }
  return v;
}

/// Each chunk's tokens alone, plus what was in the state where the chunk before it began.
std::optional<Prediction> from_one_chunk_earlier(const FailingRun& run, int64_t C, bool decayed) {
  Schedule within = schedule_of(run, [C](const TokenPlace& p) {
    return p.t > 0 && p.t % C == 0 ? Events{{-1, -1, -1, true}, {p.row, p.row, p.row}}
                                   : Events{{p.row, p.row, p.row}};
  });
  within.final_state = false;
  std::optional<Prediction> sum = evaluate_schedule(run, within);
  int64_t chunks = 0;
  for (const auto& [first, length] : run.spans()) chunks = std::max(chunks, (length + C - 1) / C);
  for (int64_t c = 1; c < chunks; ++c) {
    Schedule entering = schedule_of(run, [&](const TokenPlace& p) {
      const int64_t chunk = p.t / C;
      if (chunk + 1 < c) return Events{{p.row, p.row, -1}};
      if (chunk + 1 == c) return decayed ? Events{{p.row, -1, -1}} : Events{};
      return chunk == c ? Events{{p.row, -1, p.row}} : Events{};
    });
    entering.final_state = false;
    std::optional<Prediction> part = evaluate_schedule(run, entering);
    for (auto& [name, output] : part ? *part : Prediction{})
      for (size_t i = 0; i < output.mid.size(); ++i)
        if (output.mid[i] != output.mid[i]) part->at(name).mid[i] = 0;
    sum = sum_of(sum, part);
  }
  return sum;
}

/// Each chunk's tokens alone, plus what was in the state where chunk place(c) began: with chunks of another
/// size the states' places are others. Nothing is said of the tokens of a chunk whose place is behind the
/// last, nor of final states.
std::optional<Prediction> from_another_place(const FailingRun& run, int64_t C,
                                             const std::function<int64_t(int64_t)>& place) {
  Schedule within = schedule_of(run, [C](const TokenPlace& p) {
    Events e{{p.row, p.row, p.row}};
    if (p.t % C == 0) e.insert(e.begin(), Event{-1, -1, -1, true});
    return e;
  });
  within.initial_state = within.final_state = false;
  std::optional<Prediction> sum = evaluate_schedule(run, within);
  int64_t chunks = 0;
  for (const auto& [first, length] : run.spans()) chunks = std::max(chunks, (length + C - 1) / C);
  for (int64_t c = 0; c < chunks; ++c) {
    Schedule entering;
    entering.final_state = false;
    for (const auto& [first, length] : run.spans()) {
      Events& e = entering.sequences.emplace_back();
      for (int64_t t = 0; t < std::min(length, place(c) * C); ++t) e.push_back({first + t, first + t, -1});
      for (int64_t t = c * C; t < std::min(length, (c + 1) * C); ++t) e.push_back({first + t, -1, first + t});
    }
    std::optional<Prediction> part = evaluate_schedule(run, entering);
    for (auto& [name, output] : part ? *part : Prediction{})
      for (size_t i = 0; i < output.mid.size(); ++i)
        if (output.mid[i] != output.mid[i]) part->at(name).mid[i] = 0;
    sum = sum_of(sum, part);
  }
  for (const OutputComparison& o : *run.judged) {
    const Tensor& got = run.outputs->at(o.name);
    const int64_t width = token_width(got);
    if (!sum || !sum->count(o.name)) continue;
    if (width == 0) sum->erase(o.name);
    for (const auto& [first, length] : run.spans())
      for (int64_t t = 0; t < length && width > 0; ++t)
        for (int64_t x = 0; place(t / C) > (length + C - 1) / C && x < width; ++x)
          sum->at(o.name).mid[static_cast<size_t>((first + t) * width + x)] =
              std::numeric_limits<double>::quiet_NaN();
  }
  return sum;
}

struct Place {
  const char* text;
  int64_t (*of)(int64_t);
};
constexpr Place kPlaces[] = {{"half its number", [](int64_t c) { return c / 2; }},
                             {"twice its number", [](int64_t c) { return 2 * c; }},
                             {"the next number", [](int64_t c) { return c + 1; }}};

void append_places(const FailingRun& run, int64_t C, std::vector<Variant>& v) {
  for (const Place& place : kPlaces)
    v.push_back({fmt::format("a chunk of {} continues from the state with {}", C, place.text),
                 [&run, C, &place] { return from_another_place(run, C, place.of); }});
}

std::vector<Variant> of_another_chunk(const FailingRun& run) {
  std::vector<Variant> v = gate_gradients_of_stale_states(run);
  if (!can_reset(run) || !is_linear(run)) return v;
  for (const int64_t C : chunk_sizes(run)) {
    int64_t chunks = 0;
    for (const auto& [first, length] : run.spans()) chunks = std::max(chunks, (length + C - 1) / C);
    if (chunks < 2 || chunks > 6) continue;
    for (const bool decayed : {false, true})
      v.push_back({fmt::format("a chunk of {} continues from the state before its predecessor{}", C,
                               decayed ? ", decayed by it" : ""),
                   [&run, C, decayed] { return from_one_chunk_earlier(run, C, decayed); }});
    append_places(run, C, v);
  }
  return v;
}

/// What enters the last chunk of C decays in it by `factor` of the tokens' decays and `extra` steps of the
/// last token's; the chunk's own tokens too where `own`.
std::optional<Prediction> last_chunk_decays(const FailingRun& run, int64_t C, bool as_usual, bool to_whole,
                                            bool own) {
  const auto start = [C](const TokenPlace& p) { return (p.length - 1) / C * C; };
  const auto missing = [C](const TokenPlace& p) { return (C - p.length % C) % C; };
  const auto extended = [&](const TokenPlace& p, Events e) {
    if (to_whole && p.t == p.length - 1)
      e.insert(e.end(), static_cast<size_t>(missing(p)), Event{p.row, -1, -1});
    return e;
  };
  const Schedule entering = schedule_of(run, [&](const TokenPlace& p) {
    if (p.t < start(p)) return Events{{p.row, p.row, p.row}};
    return extended(p, {{as_usual ? p.row : -1, -1, p.row}});
  });
  Schedule within = schedule_of(run, [&](const TokenPlace& p) {
    if (p.t < start(p)) return Events{};
    Events e{{p.row, p.row, p.row}};
    if (p.t == start(p)) e.insert(e.begin(), Event{-1, -1, -1, true});
    return own ? extended(p, e) : e;
  });
  within.initial_state = false;
  std::optional<Prediction> part = evaluate_schedule(run, within);
  for (auto& [name, output] : part ? *part : Prediction{})
    for (size_t i = 0; i < output.mid.size(); ++i)
      if (output.mid[i] != output.mid[i]) part->at(name).mid[i] = 0;
  return sum_of(evaluate_schedule(run, entering), part);
}

std::vector<Variant> last_not_decayed(const FailingRun& run) {
  std::vector<Variant> v;
  if (!can_reset(run) || !is_linear(run)) return v;
  for (const int64_t C : chunk_sizes(run))
    v.push_back({fmt::format("what enters the last chunk of {} does not decay in it", C),
                 [&run, C] { return last_chunk_decays(run, C, false, false, false); }});
  return v;
}

std::vector<Variant> last_decayed_whole(const FailingRun& run) {
  std::vector<Variant> v;
  if (!can_reset(run) || !is_linear(run)) return v;
  for (const int64_t C : {64, 16, 32, 128, 8}) {
    bool partial = false;
    for (const auto& [first, length] : run.spans()) partial = partial || length % C != 0;
    for (const bool own : {false, true})
      if (partial)
        v.push_back({fmt::format("what enters the last chunk of {} decays by a whole chunk{}", C,
                                 own ? ", its own tokens too" : ""),
                     [&run, C, own] { return last_chunk_decays(run, C, true, true, own); }});
  }
  return v;
}

std::vector<Variant> last_ignored(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_schedulable(run)) return v;
  for (const int64_t C : {64, 16, 32, 128, 8}) {
    const auto in_last = [C](const TokenPlace& p) { return p.length % C != 0 && p.t >= p.length / C * C; };
    bool any = false;
    for (const auto& [first, length] : run.spans()) any = any || length % C != 0;
    for (const bool decays : {true, false})
      if (any)
        v.push_back(on_schedule(
            run,
            fmt::format("tokens of the last, partial chunk of {} are not written{}", C,
                        decays ? "" : ", and do not decay"),
            schedule_of(run, [&](const TokenPlace& p) {
              return in_last(p) ? Events{{decays ? p.row : -1, -1, p.row}} : Events{{p.row, p.row, p.row}};
            })));
  }
  return v;
}

std::vector<Variant> before_last(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_schedulable(run)) return v;
  v.push_back(on_schedule(
      run, "the final state is that before the last token", schedule_of(run, [](const TokenPlace& p) {
        return p.t == p.length - 1 ? Events{{-1, -1, p.row}} : Events{{p.row, p.row, p.row}};
      })));
  return v;
}

std::vector<Variant> rounded_states(const FailingRun& run) {
  std::vector<Variant> v;
  if (!is_schedulable(run) || run.backward) return v;
  std::vector<int64_t> chunks = chunk_sizes(run);
  chunks.push_back(1);
  for (const Narrowing how : {Narrowing::nearest, Narrowing::towards_zero})
    for (const int64_t C : chunks)
      for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::tf32}) {
        Variant variant{fmt::format("the state is {} after every {}", text_of(how, dtype),
                                    C == 1 ? "token" : fmt::format("{} tokens", C)),
                        [&run, C, dtype, how] {
                          return with_rounded_state(run, C,
                                                    [=](double x) { return narrowed(dtype, x, how); });
                        }};
        variant.approximate = true;
        v.push_back(std::move(variant));
      }
  return v;
}

}  // namespace

std::vector<Meaning> state_meanings() {
  return {
      {"initial-state-ignored", "the initial state takes no part", "load it, and add what it gives", ignored},
      {"initial-state-not-decayed", "the initial state is read undecayed",
       "decay it as every write before the token", not_decayed},
      {"initial-state-of-another-sequence", "the state of another sequence or head is read",
       "check the offset with which the state is loaded", of_another},
      {"state-transposed", "a state is read or stored with its axes exchanged", "check rows against columns",
       transposed_state},
      {"state-lost-at-chunk-edges", "what earlier chunks left is missing", "add what earlier chunks left",
       lost_at_edges},
      {"state-of-another-chunk", "a chunk continues from a state that is not its predecessor's",
       "check the chunk whose state is loaded", of_another_chunk},
      {"last-partial-chunk-not-decayed", "the state that enters the last chunk is not decayed in it",
       "decay it by the tokens that are there", last_not_decayed},
      {"last-partial-chunk-decayed-whole",
       "the state that enters the last, partial chunk is decayed by a whole one",
       "decay it by the tokens that are there, not by the chunk's size", last_decayed_whole},
      {"last-partial-chunk-ignored", "the tokens of the last, partial chunk are not written",
       "check the number of chunks and the rows of the last one", last_ignored},
      {"final-state-before-last-token", "the final state lacks the last token", "store after the last write",
       before_last},
      {"state-rounded", "the state is rounded, or cut off, to bf16, fp16 or tf32 at each token or chunk",
       "keep the state in fp32", rounded_states, 1, false, true}};
}

}  // namespace assay
