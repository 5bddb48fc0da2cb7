# Kernels: CUDA C++ -> PTX at build time, embedded whole, so that the program needs no file at run time.
# nvcc: ASSAY_NVCC, then PATH, then the usual place, then the build folder's wheels (the launcher puts them there).
find_program(ASSAY_NVCC_PROGRAM nvcc
  HINTS $ENV{ASSAY_NVCC_DIR} PATHS /usr/local/cuda/bin ${CMAKE_SOURCE_DIR}/build/nvcc/bin
        ${CMAKE_SOURCE_DIR}/build/nvcc/nvidia/cuda_nvcc/bin ${CMAKE_SOURCE_DIR}/build/nvcc/nvidia/cu13/bin)
if(DEFINED ENV{ASSAY_NVCC})
  set(ASSAY_NVCC_PROGRAM $ENV{ASSAY_NVCC})
endif()
if(NOT ASSAY_NVCC_PROGRAM)
  message(FATAL_ERROR "nvcc not found: set ASSAY_NVCC, add it to PATH, or install the CUDA toolkit (looked in "
                      "/usr/local/cuda/bin and ${CMAKE_SOURCE_DIR}/build/nvcc)")
endif()

# embed_ptx(<target> <source.cu> <stem> <definition>...): compiles, prepares, and adds row `stem` to the table below.
function(embed_ptx target source stem)
  get_filename_component(folder ${CMAKE_CURRENT_BINARY_DIR}/${stem} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  set(raw ${CMAKE_CURRENT_BINARY_DIR}/${stem}.raw.ptx)
  set(ptx ${CMAKE_CURRENT_BINARY_DIR}/${stem}.ptx)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
  add_custom_command(OUTPUT ${ptx} ${ptx}.z
    COMMAND ${ASSAY_NVCC_PROGRAM} -ptx -arch=compute_80 -std=c++17 -fmad=false -lineinfo ${definitions}
            -MD -MF ${raw}.d -MT ${ptx} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${raw}
    COMMAND prepare_ptx ${raw} ${ptx} ${CMAKE_SOURCE_DIR}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} prepare_ptx
    DEPFILE ${raw}.d
    COMMENT "nvcc -ptx ${stem}"
    VERBATIM)
  set_property(TARGET ${target} APPEND PROPERTY embedded_ptx "${stem}|${ptx}.z")
endfunction()

# embed_source(<target> <file>...): adds source files, named by their path from the source root.
function(embed_source target)
  foreach(file ${ARGN})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    set_property(TARGET ${target} APPEND PROPERTY embedded_source "${name}|${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
endfunction()

# write_embedded_table(<target> <symbol>): a C++ source with `const EmbeddedFile <symbol>[]`, the files that embed_ptx
# or embed_source named, ended by an empty row.
function(write_embedded_table target symbol)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
  get_target_property(files ${target} ${symbol})
  set(assembly "")
  set(rows "")
  set(paths "")
  set(i 0)
  foreach(file ${files})
    string(REPLACE "|" ";" file "${file}")
    list(GET file 0 name)
    list(GET file 1 path)
    list(APPEND paths ${path})
    string(APPEND assembly "__asm__(\".pushsection .rodata\\n.hidden ${symbol}_${i}\\n.hidden ${symbol}_${i}_end\\n\"
        \".global ${symbol}_${i}\\n.global ${symbol}_${i}_end\\n${symbol}_${i}:\\n.incbin \\\"${path}\\\"\\n\"
        \"${symbol}_${i}_end:\\n.byte 0\\n.popsection\\n\");
extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${symbol}_${i}[], ${symbol}_${i}_end[];\n")
    string(APPEND rows "  {\"${name}\", ${symbol}_${i}, ${symbol}_${i}_end},\n")
    math(EXPR i "${i} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "#include \"kernels/embedded.h\"
${assembly}
const assay::EmbeddedFile assay::${symbol}[] = {
${rows}  {nullptr, nullptr, nullptr}};
" @ONLY)
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${paths}")
  target_sources(${target} PRIVATE ${output} ${paths})
endfunction()
