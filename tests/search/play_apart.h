// Plays a scenario in a process of its own.
#ifndef KEELSON_TESTS_SEARCH_PLAY_APART_H_
#define KEELSON_TESTS_SEARCH_PLAY_APART_H_

#include "tests/search/scenario.h"
#include "tests/search/world.h"

namespace keelson {

// As Play, in a child that is forked for it: the calling process has one thread. A child that dies,
// or takes more than a minute of real time, is a violation of "crash".
Verdict PlayApart(const Scenario& scenario, bool log);

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_PLAY_APART_H_
