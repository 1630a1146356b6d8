# Sets KEELSON_PARQUET to ON, with the target keelson_parquet, when Arrow's libraries for Parquet are found; says in
# one line when they are not. Tests with sanitizers and archives of libraries (KEELSON_STATIC) go without them; the
# fuzzers, which read through nothing but Keelson's own reader, do not.
set(KEELSON_WITH_PARQUET AUTO CACHE STRING "AUTO: read Parquet when Arrow's libraries are found; OFF: never")
set(KEELSON_PARQUET OFF)
if(KEELSON_WITH_PARQUET STREQUAL "OFF" OR (KEELSON_SANITIZE AND NOT KEELSON_FUZZ) OR KEELSON_STATIC)
  return()
endif()
# After the installed ones those of deploy/install_parquet.sh.
set(cache $ENV{XDG_CACHE_HOME})
if(NOT cache)
  set(cache $ENV{HOME}/.cache)
endif()
find_path(KEELSON_PARQUET_INCLUDE parquet/arrow/reader.h PATHS ${cache}/keelson/parquet/include)
find_library(KEELSON_ARROW_LIBRARY arrow PATHS ${cache}/keelson/parquet/lib)
find_library(KEELSON_PARQUET_LIBRARY parquet PATHS ${cache}/keelson/parquet/lib)
if(NOT KEELSON_PARQUET_INCLUDE OR NOT KEELSON_ARROW_LIBRARY OR NOT KEELSON_PARQUET_LIBRARY)
  message(STATUS "Parquet: Arrow's libraries not found, building without data.parquet (deploy/install_parquet.sh)")
  return()
endif()
set(KEELSON_PARQUET ON)
add_library(keelson_parquet INTERFACE)
target_include_directories(keelson_parquet SYSTEM INTERFACE ${KEELSON_PARQUET_INCLUDE})
target_link_libraries(keelson_parquet INTERFACE ${KEELSON_PARQUET_LIBRARY} ${KEELSON_ARROW_LIBRARY})
