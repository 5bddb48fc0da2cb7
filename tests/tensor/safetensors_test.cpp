#include "src/base/tensor/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

TensorMap every_type() {
  TensorMap tensors;
  for (const Format& f : formats()) {
    if (f.dtype == Dtype::tf32) continue;
    Tensor tensor(std::string(f.name), f.dtype, {{"B", 2}, {"T", 3}});
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i + 1));
    tensors.emplace(tensor.name, tensor);
  }
  tensors.emplace("empty", Tensor("empty", Dtype::fp32, {{"T", 0}, {"K", 4}}));
  tensors.emplace("scalar", Tensor("scalar", Dtype::fp64, {}));
  return tensors;
}

/// A file of this header and this many bytes of data.
std::string file_of(const std::string& header, size_t data) {
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), 8);
  return file + header + std::string(data, '\x01');
}

TEST(Safetensors, EveryTypeComesBackAsItWas) {
  const ScratchFolder folder;
  const TensorMap tensors = every_type();
  write_safetensors(folder / "x.safetensors", tensors);
  const TensorMap back = read_safetensors(folder / "x.safetensors");
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(back.at(name).dtype, tensor.dtype) << name;
    EXPECT_EQ(back.at(name).data, tensor.data) << name;
    ASSERT_EQ(back.at(name).axes.size(), tensor.axes.size()) << name;
    for (size_t i = 0; i < tensor.axes.size(); ++i)
      EXPECT_EQ(back.at(name).axes[i].size, tensor.axes[i].size);
  }
}

TEST(Safetensors, EveryTruncationIsOneClearLine) {
  const ScratchFolder folder;
  write_safetensors(folder / "x.safetensors", every_type());
  const std::string whole = read_file(folder / "x.safetensors");
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file(folder / "cut", whole.substr(0, size));
    try {
      read_safetensors(folder / "cut");
      ADD_FAILURE() << size << " of " << whole.size() << " bytes were accepted";
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find("cut: "), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST(Safetensors, HeadersThatContradictThemselvesAreNamed) {
  const ScratchFolder folder;
  const std::pair<std::string, const char*> table[] = {
      {file_of("not json", 8), "bad header"},
      {file_of("[1,2]", 8), "bad header"},
      {file_of(R"({"q":{"dtype":"F32","shape":[2]}})", 8), "bad header"},
      {file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 8), "does not fit its shape"},
      {file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "does not fit its shape"},
      {file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8), "does not fit its shape"},
      {file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 8), "truncated file"},
      {file_of(
           R"({"k":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},
              "q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
           12),
       "tensor q: its bytes overlap those of tensor k"},
      {file_of(
           R"({"k":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
              "q":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
           8),
       "tensor q: its bytes overlap those of tensor k"},
      {file_of(R"({"q":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "negative size"},
      {file_of(R"({"q":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 8),
       "impossible shape"},
      {file_of(R"({"q":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", 8),
       "element type F8_E4M3 is not supported"},
      {std::string(8, '\xff') + "{}", "truncated or not a safetensors file"},
  };
  for (const auto& [bytes, message] : table) {
    write_file(folder / "x", bytes);
    try {
      read_safetensors(folder / "x");
      ADD_FAILURE() << message;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
