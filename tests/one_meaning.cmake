# What an instruction means is declared in src/base/vm/rows/ and taken from its opcode in src/base/ptx/form.cpp. No
# other source looks at the text of an opcode, spells one, or tells instructions apart by how the engine runs them.
# `cmake -P tests/one_meaning.cmake`; fails with each line that does.
cmake_policy(SET CMP0057 NEW)
if(ROOT)
  set(root ${ROOT})
else()
  get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
endif()

# The table, what reads it, and the engine.
set(home
  "^src/base/ptx/" "^src/base/vm/rows/" "^src/base/vm/rows[.]cpp$" "^src/base/vm/availability[.]cpp$"
  "^src/base/vm/instruction_(row[.]h|list[.]cpp)$" "^src/base/vm/decode" "^src/base/vm/engine[.]h$"
  "^src/base/vm/code[.]h$"
  "^src/base/vm/compiled/"            # the engine's host code: rows by their patterns
  "^src/base/vm/control_flow[.]cpp$"  # of the engine: where lanes meet again
  "^src/base/vm/flow_graph[.]cpp$"    # where they go on
  "^src/base/mutation/mutation_operators[.]cpp$"  # writes instructions, and looks at none
  "^tools/")                                      # make programs and inputs of the table's forms
# Still to be converted; only ever shorter.
set(exceptions)

file(STRINGS ${root}/src/base/ptx/operations.def rows REGEX "^ASSAY_OPERATION")
set(names)
foreach(row IN LISTS rows)
  string(REGEX REPLACE ".*\"([a-z0-9_]+)[.\"].*" "\\1" name "${row}")
  list(APPEND names ${name})
endforeach()
list(REMOVE_DUPLICATES names)
string(JOIN "|" names ${names})
set(kinds "lanes|exponential|compare|async_wait|branch|branch_table|call|ret|exit|barrier|trap|nothing|warp")
set(text "opcode[a-z_]*(\\([^)]*\\))?[.](starts_with|ends_with|find|rfind|substr|contains|compare)[(]|instruction[.](starts_with|ends_with)[(]")

set(wrong "[^a-z:]Kind::(${kinds})|vm::Kind::|${text}|opcode [!=]= \"|\"(${names})[.][a-z0-9_.]*\"")

file(GLOB_RECURSE sources RELATIVE ${root} ${root}/src/*.cpp ${root}/src/*.h ${root}/kernels/*.cpp ${root}/kernels/*.h
  ${root}/reference/*.cpp ${root}/reference/*.h ${root}/fuzz/*.cpp ${root}/fuzz/*.h ${root}/reports/*.cpp
  ${root}/tools/*.cpp ${root}/tools/*.h)
set(failed FALSE)
set(clean ${exceptions})
foreach(source IN LISTS sources)
  set(allowed FALSE)
  foreach(place IN LISTS home)
    if(source MATCHES "${place}")
      set(allowed TRUE)
    endif()
  endforeach()
  if(allowed)
    continue()
  endif()
  file(STRINGS ${root}/${source} lines REGEX "${wrong}")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "//.*" "" code "${line}")
    if(NOT code MATCHES "${wrong}")
      continue()
    endif()
    string(STRIP "${line}" line)
    if(source IN_LIST exceptions)
      list(REMOVE_ITEM clean ${source})
      break()
    endif()
    message("${source}: ${line}")
    set(failed TRUE)
  endforeach()
endforeach()
foreach(source IN LISTS clean)
  message("${source} needs no exception any more")
  set(failed TRUE)
endforeach()
if(failed)
  message(FATAL_ERROR "only the instruction table and the form parser tell instructions apart by their text or kind")
endif()
