// How errors pass through many chunks. Norm by norm each token may lengthen an error by what it adds, and
// nothing shortens it: keys turn no error away from themselves. The product of the transitions itself does.
// With A_t = D_t + x_t y_t^T and e_t = A_t e_t-1 + x_t eps_t, from the start s of a window of chunks on,
//   e_t = M_t e_s + sum_i (A_t .. A_i+1) x_i eps_i,    M_t = A_t .. A_s+1,
//   |e_t| <= ||M_t|| |e_s| + sqrt(||P_t||) sqrt(sum_i eps_i^2 / omega_i),
//   P_t = A_t P_t-1 A_t^T + omega_t x_t x_t^T,    any omega > 0,
// as |B z|^2 <= ||B B^T|| |z|^2. M and P depend on keys, rates and gates alone. What chunks' ends add to an
// error besides is lengthened by every later token's norm, as the triangle has it.
//
// M and P are doubles here. A token's roundings are at most (K + 8) 2^-52 (1 + |x||y|) of what M was, once,
// and of what P was, twice, in the Frobenius norm; later tokens lengthen those too.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace assay {

struct NormStep;

/// Of one chunk, from the start of its window to its end; infinite where nothing is promised.
struct ChunkPassage {
  bool begins = true;              ///< a window
  double whole = 0, response = 0;  ///< at least ||M|| and sqrt ||P||
  double lengthened = 1;           ///< at least the norm of any product of the window's later tokens

  ChunkPassage();
};

/// The chunks' passages, in the order in which errors pass them.
class ChunkPassages {
 public:
  explicit ChunkPassages(int64_t K);

  /// `rho`: at least the norm of its transition; `rate`: of all columns.
  void add(const NormStep&, double rho, double rate);
  /// Of rates by channel: nothing is promised of the window.
  void forbid() { growth_ = HUGE_VAL; }
  ChunkPassage end_chunk();

 private:
  void begin();
  ChunkPassage passage() const;

  int64_t K_, tokens_ = 0, chunks_ = 0;
  double growth_ = 1, pull_ = 0, written_ = 0;
  std::vector<double> M_, P_, read_;
  bool begins_ = true;
};

/// The weight omega of an update with this rate, which its errors go with; `pull`: rate |x| |y|.
/// An error's square becomes less by rate (2 - pull) of what lies along x: with that for a weight P stays
/// below the identity, but what tokens near 2 are off by would count beyond measure.
double passage_weight(double rate, double pull);

}  // namespace assay
