# KEELSON_PRECOMPILE: what most sources include is parsed once per build, which halves the time of the
# sanitizers' builds.
set(precompile OFF)
if(KEELSON_SANITIZE)
  set(precompile ON)
endif()
option(KEELSON_PRECOMPILE "Precompile common headers" ${precompile})
# Release builds do it for tests alone, which they compile without optimization: GCC 12 reports false overflows in
# optimized code that uses a precompiled header. The preset dev does not: there a source must include what it uses.
if(KEELSON_PRECOMPILE OR (KEELSON_UNITY AND CMAKE_BUILD_TYPE STREQUAL "Release"))
  set(KEELSON_PRECOMPILE_TESTS ON)
  # A precompiled header serves sources with the same options alone.
  add_compile_options(-pthread)
endif()

# keelson_precompiled_headers(NAME DEPS ... HEADERS ... [OPTIONS ...]): headers for other targets,
# compiled with OPTIONS.
function(keelson_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "DEPS;HEADERS;OPTIONS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Only there for its precompiled headers.\n")
  add_library(${name} STATIC ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_compile_options(${name} PRIVATE ${KEELSON_WARNINGS} ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# keelson_use_precompiled_headers(TARGET NAME): a target with other options than NAME's sets
# DISABLE_PRECOMPILE_HEADERS, a source SKIP_PRECOMPILE_HEADERS.
function(keelson_use_precompiled_headers target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()
