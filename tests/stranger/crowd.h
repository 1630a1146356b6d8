// Very many connections that hardly do anything.
#ifndef KEELSON_TESTS_STRANGER_CROWD_H_
#define KEELSON_TESTS_STRANGER_CROWD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/stranger/assault.h"

namespace keelson {

struct CrowdTally {
  int64_t opened = 0;
  int64_t most_at_once = 0;
  int64_t closed_by_servers = 0;
};

// Until `assault.end` keeps `size` connections open to servers on `ports` in turn: silent ones,
// ones with a preface and nothing else, calls without data or with the beginning of a message, and
// calls that send a byte per second. One that a server closes is replaced.
CrowdTally StandAround(const Assault& assault, const std::vector<int>& ports, size_t size);

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_CROWD_H_
