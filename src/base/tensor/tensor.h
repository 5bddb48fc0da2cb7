// Dense tensors with named axes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/fields/fields.h"
#include "src/base/numerics/format.h"

namespace assay {

struct Axis {
  std::string name;  ///< the operator's letter: "B", "T", "H", "K", "V", "N"
  int64_t size = 0;
  bool operator==(const Axis&) const = default;
};
template <typename Io>
void fields(Io& io, Axis& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(size);
}

/// Elements by number, for a tensor too large to be held. Thread safe.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual uint64_t bits(int64_t flat) const = 0;
};

/// Tensors of a run of some blocks are made on demand beyond so many bytes.
inline constexpr int64_t kLargestHeld = int64_t{64} << 20;

/// Row-major dense tensor; `data` holds size() elements of `dtype` in the format's own bits.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::fp32;
  std::vector<Axis> axes;
  std::vector<std::byte> data;
  std::shared_ptr<const TensorSource> source;  ///< instead of `data`, which is then empty

  Tensor() = default;
  /// Zero-filled.
  Tensor(std::string name, Dtype dtype, std::vector<Axis> axes);

  int64_t size() const;  ///< number of elements
  int64_t bytes() const { return size() * format(dtype).bytes; }
  bool is_held() const { return source == nullptr; }
  std::vector<int64_t> strides() const;                  ///< in elements
  int64_t offset(std::span<const int64_t> index) const;  ///< flat element offset
  std::vector<int64_t> index(int64_t flat) const;

  uint64_t bits(int64_t flat) const;
  void set_bits(int64_t flat, uint64_t bits);
  double value(int64_t flat) const;      ///< decoded; integers converted
  void set(int64_t flat, double value);  ///< rounded once to dtype
  /// As set, of the `values` from `first` on.
  void set_run(int64_t first, std::span<const double> values);

  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }

  /// "o[b=0,t=17,h=3,v=64]": axis letters in lower case; "o[0,17]" where axes have no names.
  std::string element_name(int64_t flat) const;
  /// "[B=2,T=16,H=4,K=64]"
  std::string shape_text() const;
};
/// Of one that is held.
template <typename Io>
void fields(Io& io, Tensor& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(axes);
  ASSAY_FIELD(data);
}

/// Tensors by argument name. An absent optional argument is an absent key.
using TensorMap = std::map<std::string, Tensor>;

}  // namespace assay
