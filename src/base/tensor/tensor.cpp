#include "src/base/tensor/tensor.h"

#include <cstring>

#include "src/base/tensor/index_letter.h"

namespace assay {

Tensor::Tensor(std::string name_, Dtype dtype_, std::vector<Axis> axes_)
    : name(std::move(name_)), dtype(dtype_), axes(std::move(axes_)) {
  data.resize(static_cast<size_t>(size() * format(dtype).bytes));
}

int64_t Tensor::size() const {
  int64_t n = 1;
  for (const Axis& axis : axes) n *= axis.size;
  return n;
}

std::vector<int64_t> Tensor::strides() const {
  std::vector<int64_t> s(axes.size(), 1);
  for (size_t i = axes.size(); i-- > 1;) s[i - 1] = s[i] * axes[i].size;
  return s;
}

int64_t Tensor::offset(std::span<const int64_t> index) const {
  int64_t flat = 0;
  for (size_t i = 0; i < axes.size(); ++i) flat = flat * axes[i].size + index[i];
  return flat;
}

std::vector<int64_t> Tensor::index(int64_t flat) const {
  std::vector<int64_t> at(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    at[i] = flat % axes[i].size;
    flat /= axes[i].size;
  }
  return at;
}

namespace {

template <typename Word>
uint64_t element(const std::vector<std::byte>& data, int64_t flat) {
  Word word;
  std::memcpy(&word, data.data() + flat * static_cast<int64_t>(sizeof word), sizeof word);
  return word;
}

template <typename Word>
void set_element(std::vector<std::byte>& data, int64_t flat, uint64_t bits) {
  const auto word = static_cast<Word>(bits);
  std::memcpy(data.data() + flat * static_cast<int64_t>(sizeof word), &word, sizeof word);
}

}  // namespace

uint64_t Tensor::bits(int64_t flat) const {
  if (source) return source->bits(flat);
  // Little-endian hosts only, as everywhere in assay.
  switch (format(dtype).bytes) {
    case 1:
      return element<uint8_t>(data, flat);
    case 2:
      return element<uint16_t>(data, flat);
    case 4:
      return element<uint32_t>(data, flat);
    default:
      return element<uint64_t>(data, flat);
  }
}

void Tensor::set_bits(int64_t flat, uint64_t bits) {
  switch (format(dtype).bytes) {
    case 1:
      return set_element<uint8_t>(data, flat, bits);
    case 2:
      return set_element<uint16_t>(data, flat, bits);
    case 4:
      return set_element<uint32_t>(data, flat, bits);
    default:
      return set_element<uint64_t>(data, flat, bits);
  }
}

double Tensor::value(int64_t flat) const {
  return decode(dtype, bits(flat));
}

void Tensor::set(int64_t flat, double value) {
  set_bits(flat, encode(dtype, value));
}

void Tensor::set_run(int64_t first, std::span<const double> values) {
  encode_run(dtype, values.data(), static_cast<int64_t>(values.size()),
             data.data() + first * format(dtype).bytes);
}

std::string Tensor::element_name(int64_t flat) const {
  const std::vector<int64_t> at = index(flat);
  std::string text = name + "[";
  for (size_t i = 0; i < axes.size(); ++i) {
    text += i ? "," : "";
    text += index_letter(axes[i].name) + (axes[i].name.empty() ? "" : "=") + std::to_string(at[i]);
  }
  return text + "]";
}

std::string Tensor::shape_text() const {
  std::string text = "[";
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i ? "," : "") + axes[i].name + (axes[i].name.empty() ? "" : "=") + std::to_string(axes[i].size);
  return text + "]";
}

}  // namespace assay
