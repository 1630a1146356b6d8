// Plays scenarios in processes of their own.
#ifndef KEELSON_TESTS_SEARCH_PLAY_APART_H_
#define KEELSON_TESTS_SEARCH_PLAY_APART_H_

#include <sys/types.h>

#include "tests/search/scenario.h"
#include "tests/search/world.h"

namespace keelson {

// A scenario that is being played, as by Play, in a child that is forked for it: the calling
// process has one thread. A child that dies, or takes more than a minute of real time, is a
// violation of "crash". The first one also plays something in the calling process, so that the
// children need not prepare what every schedule uses.
class ApartPlay {
 public:
  ApartPlay(const Scenario& scenario, bool log);
  ~ApartPlay();
  ApartPlay(const ApartPlay&) = delete;
  ApartPlay& operator=(const ApartPlay&) = delete;

  // Readable when the verdict is near.
  int fd() const { return out_; }
  // Called once.
  Verdict Wait();

 private:
  pid_t child_ = -1;
  int out_ = -1;
};

// As Play.
Verdict PlayApart(const Scenario& scenario, bool log);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_PLAY_APART_H_
