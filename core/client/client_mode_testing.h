// How a client under test exchanges: how many steps at a time, and on whose thread.
#ifndef KEELSON_CORE_CLIENT_CLIENT_MODE_TESTING_H_
#define KEELSON_CORE_CLIENT_CLIENT_MODE_TESTING_H_

#include <ostream>
#include <string>

namespace keelson {

struct Mode {
  std::string name;
  size_t depth;
  bool background;
};

inline void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_CLIENT_MODE_TESTING_H_
