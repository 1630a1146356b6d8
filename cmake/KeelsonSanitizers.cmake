# KEELSON_SANITIZE: empty, "address" (with undefined behaviour) or "thread".
set(KEELSON_SANITIZE "" CACHE STRING "Sanitizer to build with: address or thread")
set(KEELSON_SANITIZER_ENVIRONMENT "")
if(KEELSON_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(keelson_sanitizer_macro __SANITIZE_ADDRESS__)
  add_link_options(-fsanitize=address,undefined)
  set(KEELSON_SANITIZER_ENVIRONMENT
    "ASAN_OPTIONS=detect_stack_use_after_return=1"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1")
elseif(KEELSON_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  set(keelson_sanitizer_macro __SANITIZE_THREAD__)
  add_link_options(-fsanitize=thread)
  # The distribution's gRPC synchronises through an abseil that is not instrumented: what happens
  # within such libraries is not looked at. Code of Keelson that they call is.
  set(KEELSON_SANITIZER_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp:ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1")
elseif(KEELSON_SANITIZE)
  message(FATAL_ERROR "KEELSON_SANITIZE=${KEELSON_SANITIZE}: expected address or thread")
endif()

if(KEELSON_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The macro by which sources ask for the sanitizer: GCC's own.
  add_compile_definitions(${keelson_sanitizer_macro})
endif()

# KEELSON_FUZZ: with the targets of keelson_fuzzer, and all code instrumented for them. Needs clang.
option(KEELSON_FUZZ "Instrument for libFuzzer" OFF)
if(KEELSON_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "KEELSON_FUZZ: libFuzzer needs clang; use the preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
