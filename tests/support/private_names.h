// Host names that only the programs of a test know.
#ifndef KEELSON_TESTS_SUPPORT_PRIVATE_NAMES_H_
#define KEELSON_TESTS_SUPPORT_PRIVATE_NAMES_H_

#include <map>
#include <string>
#include <vector>

namespace keelson {

// A hosts file that stands for the machine's in the eyes of the programs started behind Wrapper(),
// each of which is in a mount namespace of its own. They ask no name server. Not thread-safe.
class PrivateNames {
 public:
  // Whether this user may make such a namespace here.
  static bool Permitted();

  // Only localhost is known.
  PrivateNames();

  // What goes before a program's argv.
  std::vector<std::string> Wrapper() const;

  // Holds for running programs too, at their next look.
  void Set(const std::string& name, const std::string& address);

 private:
  void Write() const;

  const std::string directory_;
  std::map<std::string, std::string> addresses_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_PRIVATE_NAMES_H_
