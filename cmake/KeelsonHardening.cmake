# KEELSON_HARDENING: optimized builds check buffers, the stack and the standard library's preconditions, and their
# programs are position independent with tables of addresses that cannot be written. Debug builds and the sanitizers'
# are without: _FORTIFY_SOURCE needs optimization, and sanitizers check more.
option(KEELSON_HARDENING "Harden optimized builds; OFF: packagers' own flags alone" ON)
if(NOT KEELSON_HARDENING OR KEELSON_SANITIZE OR NOT CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(KEELSON_HARDENED OFF)
  return()
endif()
set(KEELSON_HARDENED ON)

set(options -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -fPIE -fstack-protector-strong)
# These depend on the processor, and -fcf-protection is for x86 alone.
include(CheckCXXCompilerFlag)
foreach(flag stack-clash-protection cf-protection)
  string(MAKE_C_IDENTIFIER KEELSON_HAS_${flag} known)
  check_cxx_compiler_flag(-f${flag} ${known})
  if(${known})
    list(APPEND options -f${flag})
  endif()
endforeach()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${options}>")
add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack)
