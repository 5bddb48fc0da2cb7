#include "reference/gated_noise.h"

#include <algorithm>
#include <memory>
#include <string>

#include "reference/gated_chunk_noise.h"
#include "reference/kept_state.h"
#include "reference/parallel.h"

namespace assay {
namespace {

/// Chunks that are looked at together, whose states are held.
constexpr int64_t kTogether = 8;

/// Where slices are fewer than threads, the chunks of each take what is left.
int threads_for_chunks(const Problem& p) {
  const auto slices = static_cast<int64_t>(slices_of(p).size());
  return static_cast<int>(std::max<int64_t>(1, p.threads / std::max<int64_t>(1, slices)));
}

/// A chunk, and the state where a recurrence comes to it.
struct EnteredChunk {
  GatedChunkNoise chunk;
  SampledState state;
};
using EnteredChunks = std::vector<std::unique_ptr<EnteredChunk>>;

/// Chunks that are looked at together for what a kept state would do: one state is held of each.
constexpr int64_t kKeptTogether = 64;

/// A chunk, what is made of it alone, and what a recurrence has where it comes to it.
struct KeptChunk {
  std::unique_ptr<GatedChunkNoise> at;
  std::vector<float> own, entered;
};

/// Calls make(chunk) and use(chunk, its number) of all on several threads, and in between pass(chunk, number)
/// of one after the other, first to last or last to first.
template <typename Make, typename Pass, typename Use>
void in_groups(const GatedNoiseModel& of, int threads, bool forward, const Make& make, const Pass& pass,
               const Use& use) {
  for (int64_t done = 0, count = 0; done < of.chunks(); done += count) {
    count = std::min(kKeptTogether, of.chunks() - done);
    const auto number = [&](int64_t i) { return forward ? done + i : of.chunks() - 1 - done - i; };
    std::vector<KeptChunk> group(static_cast<size_t>(count));
    parallel_for(count, threads, [&](int64_t i) {
      KeptChunk& chunk = group[static_cast<size_t>(i)];
      chunk.at = std::make_unique<GatedChunkNoise>(of, number(i));
      chunk.own = make(*chunk.at);
    });
    for (int64_t i = 0; i < count; ++i) pass(group[static_cast<size_t>(i)], number(i));
    parallel_for(count, threads, [&](int64_t i) { use(group[static_cast<size_t>(i)], number(i)); });
  }
}

std::vector<KeptDirection> kept_directions(const GatedNoiseModel& of, int threads) {
  std::vector<KeptDirection> y(static_cast<size_t>(of.chunks()));
  if (of.split) return y;
  const auto kept = [&](int64_t number) -> KeptDirection& { return y[static_cast<size_t>(number)]; };
  KeptState state(of.K, of.V, static_cast<float>(of.u));
  if (of.x.S0) state.load(of.decoded_state(*of.x.S0));
  in_groups(
      of, threads, true,
      [&](const GatedChunkNoise& at) { return state.written(at.chunk(), at.keys(), at.values()); },
      [&](KeptChunk& c, int64_t) { c.entered = state.carried(), state.advance(c.at->chunk(), c.own); },
      [&](const KeptChunk& c, int64_t number) {
        kept(number).rows = moved_by(c.at->chunk(), c.entered, c.at->state_reads(), of.V);
      });
  KeptKeys later(of.K, of.V);
  in_groups(
      of, threads, false, [](const GatedChunkNoise& at) { return at.state_reads(); },
      [&](KeptChunk& c, int64_t number) {
        c.entered = later.derivatives(), later.advance(c.at->chunk(), c.own, kept(number).rows);
      },
      [&](const KeptChunk& c, int64_t number) {
        kept(number).variance = KeptKeys::variance(c.at->chunk(), c.at->keys(), c.at->values(), c.entered);
      });
  return y;
}

/// The next chunks from `first` on, S over them.
EnteredChunks next_chunks(const GatedNoiseModel& of, int64_t first, SampledState& S) {
  EnteredChunks y;
  for (int64_t i = first; i < std::min(first + kTogether, of.chunks()); ++i) {
    y.push_back(std::make_unique<EnteredChunk>(EnteredChunk{GatedChunkNoise(of, i), S}));
    y.back()->chunk.advance(S);
  }
  return y;
}

/// While some chunks' outputs are sampled, the state goes over the next ones.
void forward(const GatedNoiseModel& of, int threads) {
  SampledState S(of.K, of.V);
  if (of.x.S0) S.load(of.decoded_state(*of.x.S0));
  const std::vector<KeptDirection> kept = kept_directions(of, threads);
  EnteredChunks here = next_chunks(of, 0, S), next;
  for (int64_t first = 0; first < of.chunks(); first += kTogether, here = std::move(next)) {
    parallel_for(static_cast<int64_t>(here.size()) + 1, threads, [&](int64_t task) {
      if (task == 0) {
        next = next_chunks(of, first + kTogether, S);
        return;
      }
      EnteredChunk& at = *here[static_cast<size_t>(task - 1)];
      at.chunk.outputs(at.state, kept[static_cast<size_t>(first + task - 1)]);
    });
  }
  of.visitor(of.rests.o).state("final_state", of.K, S, true);
}

/// Likewise in reversed time, from the states that S had before.
void backward(const GatedNoiseModel& of, int threads) {
  SampledState S(of.K, of.V), G(of.K, of.V);
  if (of.x.S0) S.load(of.decoded_state(*of.x.S0));
  std::vector<SampledState> starts;
  for (int64_t i = 0; i < of.chunks(); ++i) {
    starts.push_back(S);
    GatedChunkNoise(of, i).advance(S);
  }
  if (of.dS) G.load(of.decoded_state(*of.dS));
  const auto chunks_before = [&](int64_t end) {
    EnteredChunks y;
    for (int64_t i = end; i-- > std::max<int64_t>(end - kTogether, 0);) {
      y.push_back(std::make_unique<EnteredChunk>(EnteredChunk{GatedChunkNoise(of, i), G}));
      y.back()->chunk.retreat(G);
    }
    return y;
  };
  EnteredChunks here = chunks_before(of.chunks()), next;
  for (int64_t end = of.chunks(); end > 0; end -= kTogether, here = std::move(next)) {
    parallel_for(static_cast<int64_t>(here.size()) + 1, threads, [&](int64_t task) {
      if (task == 0) {
        next = chunks_before(end - kTogether);
        return;
      }
      EnteredChunk& at = *here[static_cast<size_t>(task - 1)];
      at.chunk.gradients(starts[static_cast<size_t>(end - task)], at.state);
    });
    starts.resize(static_cast<size_t>(std::max<int64_t>(end - kTogether, 0)), SampledState(0, 0));
  }
  if (of.x.S0) of.visitor(of.rests.dk).state("d" + std::string(of.x.form.state), of.K, G, true);
}

}  // namespace

void gated_forward_noise(const Problem& p, const GatedForm& form, const Slice& s, const NoiseVisit& visit) {
  forward(GatedNoiseModel(p, form, s, false, visit), threads_for_chunks(p));
}

void gated_adjoint_noise(const Problem& p, const GatedForm& form, const Slice& s, const NoiseVisit& visit) {
  backward(GatedNoiseModel(p, form, s, true, visit), threads_for_chunks(p));
}

}  // namespace assay
