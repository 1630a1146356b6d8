// The configuration of the e2e tests' jobs.
#ifndef KEELSON_TESTS_E2E_JOB_CONFIG_H_
#define KEELSON_TESTS_E2E_JOB_CONFIG_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace keelson {

// The exit code of a task that a restart would not help.
inline constexpr int kPermanent = 2;
// More steps than a test waits for.
inline constexpr int kEndless = 100'000'000;

// A small network on generated digits that takes a few seconds for some 1000 steps; a snapshot
// every 100 steps, a metrics line every 10.
inline std::string JobConfig(int max_steps) {
  return absl::StrCat(R"(
    model {
      name: "e2e"
      input_shape: [28, 28, 1]
      layers { flatten {} }
      layers { name: "hidden" dense { units: 128 } }
      layers { relu {} }
      layers { name: "scores" dense { units: 10 } }
      loss { kind: SOFTMAX_CROSS_ENTROPY }
    }
    optimizer { momentum { momentum: 0.9 } }
    learning_rate { base: 0.02 }
    data { generated { train_records: 1000 eval_records: 200 } }
    train { batch_size: 32 seed: 3 summary_steps: 10 max_steps: )",
                      max_steps, R"( }
    checkpoint { save_steps: 100 }
    evaluation { final_timeout_seconds: 60 }
  )");
}

}  // namespace keelson

#endif  // KEELSON_TESTS_E2E_JOB_CONFIG_H_
