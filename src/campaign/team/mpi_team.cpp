#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>

#include "src/base/numerics/bad_input.h"
#include "src/campaign/team/mpi/assay_mpi.h"
#include "src/campaign/team/team.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlugin = "libassay_mpi.so";

class MpiTeam final : public Team {
 public:
  explicit MpiTeam(const assay_mpi& mpi) : mpi_(mpi) {}
  /// A member that fails does not wait for the others, who would wait for it: it ends without MPI's farewell,
  /// on which the launcher ends them all.
  ~MpiTeam() override {
    if (std::uncaught_exceptions() == 0) mpi_.finish();
  }
  int rank() const override { return mpi_.rank; }
  int size() const override { return mpi_.size; }

  void send(int to, const std::string& text) override {
    if (mpi_.send(to, text.data(), static_cast<int64_t>(text.size())) != 0)
      throw std::runtime_error(fmt::format("MPI did not take {} bytes for rank {}", text.size(), to));
  }

  std::optional<TeamMessage> receive() override {
    TeamMessage message;
    const void* bytes = nullptr;
    int64_t count = 0;
    const int status = mpi_.receive(&message.from, &bytes, &count);
    if (status < 0) throw std::runtime_error("MPI did not deliver a message");
    if (status == 0) return std::nullopt;
    message.text.assign(static_cast<const char*>(bytes), static_cast<size_t>(count));
    return message;
  }

 private:
  assay_mpi mpi_;
};

/// ASSAY_MPI, else beside the program, as a build leaves it, or where it is installed.
fs::path plugin() {
  if (const char* named = std::getenv("ASSAY_MPI"); named != nullptr && *named != '\0') return named;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& folder : {program, program / "../../mpi", program / "../lib/assay"})
    if (fs::exists(folder / kPlugin, failed)) return folder / kPlugin;
  throw BadInput(
      fmt::format("started as one of {} processes, and the plugin for MPI is not there: build it by 'mpicc "
                  "-shared -fPIC -O2 "
                  "-o {} assay_mpi.c' (in share/assay/mpi, or src/campaign/team/mpi of the sources), and put "
                  "it beside the "
                  "program or name it by ASSAY_MPI",
                  launched_processes(), kPlugin));
}

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

int launched_processes() {
  return std::max({1, number_in("OMPI_COMM_WORLD_SIZE"), number_in("PMI_SIZE"), number_in("MPI_LOCALNRANKS"),
                   std::getenv("PMIX_RANK") != nullptr ? number_in("SLURM_NTASKS") : 1});
}

std::unique_ptr<Team> launched_team() {
  if (launched_processes() == 1) return nullptr;
  const fs::path path = plugin();
  // MPI finds parts of its own by their names.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw BadInput(fmt::format("the plugin for MPI cannot be opened: {}", dlerror()));
  const auto start = reinterpret_cast<assay_mpi_start_function>(dlsym(library, ASSAY_MPI_START));
  if (start == nullptr) throw BadInput(fmt::format("{}: no plugin of assay's for MPI", path.string()));
  assay_mpi mpi{};
  mpi.struct_bytes = sizeof mpi;
  if (const char* why = start(&mpi)) throw BadInput(fmt::format("{}: {}", path.string(), why));
  if (mpi.size == 1)
    throw BadInput(
        fmt::format("started as one of {} processes, and the MPI of {} knows of this one alone: build the "
                    "plugin by the mpicc "
                    "of the MPI whose mpirun starts assay",
                    launched_processes(), path.string()));
  return std::make_unique<MpiTeam>(mpi);
}

}  // namespace assay
