#include "include/assay_kernels.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

/// A kernel that destroys itself.
struct Planned {
  assay_kernel* kernel = nullptr;
  int status;

  Planned(const char* name, const assay_problem& problem)
      : status(assay_kernel_create(name, &problem, &kernel)) {}
  ~Planned() {
    if (kernel) assay_kernel_destroy(kernel);
  }
  std::map<std::string, assay_tensor> tensors() const {
    int count = 0;
    const assay_tensor* all = assay_kernel_tensors(kernel, &count);
    std::map<std::string, assay_tensor> result;
    for (int i = 0; i < count; ++i) result[all[i].name] = all[i];
    return result;
  }
};

assay_problem problem() {
  assay_problem p = {};
  p.struct_bytes = sizeof p;
  p.B = 2, p.T = 100, p.H = 3, p.K = 16, p.V = 24;
  p.format = ASSAY_BF16, p.gate_format = ASSAY_FP32, p.direction = ASSAY_BOTH;
  return p;
}

TEST(KernelLibrary, PlansEveryKernelThereIs) {
  int planned = 0;
  for (const char* name; (name = assay_kernel_name(planned)) != nullptr; ++planned) {
    assay_problem p = problem();
    p.direction = ASSAY_FORWARD, p.M = 0;
    for (const auto& [of, most] : {std::pair{"gsa.", 16}, {"gated_delta_product.", 2}})
      if (std::string(name).rfind(of, 0) == 0) p.M = most;
    const Planned k(name, p);
    ASSERT_EQ(k.status, 0) << name << ": " << assay_error();
    EXPECT_GE(k.tensors().size(), 2u) << name;
  }
  EXPECT_GE(planned, 16);
  EXPECT_EQ(assay_kernel_name(-1), nullptr);
}

TEST(KernelLibrary, SaysWhatACallTakesAndGives) {
  const Planned k("gla.chunk", problem());
  ASSERT_EQ(k.status, 0) << assay_error();
  const auto tensors = k.tensors();
  EXPECT_FALSE(tensors.at("q").is_output);
  EXPECT_EQ(tensors.at("q").format, ASSAY_BF16);
  EXPECT_EQ(tensors.at("q").bytes, 2 * 100 * 3 * 16 * 2);
  EXPECT_EQ(tensors.at("g").format, ASSAY_FP32);
  EXPECT_EQ(tensors.at("final_state").shape[3], 24);
  EXPECT_TRUE(tensors.at("dinitial_state").is_output);
  EXPECT_GT(assay_kernel_workspace(k.kernel), 0);
}

TEST(KernelLibrary, TakesAbsentInputsAndPackedSequences) {
  assay_problem p = problem();
  const char* absent[] = {"initial_state", "dfinal_state", nullptr};
  const int64_t offsets[] = {0, 0, 40, 100};
  p.B = 1, p.cu_seqlens = offsets, p.sequences = 3, p.absent = absent;
  const Planned k("gla.fused_recurrent", p);
  ASSERT_EQ(k.status, 0) << assay_error();
  const auto tensors = k.tensors();
  EXPECT_EQ(tensors.count("initial_state") + tensors.count("dinitial_state") + tensors.count("dfinal_state"),
            0u);
  EXPECT_EQ(tensors.at("final_state").shape[0], 3);
}

TEST(KernelLibrary, HeadDecaysStandInForGates) {
  assay_problem p = problem();
  const char* absent[] = {"g", nullptr};
  p.absent = absent;
  const Planned k("simple_gla.chunk", p);
  ASSERT_EQ(k.status, 0) << assay_error();
  EXPECT_EQ(k.tensors().count("g"), 0u);
  EXPECT_EQ(k.tensors().at("g_gamma").shape[0], 3);
  EXPECT_TRUE(k.tensors().at("dg_gamma").is_output);
}

TEST(KernelLibrary, ParametersOfOperatorsAreChecked) {
  assay_problem p = problem();
  const assay_parameter layer[] = {{sizeof(assay_parameter), "layer_idx", 3},
                                   {sizeof(assay_parameter), "num_layers", 12},
                                   {}},
                        wrong[] = {{sizeof(assay_parameter), "layer", 3}, {}};
  p.parameters = layer;
  EXPECT_EQ(Planned("lightning_attn.chunk", p).status, 0) << assay_error();
  p.parameters = wrong;
  EXPECT_EQ(Planned("lightning_attn.chunk", p).status, 1);
  EXPECT_NE(std::string(assay_error()).find("layer"), std::string::npos) << assay_error();
}

TEST(KernelLibrary, TakesInputsThatAreViewsForAWorkspaceOfTheirCopies) {
  assay_problem p = problem();
  const Planned dense("gla.chunk", p);
  const assay_strides strides[] = {{sizeof(assay_strides), "q", {3 * 100 * 16, 16, 100 * 16, 1}},
                                   {sizeof(assay_strides), "k", {100 * 96, 96, 16, 1}},
                                   {}};
  p.strides = strides;
  const Planned k("gla.chunk", p);
  ASSERT_EQ(k.status, 0) << assay_error();
  const auto tensors = k.tensors();
  EXPECT_EQ(tensors.at("q").strides[2], 1600);
  EXPECT_EQ(tensors.at("q").bytes, 2 * 100 * 3 * 16 * 2);
  EXPECT_EQ(tensors.at("k").strides[1], 96);
  EXPECT_EQ(tensors.at("k").bytes, (100 * 96 + 99 * 96 + 2 * 16 + 16) * 2);
  EXPECT_EQ(tensors.at("v").strides[1], 72);
  EXPECT_EQ(assay_kernel_workspace(k.kernel),
            assay_kernel_workspace(dense.kernel) + 2 * (2 * 100 * 3 * 16 * 2));
}

TEST(KernelLibrary, RefusesAStructThatDoesNotSayHowLongItIs) {
  assay_problem p = problem();
  p.struct_bytes = 0;
  EXPECT_EQ(Planned("gla.chunk", p).status, 1);
  EXPECT_EQ(std::string(assay_error()),
            "assay_problem: struct_bytes = 0: set it to sizeof(assay_problem), which is " +
                std::to_string(sizeof p));
}

TEST(KernelLibrary, TakesTheLongerStructsOfALaterHeader) {
  struct Longer {
    assay_parameter known;
    double more;
  };
  const Longer layer[] = {{{sizeof(Longer), "layer_idx", 3}, 0}, {{sizeof(Longer), "num_layers", 12}, 0}, {}};
  assay_problem p = problem();
  p.parameters = &layer[0].known;
  EXPECT_EQ(Planned("lightning_attn.chunk", p).status, 0) << assay_error();
}

TEST(KernelLibrary, RefusesStridesThatOverlapInOneLine) {
  const auto refusal = [](const assay_strides& first) {
    const assay_strides strides[] = {first, {}};
    assay_problem p = problem();
    p.strides = strides;
    return Planned("gla.chunk", p).status == 1 ? std::string(assay_error()) : "planned";
  };
  EXPECT_EQ(
      refusal({sizeof(assay_strides), "q", {4800, 40, 16, 1}}),
      "strides of q: axis T has stride 40, but K and H span 48 elements: elements overlap or interleave");
  EXPECT_EQ(refusal({sizeof(assay_strides), "q", {4800, 48, 0, 1}}),
            "strides of q: axis H has stride 0 along 3 elements: a tensor expanded over an axis is not "
            "taken, copy it");
  EXPECT_NE(refusal({sizeof(assay_strides), "o", {4800, 48, 16, 1}}).find("layout: unknown input of gla 'o'"),
            std::string::npos);
}

TEST(KernelLibrary, RefusesWhatItCannotPlanInOneLine) {
  const auto refusal = [](const char* name, const assay_problem& p) {
    return Planned(name, p).status == 1 ? std::string(assay_error()) : "planned";
  };
  EXPECT_EQ(refusal("gla.chonk", problem()), "unknown kernel 'gla.chonk': did you mean 'gla.chunk'?");
  assay_problem p = problem();
  p.K = 300;
  EXPECT_EQ(refusal("gla.chunk", p), "gla.chunk: K=300 is outside 1..256");
  p = problem();
  const char* absent[] = {"k", nullptr};
  p.absent = absent;
  EXPECT_NE(refusal("gla.chunk", p).find("optional input of gla"), std::string::npos);
  p = problem();
  p.T = -1;
  EXPECT_EQ(refusal("gla.chunk", p), "T = -1: must be at least 0");
}

class OnFakeDriver : public testing::Test {
 protected:
  void SetUp() override { setenv("ASSAY_CUDA_DRIVER", ASSAY_FAKE_DRIVER, 1); }
  void TearDown() override {
    unsetenv("ASSAY_CUDA_DRIVER");
    unsetenv("FAKE_DRIVER");
  }
  static std::string launched() {
    void* library = dlopen(ASSAY_FAKE_DRIVER, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<const char* (*)()>(dlsym(library, "fake_launched"))();
  }
};

TEST_F(OnFakeDriver, EnqueuesThePlansLaunchesInOrderWithEveryPointerChecked) {
  assay_problem p = problem();
  p.direction = ASSAY_FORWARD;
  const Planned k("gla.chunk", p);
  ASSERT_EQ(k.status, 0);
  std::vector<void*> pointers;
  for (size_t i = 0; i < k.tensors().size(); ++i)
    pointers.push_back(reinterpret_cast<void*>(0x1000 * (i + 1)));
  void* workspace = reinterpret_cast<void*>(0x100000);

  std::vector<void*> missing = pointers;
  missing[1] = nullptr;
  EXPECT_EQ(assay_kernel_run(k.kernel, missing.data(), workspace, nullptr), 1);
  EXPECT_STREQ(assay_error(), "k: its pointer 0x0 is missing");
  missing[1] = reinterpret_cast<void*>(0x2002);
  EXPECT_EQ(assay_kernel_run(k.kernel, missing.data(), workspace, nullptr), 1);
  EXPECT_STREQ(assay_error(), "k: its pointer 0x2002 is not aligned to 16 bytes");
  EXPECT_EQ(assay_kernel_run(k.kernel, pointers.data(), nullptr, nullptr), 1);

  ASSERT_EQ(assay_kernel_run(k.kernel, pointers.data(), workspace, nullptr), 0) << assay_error();
  const std::string once = launched();
  EXPECT_EQ(once.find("gla_chunk"), 0u) << once;
  ASSERT_EQ(assay_kernel_run(k.kernel, pointers.data(), workspace, nullptr), 0) << assay_error();
  EXPECT_EQ(launched(), once + once);
}

TEST_F(OnFakeDriver, ViewsBeginAtAnyElementAndAreCopiedFirst) {
  assay_problem p = problem();
  p.direction = ASSAY_FORWARD;
  const assay_strides strides[] = {{sizeof(assay_strides), "v", {100 * 80, 80, 24, 1}}, {}};
  p.strides = strides;
  const Planned k("gla.chunk", p);
  ASSERT_EQ(k.status, 0) << assay_error();
  std::vector<void*> pointers;
  for (size_t i = 0; i < k.tensors().size(); ++i)
    pointers.push_back(reinterpret_cast<void*>(0x1000 * (i + 1)));
  pointers[2] = reinterpret_cast<void*>(0x3002);
  ASSERT_EQ(assay_kernel_run(k.kernel, pointers.data(), reinterpret_cast<void*>(0x100000), nullptr), 0)
      << assay_error();
  EXPECT_NE(launched().find("gather_16"), std::string::npos) << launched();
  pointers[2] = reinterpret_cast<void*>(0x3001);
  EXPECT_EQ(assay_kernel_run(k.kernel, pointers.data(), reinterpret_cast<void*>(0x100000), nullptr), 1);
  EXPECT_STREQ(assay_error(), "v: its pointer 0x3001 is not aligned to 2 bytes");
}

TEST_F(OnFakeDriver, SaysWhatTheDriverRefuses) {
  setenv("FAKE_DRIVER", "cuLaunchKernel=700", 1);
  const Planned k("rwkv7_log_decay.fused", problem());
  ASSERT_EQ(k.status, 0) << assay_error();
  void* const pointers[] = {reinterpret_cast<void*>(0x1000), reinterpret_cast<void*>(0x2000),
                            reinterpret_cast<void*>(0x3000), reinterpret_cast<void*>(0x4000)};
  EXPECT_EQ(assay_kernel_run(k.kernel, pointers, nullptr, nullptr), 1);
  EXPECT_EQ(std::string(assay_error()).find("rwkv7_log_decay: CUDA_ERROR_ILLEGAL_ADDRESS"), 0u)
      << assay_error();
}

}  // namespace
