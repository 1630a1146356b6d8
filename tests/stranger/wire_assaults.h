// Connections that break HTTP/2 or take what it allows to the utmost.
#ifndef KEELSON_TESTS_STRANGER_WIRE_ASSAULTS_H_
#define KEELSON_TESTS_STRANGER_WIRE_ASSAULTS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tests/stranger/assault.h"

namespace keelson {

struct WireAssault {
  const char* name;
  // Goes on until `assault.end`; returns how often it did what it is called.
  int64_t (*run)(const Assault& assault);
};

absl::Span<const WireAssault> WireAssaults();

// Calls what strangers may call, as often as it can. Returns how many calls were answered.
int64_t CallOpenMethods(const Assault& assault);

// Until `assault.end` sends to the servers on `ports` as many and as large messages as they take,
// and completes none. Returns the number of connections.
int64_t HoardMessages(const Assault& assault, const std::vector<int>& ports);

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_WIRE_ASSAULTS_H_
