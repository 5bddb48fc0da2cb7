// Fat binaries that nvcc made of texts for two targets with the machine code of one, as the driver gets them.
#include "src/preload/fat_binary.h"

#include <gtest/gtest.h>

#include "src/base/ptx/fatbin.h"
#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay::preload {
namespace {

std::string container(const std::string& name) {
  return read_file(ASSAY_SOURCE_DIR "/tests/data/fatbin/" + name + ".fatbin");
}

std::string with(const std::string& fat, const Change& change, const Compiled& compiled) {
  const std::vector<std::byte> made = with_texts(fat.data(), change, compiled);
  return {reinterpret_cast<const char*>(made.data()), made.size()};
}

const Change kMarked = [](const std::string& text, const std::string&) { return "// marked\n" + text; };
const Compiled kNone = [](const std::string&, int) { return ""; };

TEST(FatBinary, HoldsTheTextsAsTheyAreToBeAndNoOtherCode) {
  for (const char* name : {"plain", "code"}) {
    const std::string fat = container(name), made = with(fat, kMarked, kNone);
    const auto before = ptx::embedded_texts(fat, name), after = ptx::embedded_texts(made, name);
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_EQ(after[i].text.c_str(), "// marked\n" + before[i].text);
    EXPECT_EQ(ptx::embedded_machine_code(made, name).size(), 0u);
    EXPECT_EQ(fat_binary_bytes(made.data()), made.size());
  }
}

// In the place of machine code for the same GPU alone, where there is some.
TEST(FatBinary, HoldsMachineCodeOfTheTextsAsTheyAreToBe) {
  const std::string fat = container("code");
  ASSERT_EQ(ptx::embedded_machine_code(fat, "code").size(), 1u);
  std::vector<int> asked;
  const std::string made = with(fat, kMarked, [&](const std::string& text, int capability) {
    EXPECT_TRUE(text.starts_with("// marked\n"));
    asked.push_back(capability);
    return "\x7f"
           "ELF of capability " +
           std::to_string(capability);
  });
  EXPECT_EQ(asked, std::vector{90});
  const std::vector<std::string> code = ptx::embedded_machine_code(made, "made");
  ASSERT_EQ(code.size(), 1u);
  EXPECT_TRUE(
      code[0].starts_with("\x7f"
                          "ELF of capability 90"))
      << code[0];
  EXPECT_EQ(ptx::embedded_texts(made, "made").size(), ptx::embedded_texts(fat, "code").size());
}

TEST(FatBinary, WithoutTextsThereIsNone) {
  const std::string nothing("\x50\xed\x55\xba\x01\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00", 16);
  EXPECT_TRUE(with_texts(nothing.data(), kMarked, kNone).empty());
  EXPECT_EQ(fat_binary_bytes("\x7f"
                             "ELF, and more"),
            0u);
}

}  // namespace
}  // namespace assay::preload
