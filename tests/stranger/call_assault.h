// Calls of a stranger who names the roles of members and guesses their token.
#ifndef KEELSON_TESTS_STRANGER_CALL_ASSAULT_H_
#define KEELSON_TESTS_STRANGER_CALL_ASSAULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/stranger/assault.h"

namespace keelson {

struct CallTally {
  // Calls that were sent, by method; every method that is closed to strangers has an entry.
  std::map<std::string, int64_t> sent;
  int64_t ended = 0;
  // Those to which a server has answered with a message.
  int64_t answered = 0;
};

// Until `assault.end`: each method that strangers may not call, under each role, with empty,
// random, plausible and huge messages, at servers on `ports` in turn.
CallTally CallClosedMethods(Assault assault, const std::vector<int>& ports);

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_CALL_ASSAULT_H_
