// What this machine is called.
#ifndef KEELSON_CORE_BASE_HOST_NAME_H_
#define KEELSON_CORE_BASE_HOST_NAME_H_

#include <string>

namespace keelson {

// The name of the machine, or of the container. Empty: it has none.
std::string HostName();

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_HOST_NAME_H_
