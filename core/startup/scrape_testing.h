// Scrapes a task's metrics endpoint, for tests.
#ifndef KEELSON_CORE_STARTUP_SCRAPE_TESTING_H_
#define KEELSON_CORE_STARTUP_SCRAPE_TESTING_H_

#include "absl/status/statusor.h"
#include "core/metrics/exposition_testing.h"
#include "core/startup/telemetry.h"

namespace keelson {

// What an endpoint for `telemetry` answers to GET /metrics, over a real connection.
absl::StatusOr<Exposition> Scrape(const Telemetry& telemetry);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_SCRAPE_TESTING_H_
