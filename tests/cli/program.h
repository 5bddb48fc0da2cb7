// Runs the built program as a user would.
#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "src/base/tensor/tensor_file.h"
#include "tests/tensor/scratch_folder.h"

namespace assay {

struct Ran {
  int status = -1;  ///< exit status; -1: ended by a signal
  std::string out, err;
};

/// `arguments` as typed in a shell, in folder `where`; `before` stands before the program's name.
inline Ran run_assay(const std::string& arguments, const ScratchFolder& where,
                     const std::string& before = "") {
  const std::string out = where / ".stdout", err = where / ".stderr";
  const std::string line = "cd '" + (where / "") + "' && export ASSAY_STARTED_AS=assay && " + before +
                           " '" ASSAY_PROGRAM "' " + arguments + " >'" + out + "' 2>'" + err + "' </dev/null";
  const int raw = std::system(line.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, read_file(out), read_file(err)};
}

}  // namespace assay
