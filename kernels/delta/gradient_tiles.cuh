// The shared memory of a block of token_gradients.cuh: tiles of 64 tokens x 64 channels, and 64 x 64 of S and
// D, whichever part is needed, loaded where it is not there already.
#pragma once
#include "gradient_inputs.cuh"

namespace rule {

// The format of what the scans kept, or of what is given.
template <class Format, bool kept>
struct GradientFormat {
  using Type = Format;
};
template <class Format>
struct GradientFormat<Format, true> {
  using Type = typename StateOf<Format>::Type;
};

template <class Format>
struct GradientTiles {
  static constexpr assay::delta::TokenGradientLayout layout{sizes_of_format<Format>};
  enum Which { queries, keys, cotangents, updates, pulls, states, adjoints };
  template <int which>
  using TileOf = Tile<typename GradientFormat<Format, which >= updates>::Type, 64>;

  const GradientInputs<Format> in;
  char* const shared;
  int held[7];  // by place: the tile that is there and which of its parts

  // A tile and which 64 of its channels; of states 8 times those of the keys plus those of the values.
  template <int which_>
  struct Part {
    static constexpr int which = which_;
    int part;
  };

  __device__ __forceinline__ GradientTiles(const GradientInputs<Format>& in, char* shared)
      : in(in), shared(shared) {
#pragma unroll
    for (int& x : held) x = -1;
  }
  template <int which>
  static constexpr int place = layout.all            ? which
                               : which == cotangents ? queries
                               : which == pulls      ? keys
                               : which == adjoints   ? states
                                                     : which;
  template <int which>
  __device__ __forceinline__ char* at() const {
    constexpr int offsets[] = {0,
                               layout.keys_offset,
                               layout.cotangents_offset,
                               layout.updates_offset,
                               layout.pulls_offset,
                               layout.states_offset,
                               layout.adjoints_offset};
    return shared + offsets[which];
  }
  // M and N, tiles of 16 x 16 (pair_scores.cuh).
  __device__ __forceinline__ char* weights() const {
    return shared + layout.weights_offset;
  }
  __device__ __forceinline__ char* removals() const {
    return shared + layout.removals_offset;
  }
  __device__ __forceinline__ int key_steps() const {
    return (in.shape.key_channels + 63) / 64;
  }
  __device__ __forceinline__ int value_steps() const {
    return (in.shape.value_channels + 63) / 64;
  }
  __device__ __forceinline__ int key_groups(int step) const {
    return min(4, in.shape.key_groups() - 4 * step);
  }
  __device__ __forceinline__ int value_groups(int step) const {
    return min(4, in.shape.value_groups() - 4 * step);
  }

  // Starts loading what there is room for of everything's first part.
  __device__ __forceinline__ void begin() {
    load(Part<cotangents>{0}, Part<pulls>{0}, Part<updates>{0});
    if constexpr (layout.all)
      load(Part<queries>{0}, Part<keys>{0}, Part<states>{0}, Part<adjoints>{0});
    else
      load(Part<states>{0});
  }
  // All threads: makes these parts be there.
  template <class... Parts>
  __device__ __forceinline__ void need(Parts... parts) {
    if ((holds(parts) && ...)) return;
    __syncthreads();  // everyone is done with what is replaced
    load(parts...);
    wait_copies<0>();
    __syncthreads();
  }
  // Starts loading those that are not there.
  template <class... Parts>
  __device__ __forceinline__ void load(Parts... parts) {
    (load_one(parts), ...);
    commit_copies();
  }

 private:
  template <class P>
  __device__ __forceinline__ bool holds(P x) const {
    return held[place<P::which>] == 64 * P::which + x.part;
  }
  template <class P>
  __device__ __forceinline__ void load_one(P x) {
    if (holds(x)) return;
    constexpr int which = P::which;
    held[place<which>] = 64 * which + x.part;
    if constexpr (which <= keys) {
      load_tile<TileOf<which>, 128>(at<which>(), (which == keys ? in.k : in.q) + 64 * x.part, in.key_stride,
                                    in.rows, in.shape.key_channels - 64 * x.part, in.shape.vector);
    } else if constexpr (which == cotangents) {
      load_tile<TileOf<which>, 128>(at<which>(), in.d_o + 64 * x.part, in.value_stride, in.rows,
                                    in.shape.value_channels - 64 * x.part, in.shape.vector);
    } else if constexpr (which <= pulls) {
      load_tile<TileOf<which>, 128>(at<which>(), (which == updates ? in.updates : in.pulls) + 64 * x.part,
                                    in.value_stride, in.rows, in.shape.value_channels - 64 * x.part,
                                    in.shape.vector);
    } else {
      const int padded_keys = 16 * in.shape.key_groups(), value = x.part % 8 * 64, key = x.part / 8 * 64;
      load_tile<TileOf<which>, 128>(
          at<which>(), (which == states ? in.S : in.D) + i64(value) * padded_keys + key, padded_keys,
          16 * in.shape.value_groups() - value, padded_keys - key, true);
    }
  }
};

}  // namespace rule
