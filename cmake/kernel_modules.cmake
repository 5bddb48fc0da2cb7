# Kernels: CUDA C++ -> PTX. The program compiles a module when it is first asked for and keeps it by its content
# (kernels/compile_ptx.h), or, with ASSAY_EMBED_PTX, carries all of them and needs neither nvcc nor a file at run time.
# nvcc: ASSAY_NVCC, then PATH, then the usual place, then the build folder's wheels (the launcher puts them there).
find_program(ASSAY_NVCC_PROGRAM nvcc
  HINTS $ENV{ASSAY_NVCC_DIR} PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/build/nvcc/bin
        ${PROJECT_SOURCE_DIR}/build/nvcc/nvidia/cuda_nvcc/bin ${PROJECT_SOURCE_DIR}/build/nvcc/nvidia/cu13/bin)
if(DEFINED ENV{ASSAY_NVCC})
  set(ASSAY_NVCC_PROGRAM $ENV{ASSAY_NVCC})
endif()
if(NOT ASSAY_NVCC_PROGRAM)
  message(FATAL_ERROR "nvcc not found: set ASSAY_NVCC, add it to PATH, or install the CUDA toolkit (looked in "
                      "/usr/local/cuda/bin and ${PROJECT_SOURCE_DIR}/build/nvcc)")
endif()

execute_process(COMMAND ${ASSAY_NVCC_PROGRAM} --version OUTPUT_VARIABLE nvcc_version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE ".*\n" "" nvcc_version "${nvcc_version}")
set_source_files_properties(compile_ptx.cpp PROPERTIES COMPILE_DEFINITIONS
  "ASSAY_BUILD_NVCC=\"${ASSAY_NVCC_PROGRAM}\";ASSAY_BUILD_NVCC_VERSION=\"${nvcc_version}\";ASSAY_BUILD_CACHE=\"${PROJECT_SOURCE_DIR}/build/kernels\"")
add_executable(compile_module compile_module_main.cpp)
target_link_libraries(compile_module PRIVATE assay_compile_ptx)

# kernel_module(<target> <module>): adds row `module` ("gla/chunk.bf16.fp32") to the table `embedded_ptx` below, with
# its PTX or without. The target `kernel_modules` compiles all modules, so that no run has to wait for one; the tests' build asks for it.
set(compile_module ${CMAKE_COMMAND} -E env ASSAY_NVCC=${ASSAY_NVCC_PROGRAM} $<TARGET_FILE:compile_module> ${PROJECT_SOURCE_DIR})
function(kernel_module target module)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${module})
  foreach(form compiled ptx)
    add_custom_command(OUTPUT ${output}.${form} COMMAND ${compile_module} ${output}.${form} ${module}
      DEPENDS compile_module DEPFILE ${output}.${form}.d COMMENT "kernel ${module}" VERBATIM)
  endforeach()
  set_property(TARGET ${target} APPEND PROPERTY kernel_modules "${module}")
  if(NOT ASSAY_EMBED_PTX)
    set_property(TARGET ${target} APPEND PROPERTY embedded_ptx "${module}")
    set_property(TARGET ${target} APPEND PROPERTY compiled_modules "${output}.compiled")
  endif()
endfunction()

# pack_kernel_modules(<target>): once all are named, the rows of the table `carried_ptx`, and of `embedded_ptx` where it has texts:
# modules of one source lie in one file (kernels/packed_group.h).
function(pack_kernel_modules target)
  get_target_property(modules ${target} kernel_modules)
  foreach(module ${modules})
    string(REGEX REPLACE "[.].*" "" group ${module})
    list(APPEND groups ${group})
    list(APPEND modules_of_${group} ${module})
    list(APPEND compiled_of_${group} ${CMAKE_CURRENT_BINARY_DIR}/${module}.compiled)
    set(row "${module}|${CMAKE_CURRENT_BINARY_DIR}/${group}.zst")
    set_property(TARGET ${target} APPEND PROPERTY carried_ptx "${row}")
    if(ASSAY_EMBED_PTX)
      set_property(TARGET ${target} APPEND PROPERTY embedded_ptx "${row}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group ${groups})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${group}.zst)
    add_custom_command(OUTPUT ${output} COMMAND ${compile_module} ${output} ${modules_of_${group}}
      DEPENDS compile_module ${compiled_of_${group}} DEPFILE ${output}.d COMMENT "kernels ${group}" VERBATIM)
  endforeach()
endfunction()

# embed_source(<target> <file>...): adds source files, named by their path from the source root.
function(embed_source target)
  foreach(file ${ARGN})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    set_property(TARGET ${target} APPEND PROPERTY embedded_source "${name}|${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
endfunction()

# write_embedded_table(<target> <symbol>): a C++ source with `const EmbeddedFile <symbol>[]`, what kernel_module or
# embed_source named, with the bytes of the file where there is one, ended by an empty row. `of`: the target that named
# them, and under which name, where that is another.
function(write_embedded_table target symbol)
  set(of ${target} ${symbol} ${ARGN})
  list(GET of -2 named_by)
  list(GET of -1 rows)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${rows}.cpp)
  get_target_property(files ${named_by} ${rows})
  set(assembly "")
  set(rows "")
  set(paths "")
  foreach(file ${files})
    string(REPLACE "|" ";" file "${file}")
    list(GET file 0 name)
    list(LENGTH file parts)
    if(parts EQUAL 1)
      string(APPEND rows "  {\"${name}\", nullptr, nullptr},\n")
      continue()
    endif()
    list(GET file 1 path)
    list(FIND paths ${path} i)
    if(NOT i EQUAL -1)
      string(APPEND rows "  {\"${name}\", ${symbol}_${i}, ${symbol}_${i}_end},\n")
      continue()
    endif()
    list(LENGTH paths i)
    list(APPEND paths ${path})
    string(APPEND assembly "__asm__(\".pushsection .rodata\\n.hidden ${symbol}_${i}\\n.hidden ${symbol}_${i}_end\\n\"
        \".global ${symbol}_${i}\\n.global ${symbol}_${i}_end\\n${symbol}_${i}:\\n.incbin \\\"${path}\\\"\\n\"
        \"${symbol}_${i}_end:\\n.byte 0\\n.popsection\\n\");
extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${symbol}_${i}[], ${symbol}_${i}_end[];\n")
    string(APPEND rows "  {\"${name}\", ${symbol}_${i}, ${symbol}_${i}_end},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "#include \"kernels/embedded.h\"
${assembly}
const assay::EmbeddedFile assay::${symbol}[] = {
${rows}  {nullptr, nullptr, nullptr}};
" @ONLY)
  # In a unity build its own dependencies would not count.
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${paths}" SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${output} ${paths})
endfunction()
