# Run at every build: writes tool_version.cpp, touching it only where version or commit changed.
# Arguments: SOURCE (source root), OUTPUT (file), VERSION.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short HEAD OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE dirty ERROR_QUIET)
  if(dirty)
    set(commit "${commit}+")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#include \"src/result/tool.h\"

namespace assay {

std::string_view tool_version() {
  return \"@VERSION@\";
}

std::string_view tool_commit() {
  return \"@commit@\";
}

}  // namespace assay
")
