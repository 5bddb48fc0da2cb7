#include "src/base/backend/gpu_binary.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "src/base/numerics/bad_input.h"
#include "tests/backend/small_program.h"

namespace assay {
namespace {

std::string written(const std::string& name, const std::string& bytes) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(GpuBinary, AFileThatIsNoBinaryOrIsNotThereIsOneClearLine) {
  const std::string text = written("not_a_cubin", ".version 7.0");
  EXPECT_EQ(message_of([&] { read_gpu_binary(text); }),
            "--cubin " + text + ": neither a cubin nor a fatbin; nvcc -cubin makes one");
  EXPECT_EQ(message_of([&] { read_gpu_binary("main=/no/such/file"); }),
            "--cubin /no/such/file: cannot be read");
}

TEST(GpuBinary, AModuleIsNamedBeforeTheFile) {
  const std::string path = written("a_cubin",
                                   "\x7f"
                                   "ELF and more");
  EXPECT_EQ(read_gpu_binary(path).module, "");
  const GpuBinary named = read_gpu_binary("main=" + path);
  EXPECT_EQ(named.module, "main");
  EXPECT_EQ(named.path, path);
  EXPECT_EQ(named.bytes.size(), 13u);
}

TEST(GpuBinary, WithoutANameItStandsForAPlansOnlyModule) {
  Program plan;
  plan.name = "k";
  plan.modules = {{"first", "first.ptx", nullptr}};
  const std::vector<GpuBinary> binaries{{"", "a.cubin", "x"}};
  EXPECT_EQ(binary_for(binaries, plan, "first"), &binaries[0]);
  plan.modules.push_back({"second", "second.ptx", nullptr});
  EXPECT_EQ(message_of([&] { binary_for(binaries, plan, "first"); }),
            "--cubin a.cubin: k has the modules first, second; say which it stands for, as in --cubin "
            "first=a.cubin");
  const std::vector<GpuBinary> one{{"second", "b.cubin", "x"}};
  EXPECT_EQ(binary_for(one, plan, "first"), nullptr);
  EXPECT_EQ(binary_for(one, plan, "second"), &one[0]);
  EXPECT_NE(message_of([&] { binary_for({{"third", "c.cubin", "x"}}, plan, "first"); }), "no error");
}

TEST(GpuBinary, ABackendSaysWhatItRuns) {
  setenv("ASSAY_CUDA_DRIVER", ASSAY_FAKE_DRIVER, 1);
  const auto backend = make_cuda_backend({}, {{"", "fast.cubin", "x"}});
  EXPECT_EQ(backend->name(), "cuda Fake GPU (sm_90), fast.cubin");
  unsetenv("ASSAY_CUDA_DRIVER");
}

}  // namespace
}  // namespace assay
