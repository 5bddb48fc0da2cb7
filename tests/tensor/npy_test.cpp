#include "src/base/tensor/npy.h"

#include <gtest/gtest.h>

#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {
namespace {

TEST(Npy, EveryTypeAndRankComesBackAsItWas) {
  const ScratchFolder folder;
  for (const Format& f : formats()) {
    if (f.dtype == Dtype::tf32) continue;
    for (const std::vector<Axis>& axes :
         {std::vector<Axis>{}, {{"T", 5}}, {{"T", 0}, {"K", 3}}, {{"B", 2}, {"T", 3}, {"K", 2}}}) {
      Tensor tensor("q", f.dtype, axes);
      for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i + 1));
      write_npy(folder / "q.npy", tensor);
      const Tensor back = read_npy(folder / "q.npy");
      EXPECT_EQ(back.name, "q");
      EXPECT_EQ(back.dtype, tensor.dtype) << f.name;
      EXPECT_EQ(back.data, tensor.data) << f.name;
      EXPECT_EQ(back.axes.size(), axes.size()) << f.name;
    }
  }
}

/// As numpy saves x.T: the same bytes, the first axis varying fastest.
TEST(Npy, FortranOrderComesRowByRow) {
  const ScratchFolder folder;
  Tensor columns("q", Dtype::fp16, {{"V", 2}, {"K", 3}, {"T", 4}});
  for (int64_t i = 0; i < columns.size(); ++i) columns.set(i, static_cast<double>(i));
  write_npy(folder / "q.npy", columns);
  std::string text = read_file(folder / "q.npy");
  text.replace(text.find("False"), 5, "True ");
  text.replace(text.find("(2, 3, 4, )"), 11, "(4, 3, 2, )");
  write_file(folder / "q.npy", text);
  const Tensor q = read_npy(folder / "q.npy");
  ASSERT_EQ(q.shape_text(), "[4,3,2]");
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t k = 0; k < 3; ++k)
      for (int64_t v = 0; v < 2; ++v) {
        const int64_t at[] = {t, k, v}, from[] = {v, k, t};
        EXPECT_EQ(q.value(q.offset(at)), columns.value(columns.offset(from)));
      }
}

TEST(Npy, WhatCannotBeReadIsOneClearLine) {
  const ScratchFolder folder;
  Tensor tensor("q", Dtype::fp32, {{"T", 3}, {"K", 2}});
  write_npy(folder / "q.npy", tensor);
  const std::string whole = read_file(folder / "q.npy");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    return text.replace(text.find(from), from.size(), to);
  };
  std::pair<std::string, const char*> table[] = {
      {"", "not a .npy file"},
      {"PK\x03\x04 something else", "not a .npy file"},
      {whole.substr(0, 60), "its header ends beyond the file"},
      {whole.substr(0, whole.size() - 1), "truncated or corrupt"},
      {whole + "x", "truncated or corrupt"},
      {replaced("False", "Maybe"), "fortran_order is neither True nor False"},
      {replaced("<f4", ">f4"), "element type '>f4' is not supported"},
      {replaced("descr", "desrc"), "no 'descr'"},
      {replaced("(3, 2, )", "(3, x, )"), "bad shape"},
      {replaced("(3, 2, )", "(3, 2,  "), "bad shape"},
      {replaced("(3, 2, )", "(9223372036854775807, 3, 0, )"), "impossible shape"},
      {replaced("(3, 2, )", "(9223372036854775808, )"), "bad shape"},
  };
  for (const auto& [bytes, message] : table) {
    write_file(folder / "q.npy", bytes);
    try {
      read_npy(folder / "q.npy");
      ADD_FAILURE() << message;
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("q.npy: "), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay
