# One static library per folder, sources listed explicitly; one test program per folder.
# UNITY n: n sources are compiled at a time, since most of what each costs are the headers that all of them include.
# Then unnamed namespaces are shared (the test unity_names keeps functions' names apart); ALONE names the sources that
# are left out. ASSAY_UNITY=OFF (presets debug and sanitize) compiles each source by itself.
# OPTIMISE -Og (a fifth less to compile than -O1), -O1: sources that run for milliseconds, or whose runs pass in the
# machine and the reference.
option(ASSAY_UNITY "Compile several sources at a time where that is much faster" ON)
function(assay_build_options name)
  cmake_parse_arguments(A "" "UNITY;OPTIMISE" "ALONE" ${ARGN})
  if(A_UNITY AND ASSAY_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${A_UNITY})
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

# What a test costs to compile are the headers of gtest and of what it tests: eight sources at a time, and -O1.
# SHARDS n: its tests run n at a time, as tests NAME.1 to NAME.n.
function(assay_test name)
  cmake_parse_arguments(A "LONG" "SHARDS" "SOURCES;LIBRARIES;ALONE" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LIBRARIES} GTest::gtest GTest::gtest_main)
  assay_build_options(${name} UNITY 8 OPTIMISE -O1 ALONE ${A_ALONE})
  target_link_options(${name} PRIVATE $<$<CONFIG:Release>:-Wl,--strip-all>)  # a fifth of the build folder; debug keeps names
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
  if(NOT A_SHARDS)
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    assay_label_test(${name})
    if(A_LONG)
      set_property(TEST ${name} APPEND PROPERTY LABELS long)
    endif()
    return()
  endif()
  foreach(shard RANGE 1 ${A_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    assay_label_test(${name}.${shard})
    if(A_LONG)
      set_property(TEST ${name}.${shard} APPEND PROPERTY LABELS long)
    endif()
    set_tests_properties(${name}.${shard} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${A_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# Labels a test with the folder of tests/ that it is in: `./assay test -L vm`.
function(assay_label_test name)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" folder "${folder}")
  set_tests_properties(${name} PROPERTIES LABELS ${folder})
endfunction()
