// A chunked evaluation whose operands are rounded as a kernel declares: what the tests of chunked bounds hold
// them against. Derived classes do the mathematics of their operator, token by token and pair by pair.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/reference/random_problem.h"

namespace assay::chunked_run {

using Rows = std::vector<std::vector<double>>;
inline Rows zeros(size_t rows, size_t columns) {
  return Rows(rows, std::vector<double>(columns, 0));
}

inline constexpr double u = 0x1p-8;  ///< bf16's
inline constexpr size_t kChunk = 8, kTile = 4;
inline constexpr const char* kDecays[] = {"none", "near-one", "logsigmoid", "strong", "reset", "extreme"};

inline double rounded(double x) {
  return decode(Dtype::bf16, encode(Dtype::bf16, x));
}

/// One head in chunks of tiles. What tensor cores take is rounded to bf16, all else are doubles.
class ChunkedRun {
 public:
  /// Backward, of the chunk [start, end): G is that of its last token, behind it.
  void forward() {
    for (size_t start = 0; start < T; start += chunk) {
      const size_t end = std::min(start + chunk, T);
      starts.push_back(S);
      for (size_t first = start; first < end; first += tile)
        read_tile(first, std::min(tile, end - first), start);
      read_out(start, end);
      carry(start, end);
    }
  }
  void backward() {
    for (size_t start = (T - 1) / chunk * chunk;; start -= chunk) {
      const size_t end = std::min(start + chunk, T);
      for (size_t first = start + (end - 1 - start) / tile * tile;; first -= tile) {
        pull_tile(first, std::min(tile, end - first), end);
        if (first == start) break;
      }
      gradients(start, end);
      carry_back(start, end);
      if (start == 0) break;
    }
  }

  const Problem& p;
  const size_t T, K, V;
  size_t chunk = kChunk, tile = kTile;  ///< tokens
  Rows S, G;                            ///< G: behind the last token of the chunk at hand
  std::vector<Rows> starts;             ///< S at the start of each chunk

 protected:
  explicit ChunkedRun(const RandomProblem& drawn)
      : p(drawn.problem),
        T(static_cast<size_t>(p.sizes.T)),
        K(static_cast<size_t>(p.sizes.K)),
        V(static_cast<size_t>(p.sizes.V)),
        S(rows_of(drawn, "initial_state", K, V)),
        G(rows_of(drawn, "dfinal_state", K, V)) {}
  ~ChunkedRun() = default;

  static Rows rows_of(const RandomProblem& drawn, const char* name, size_t n, size_t width) {
    Rows y = zeros(n, width);
    for (size_t i = 0; i < n * width; ++i)
      y[i / width][i % width] = drawn.inputs.at(name).value(static_cast<int64_t>(i));
    return y;
  }

  virtual void read_tile(size_t first, size_t n, size_t start) = 0;  ///< updates of its tokens
  virtual void read_out(size_t start, size_t end) = 0;
  virtual void carry(size_t start, size_t end) = 0;  ///< S, to the chunk's end
  virtual void pull_tile(size_t first, size_t n, size_t end) = 0;
  virtual void gradients(size_t start, size_t end) = 0;
  virtual void carry_back(size_t start, size_t end) = 0;  ///< G, to its start
};

inline Arithmetic declared() {
  Arithmetic a;
  a.chunk = kChunk, a.solve_tokens = kTile;
  a.removal = a.solved = a.readout = 2.01 * u, a.update = a.write = u;
  a.solve = a.boundary = 0x1p-40, a.decay_per_nat = 0x1p-40;
  a.underflow = 0x1p-133;  // bf16's smallest subnormal number
  return a;
}

struct Judged {
  int64_t outside = 0;
  double largest = 0;  ///< error over bound

  void judge(const ReferenceOutput& out, const Rows& got) {
    const size_t width = got[0].size();
    for (size_t i = 0; i < out.mid.size(); ++i) {
      const double error = std::fabs(got[i / width][i % width] - out.mid[i]) - out.rad[i];
      outside += !(error <= out.bound[i]);
      largest = std::fmax(largest, error / out.bound[i]);
    }
  }
  void judge(const ReferenceResult& results, const std::map<std::string, const Rows*>& got) {
    for (const ReferenceOutput& out : results.outputs) judge(out, *got.at(out.name));
  }
};

}  // namespace assay::chunked_run
