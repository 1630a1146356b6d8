# GCC looks for garbage whenever its heap has grown by a part, from 128 MiB on, which takes a sixth of the time of the
# build. Where every core has memory for that, it begins at 2 GB.
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR mib_per_core "${memory_mib} / ${cores}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND mib_per_core GREATER_EQUAL 6144)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=2000000>")
endif()
