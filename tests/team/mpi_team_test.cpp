#include <gtest/gtest.h>

#include <cstdlib>

#include "src/base/numerics/bad_input.h"
#include "src/campaign/team/team.h"

namespace assay {
namespace mpi_team_test {

class LaunchedTeam : public testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }
  static void forget() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "PMIX_RANK", "SLURM_NTASKS", "ASSAY_MPI"})
      unsetenv(name);
  }
  static std::string refusal() {
    try {
      launched_team();
    } catch (const BadInput& reason) {
      return reason.what();
    }
    return "accepted";
  }
};

TEST_F(LaunchedTeam, AProcessStartedAloneHasNone) {
  EXPECT_EQ(launched_team(), nullptr);
  setenv("SLURM_NTASKS", "8", 1);  // sbatch's own: no launcher of several
  EXPECT_EQ(launched_processes(), 1);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_EQ(launched_team(), nullptr);
}

TEST_F(LaunchedTeam, EveryLauncherIsRecognised) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    setenv(name, "3", 1);
    EXPECT_EQ(launched_processes(), 3) << name;
    forget();
  }
  setenv("SLURM_NTASKS", "8", 1);
  setenv("PMIX_RANK", "2", 1);
  EXPECT_EQ(launched_processes(), 8);
}

TEST_F(LaunchedTeam, AMissingPluginIsALineThatSaysHowToBuildIt) {
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("ASSAY_MPI", "/nonexistent/libassay_mpi.so", 1);
  EXPECT_NE(refusal().find("/nonexistent/libassay_mpi.so"), std::string::npos) << refusal();
  setenv("ASSAY_MPI", "libc.so.6", 1);
  EXPECT_NE(refusal().find("no plugin of assay's for MPI"), std::string::npos) << refusal();
}

}  // namespace mpi_team_test
}  // namespace assay
