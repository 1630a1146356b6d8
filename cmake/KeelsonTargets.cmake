# KEELSON_UNITY: the compiler gets up to KEELSON_UNITY_SOURCES sources of a target at a time, so that it parses
# their headers once: half of the build's time. The preset dev is without it; tools/check_includes finds the headers that
# a source uses and does not include.
option(KEELSON_UNITY "Compile several sources of a target at a time" OFF)
set(KEELSON_UNITY_SOURCES 24)

# What our own code is compiled with. GCC 12 reports -Wrestrict falsely for std::string (GCC bug 105651).
set(KEELSON_WARNINGS -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND KEELSON_WARNINGS -Wno-restrict)
  if(KEELSON_UNITY)
    # GCC takes a source that another one includes for a header, whose types other sources would see.
    list(APPEND KEELSON_WARNINGS -Wno-subobject-linkage)
  endif()
  if(KEELSON_PRECOMPILE)
    # Likewise what the optimizer makes of templates out of a precompiled header.
    list(APPEND KEELSON_WARNINGS -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow
      -Wno-stringop-overread)
  endif()
endif()

# keelson_unity(TARGET): after the target has its sources, which are divided evenly. A source that must be
# compiled by itself sets SKIP_UNITY_BUILD_INCLUSION.
function(keelson_unity target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR batches "(${count} + ${KEELSON_UNITY_SOURCES} - 1) / ${KEELSON_UNITY_SOURCES}")
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${KEELSON_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# What runs once, or a few times a second: optimizing it costs more time than it ever saves.
set(KEELSON_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)

# keelson_library(NAME SRCS ... DEPS ... [COLD|HOT]): one static library for a folder. HOT: its loops take most of
# the tests' time.
function(keelson_library name)
  cmake_parse_arguments(ARG "COLD;HOT" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS} $<$<BOOL:${ARG_COLD}>:${KEELSON_COLD_OPTIONS}>)
  keelson_use_precompiled_headers(${name} keelson_library_headers)
  if(ARG_HOT AND KEELSON_SANITIZE)
    # The sanitizers' builds optimize nothing else. The precompiled header has other options.
    target_compile_options(${name} PRIVATE -O1)
    set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  keelson_unity(${name})
endfunction()

# keelson_testing_library(NAME SRCS ... DEPS ... [HOT]): what tests share; released programs have none of it.
# HOT: a test's time is spent there, so it is optimized.
function(keelson_testing_library name)
  cmake_parse_arguments(ARG "HOT" "" "" ${ARGN})
  keelson_library(${name} ${ARGN})
  if(ARG_HOT)
    target_link_libraries(${name} PUBLIC GTest::gmock)
  else()
    keelson_compile_as_test(${name})
  endif()
endfunction()

# keelson_compile_as_test(TARGET): without optimization, for it runs in tests alone; the sanitizers compile it as a
# library.
function(keelson_compile_as_test name)
  target_link_libraries(${name} PUBLIC GTest::gmock)
  if(NOT KEELSON_SANITIZE)
    target_compile_options(${name} PRIVATE ${KEELSON_TEST_OPTIONS})
    keelson_use_precompiled_headers(${name} keelson_test_headers)
  endif()
endfunction()

# All programs that CTest runs.
add_custom_target(tests)

# The work is in the libraries; the tests themselves take longest to compile, a third less without optimizing.
set(KEELSON_TEST_OPTIONS)
if(KEELSON_SANITIZE STREQUAL "address")
  set(KEELSON_TEST_OPTIONS -fno-sanitize=undefined)
elseif(NOT KEELSON_SANITIZE)
  # _FORTIFY_SOURCE needs optimization. SHELL: else CMake would drop a flag that KeelsonHardening gives before.
  set(KEELSON_TEST_OPTIONS $<$<CONFIG:Release>:-O0> "$<$<CONFIG:Release>:SHELL:-U_FORTIFY_SOURCE>")
endif()

# keelson_test(NAME SRCS ... DEPS ... [LABEL unit|integration|e2e|convergence|gpu] [TIMEOUT seconds]
# [EMULATED_CUDA] [SINGLE_THREADED] [UNSANITIZED patterns...] [UNTHREADED patterns...]): one GoogleTest program, run by
# CTest under its label (default: unit) for at most TIMEOUT (default: 300), twice that under a sanitizer.
# EMULATED_CUDA: its CUDA devices are those of core/device/cuda/emulation. SINGLE_THREADED: the thread sanitizer has
# nothing to see in it. Of tests that take long: UNSANITIZED those that are much arithmetic in few lines, or whose code
# others run too, which no sanitizer runs, UNTHREADED those with one thread, which the thread sanitizer does not.
function(keelson_test name)
  cmake_parse_arguments(ARG "EMULATED_CUDA;SINGLE_THREADED" "LABEL;TIMEOUT" "SRCS;DEPS;UNSANITIZED;UNTHREADED" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(KEELSON_SANITIZE)
    math(EXPR ARG_TIMEOUT "2 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} keelson_test_main)
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS} ${KEELSON_TEST_OPTIONS})
  keelson_use_precompiled_headers(${name} keelson_test_headers)
  keelson_unity(${name})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests KEELSON_EMULATED_CUDA ${ARG_EMULATED_CUDA})
  if(ARG_SINGLE_THREADED AND KEELSON_SANITIZE STREQUAL "thread")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(left_out)
  if(KEELSON_SANITIZE)
    list(APPEND left_out ${ARG_UNSANITIZED})
  endif()
  if(KEELSON_SANITIZE STREQUAL "thread")
    list(APPEND left_out ${ARG_UNTHREADED})
  endif()
  set(filter)
  if(left_out)
    list(JOIN left_out ":" left_out)
    set(filter "GTEST_FILTER=-${left_out}")
  endif()
  add_dependencies(tests ${name})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Those that may take longest start first, so that none of them is waited for at the end.
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
    ENVIRONMENT "KEELSON_SOURCE_DIR=${PROJECT_SOURCE_DIR};KEELSON_BINARY_DIR=${PROJECT_BINARY_DIR}/bin;${KEELSON_SANITIZER_ENVIRONMENT};${filter}")
endfunction()

# keelson_binary(NAME SRCS ... DEPS ... [COLD]): a shipped program, into <build>/bin.
function(keelson_binary name)
  cmake_parse_arguments(ARG "COLD" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS} $<$<BOOL:${ARG_COLD}>:${KEELSON_COLD_OPTIONS}>)
  keelson_unity(${name})
endfunction()

# keelson_fuzzer(NAME SRCS ... DEPS ...): a libFuzzer program of the target fuzzers; with KEELSON_FUZZ.
function(keelson_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()
