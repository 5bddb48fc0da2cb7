// libFuzzer over launch files and capsules, one program each (preset `fuzzer`), and over what they make:
//   build/fuzzer/tests/capsule/launch_fuzzer CORPUS tests/capsule/fuzz_corpus/launch
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/machine.h"
#include "src/capsule/launch_file.h"
#include "src/capsule/launch_tensors.h"

namespace {

constexpr const char* kPtx = R"(.version 7.8
.target sm_90a
.address_size 64
.visible .entry add(.param .u64 px, .param .u32 pn) {
  .reg .b64 %x, %at; .reg .b32 %t, %n, %c; .reg .f32 %f; .reg .pred %p;
  ld.param.u64 %x, [px]; ld.param.u32 %n, [pn];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.s32 %t, %c, 32, %t;
  setp.ge.u32 %p, %t, %n; @%p bra OUT;
  mul.wide.u32 %at, %t, 4; add.s64 %x, %x, %at;
  ld.global.f32 %f, [%x]; add.rn.f32 %f, %f, 0f3F800000; st.global.f32 [%x], %f;
OUT: ret;
}
.visible .entry mapped(.param .align 64 .b8 pm[128], .param .align 8 .b8 ps[24]) {
  .reg .b64 %x;
  ld.param.u64 %x, [ps]; st.global.u64 [%x], %x;
  ret;
}
)";

std::string file(const std::string& name) {
  static const std::filesystem::path folder = [] {
    std::error_code failed;
    std::filesystem::path made =
        std::filesystem::exists("/dev/shm", failed) ? "/dev/shm" : std::filesystem::temp_directory_path();
    made /= "assay_launch_fuzzer_" + std::to_string(getpid());
    std::filesystem::create_directories(made);
    std::ofstream(made / "k.ptx") << kPtx;
    return made;
  }();
  return (folder / name).string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  most_launch_elements = 1 << 12;
  const std::string path = file(ASSAY_READ), ptx = file("k.ptx");
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<long>(size));
  try {
    const LaunchFile read(path, {ptx});
    const Capsule made = read.make({}, 1);
    read.accepts({});
    vm::MachineOptions options{.threads = 1, .instruction_budget = 1 << 12};
    options.most_lane_instructions = 1 << 16;
    vm::run(made.program, made.inputs, options);
  } catch (const BadInput&) {
  } catch (const vm::OverBudget&) {
  }
  return 0;
}
