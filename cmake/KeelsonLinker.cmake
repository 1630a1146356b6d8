# KEELSON_LINKER: programs are linked by mold or lld where one of them is installed, which takes a tenth of
# the time; several dozen test programs make that minutes.
set(KEELSON_LINKER AUTO CACHE STRING "AUTO: mold or lld where installed; default: the compiler's own")
if(KEELSON_LINKER STREQUAL "AUTO")
  find_program(KEELSON_MOLD ld.mold)
  find_program(KEELSON_LLD ld.lld)
  if(KEELSON_MOLD)
    add_link_options(-fuse-ld=mold)
  elseif(KEELSON_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
elseif(NOT KEELSON_LINKER STREQUAL "default")
  message(FATAL_ERROR "KEELSON_LINKER=${KEELSON_LINKER}: expected AUTO or default")
endif()
