// Which run of which machine this is.
#ifndef KEELSON_CORE_BASE_BOOT_ID_H_
#define KEELSON_CORE_BASE_BOOT_ID_H_

#include <string>

namespace keelson {

// A random id that the kernel draws when it boots; its containers share it. Empty: it has none.
std::string BootId();

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_BOOT_ID_H_
