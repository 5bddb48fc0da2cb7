# One static library per folder, sources listed explicitly; one test program per folder.
# UNITY n: up to n sources are compiled at a time, in units of about as many each: most of what a source costs are the
# headers that all of them include, and what templates make of them. Then unnamed namespaces are shared (the test
# unity_names keeps functions' names apart); ALONE names the sources that are left out. ASSAY_UNITY=OFF (presets debug
# and sanitize) compiles each source by itself.
# OPTIMISE -Og (a fifth less to compile than -O1), -O1: sources that run for milliseconds, or whose runs pass in the
# machine and the reference.
# Tests are linked by the fastest linker there is: one of 13 MB takes 0.5 s of processor time with GNU ld, 0.2 s with gold, which
# binutils brings, and 0.15 s with lld.
include(CheckLinkerFlag)
foreach(linker lld gold)
  if(NOT ASSAY_LINKER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    check_linker_flag(CXX -fuse-ld=${linker} ASSAY_LINKS_WITH_${linker})
    if(ASSAY_LINKS_WITH_${linker})
      set(ASSAY_LINKER -fuse-ld=${linker})
    endif()
  endif()
endforeach()

option(ASSAY_UNITY "Compile several sources at a time where that is much faster" ON)
function(assay_build_options name)
  cmake_parse_arguments(A "" "UNITY;OPTIMISE" "ALONE" ${ARGN})
  if(A_UNITY AND ASSAY_UNITY)
    get_target_property(together ${name} SOURCES)
    list(FILTER together INCLUDE REGEX "[.]cpp$")
    list(REMOVE_ITEM together ${A_ALONE})
    list(LENGTH together count)
    if(count GREATER 0)
      math(EXPR units "(${count} + ${A_UNITY} - 1) / ${A_UNITY}")
      math(EXPR batch "(${count} + ${units} - 1) / ${units}")
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    endif()
    set_source_files_properties(${A_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(A_OPTIMISE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${A_OPTIMISE}>)
  endif()
endfunction()

# The program and the Python package's shared library are made of the same objects.
function(assay_for_both name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
endfunction()

function(assay_library name)
  cmake_parse_arguments(A "" "UNITY;OPTIMISE" "SOURCES;LIBRARIES;ALONE" ${ARGN})
  if(A_SOURCES)
    add_library(${name} STATIC ${A_SOURCES})
    assay_for_both(${name})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(${name} PUBLIC ${A_LIBRARIES})
    assay_build_options(${name} UNITY "${A_UNITY}" OPTIMISE "${A_OPTIMISE}" ALONE ${A_ALONE})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(${name} INTERFACE ${A_LIBRARIES})
  endif()
endfunction()

# What a test costs to compile are the headers of gtest and of what it tests: 24 sources at a time, and -Og.
# SHARDS n: its tests run n at a time, as tests NAME.1 to NAME.n. LONG: all are what the command of a folder leaves out;
# CAMPAIGNS n: those of suites called *Campaign are, and run as tests NAME_campaigns.1 to NAME_campaigns.n.
function(assay_test name)
  cmake_parse_arguments(A "LONG" "SHARDS;CAMPAIGNS" "SOURCES;LIBRARIES;ALONE" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LIBRARIES} GTest::gtest GTest::gtest_main)
  assay_build_options(${name} UNITY 24 OPTIMISE -Og ALONE ${A_ALONE})
  target_link_options(${name} PRIVATE ${ASSAY_LINKER}
    $<$<CONFIG:Release>:-Wl,--strip-all>)  # a fifth of the build folder; debug keeps names
  foreach(source ${A_SOURCES})  # only where it is used, so that a compiler cache serves clones in other folders
    file(STRINGS ${source} uses REGEX "ASSAY_SOURCE_DIR|#include \"tests/")
    foreach(line ${uses})
      if(line MATCHES "#include \"(.*)\"")
        file(STRINGS ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1} line REGEX ASSAY_SOURCE_DIR LIMIT_COUNT 1)
      endif()
      if(line)
        target_compile_definitions(${name} PRIVATE ASSAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
        break()
      endif()
    endforeach()
  endforeach()
  set(long "")
  if(A_LONG)
    set(long LONG)
  endif()
  if(A_CAMPAIGNS)
    assay_test_runs(${name} ${name} SHARDS "${A_SHARDS}" ENVIRONMENT "GTEST_FILTER=-*Campaign.*")
    assay_test_runs(${name}_campaigns ${name} LONG SHARDS "${A_CAMPAIGNS}" ENVIRONMENT "GTEST_FILTER=*Campaign.*")
  else()
    assay_test_runs(${name} ${name} ${long} SHARDS "${A_SHARDS}")
  endif()
endfunction()

# Runs of a test's program in an environment (A=B;C=D), as test NAME or, n at a time, as tests NAME.1 to NAME.n.
function(assay_test_runs name program)
  cmake_parse_arguments(A "LONG" "SHARDS" "ENVIRONMENT" ${ARGN})
  set(names ${name})
  if(A_SHARDS)
    set(names "")
    foreach(shard RANGE 1 ${A_SHARDS})
      list(APPEND names ${name}.${shard})
    endforeach()
  endif()
  set(index 0)
  foreach(run ${names})
    add_test(NAME ${run} COMMAND ${program} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    assay_label_test(${run})
    if(A_LONG)
      set_property(TEST ${run} APPEND PROPERTY LABELS long)
    endif()
    set_property(TEST ${run} PROPERTY ENVIRONMENT ${A_ENVIRONMENT})
    if(A_SHARDS)
      set_property(TEST ${run} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${A_SHARDS} GTEST_SHARD_INDEX=${index})
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()

# Labels a test with the folder of tests/ that it is in: `./assay test -L vm`.
function(assay_label_test name)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" folder "${folder}")
  set_tests_properties(${name} PROPERTIES LABELS ${folder})
endfunction()
