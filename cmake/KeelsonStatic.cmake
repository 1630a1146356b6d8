# KEELSON_STATIC: for programs that run on machines without the distribution's libraries
# (tests/gpu). gRPC, protobuf, abseil and what else the distribution has as archives are linked in;
# the others are looked for in lib/ beside the program's folder.
option(KEELSON_STATIC "Link archives instead of shared libraries where there are any" OFF)
if(NOT KEELSON_STATIC)
  return()
endif()

set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
# RPATH, not RUNPATH: it serves the libraries' libraries too.
add_link_options(-Wl,--disable-new-dtags)

get_property(imported_targets DIRECTORY PROPERTY IMPORTED_TARGETS)
# cpp-httplib, a shared library, brings OpenSSL and zlib with it: one copy of each in a program.
list(FILTER imported_targets EXCLUDE REGEX "^(OpenSSL|ZLIB)::")
foreach(target ${imported_targets})
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "SHARED|UNKNOWN")
    continue()
  endif()
  foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
    get_target_property(location ${target} ${property})
    string(REGEX REPLACE "\\.so[.0-9a-z]*$" ".a" archive "${location}")
    if(location MATCHES "\\.so" AND EXISTS "${archive}")
      set_target_properties(${target} PROPERTIES ${property} "${archive}")
    endif()
  endforeach()
endforeach()
