// Runs the programs of programs.h and prints a digest of each one's outputs.
//   hopper_programs [--backend cuda|vm] [--only TEXT] [--dump FOLDER] > tests/data/hopper_h200.txt
// On a GPU each is compared with the machine: what differs is told on standard error, and with --dump the
// outputs of the GPU are written there (NAME.OUTPUT, raw).
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "src/base/backend/backend.h"
#include "src/base/numerics/bad_input.h"
#include "src/verification/compare/digest.h"
#include "tools/hopper/programs.h"

namespace assay::hopper {
namespace {

struct Options {
  std::string backend = "cuda", only, dump;
};

std::string first_difference(const TensorMap& gpu, const TensorMap& machine) {
  for (const auto& [name, a] : gpu) {
    const Tensor& b = machine.at(name);
    int64_t count = 0, first = -1;
    for (int64_t i = 0; i < a.size(); ++i)
      if (a.bits(i) != b.bits(i)) count++, first = first < 0 ? i : first;
    if (count == 0) continue;
    char text[200];
    std::snprintf(text, sizeof text, "%lld of %lld words of %s, the first %lld: %08llx, machine %08llx",
                  static_cast<long long>(count), static_cast<long long>(a.size()), name.c_str(),
                  static_cast<long long>(first), static_cast<unsigned long long>(a.bits(first)),
                  static_cast<unsigned long long>(b.bits(first)));
    return text;
  }
  return "";
}

void write(const std::string& folder, const std::string& name, const TensorMap& outputs) {
  for (const auto& [output, tensor] : outputs) {
    std::ofstream file(folder + "/" + name + "." + output, std::ios::binary);
    file.write(reinterpret_cast<const char*>(tensor.data.data()),
               static_cast<std::streamsize>(tensor.data.size()));
  }
}

int run(const Options& options) {
  const auto machine = make_vm_backend({});
  auto gpu = options.backend == "vm" ? make_vm_backend({}) : make_cuda_backend({});
  std::printf("# %s; name and digest (src/verification/compare/digest.h)\n", gpu->name().c_str());
  int differing = 0, count = 0;
  for (const NamedProgram& named : options.only == "interleaved" ? unmodelled_programs() : programs()) {
    if (named.name.find(options.only) == std::string::npos) continue;
    ++count;
    std::string difference;
    try {
      const Outcome there = gpu->run(named.program, named.inputs),
                    here = machine->run(named.program, named.inputs);
      if (there.trap) {
        difference = "GPU: " + there.trap->message;
        if (options.backend != "vm") gpu = make_cuda_backend({});
      } else {
        std::printf("%s %016llx\n", named.name.c_str(),
                    static_cast<unsigned long long>(digest(there.outputs)));
        difference =
            here.trap ? "machine: " + here.trap->message : first_difference(there.outputs, here.outputs);
        if (!difference.empty() && !options.dump.empty()) write(options.dump, named.name, there.outputs);
      }
    } catch (const BadInput& error) {
      difference = error.what();
    }
    std::fflush(stdout);
    if (difference.empty()) continue;
    ++differing;
    std::fprintf(stderr, "%s: %s\n", named.name.c_str(), difference.c_str());
  }
  std::fprintf(stderr, "%d of %d programs differ\n", differing, count);
  return differing != 0;
}

}  // namespace
}  // namespace assay::hopper

int main(int argc, char** argv) {
  assay::hopper::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    (name == "--backend" ? options.backend : name == "--only" ? options.only : options.dump) = argv[i + 1];
  }
  try {
    return assay::hopper::run(options);
  } catch (const assay::BadInput& error) {
    std::fprintf(stderr, "hopper_programs: %s\n", error.what());
    return 2;
  }
}
