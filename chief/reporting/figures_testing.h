// Figures of a worker, for tests.
#ifndef KEELSON_CHIEF_REPORTING_FIGURES_TESTING_H_
#define KEELSON_CHIEF_REPORTING_FIGURES_TESTING_H_

#include <cstdint>

#include "keelson/v1/figures.pb.h"

namespace keelson {

// Sums after so many steps of 10 examples.
v1::WorkerFigures SumsAfter(int64_t steps);

}  // namespace keelson

#endif  // KEELSON_CHIEF_REPORTING_FIGURES_TESTING_H_
