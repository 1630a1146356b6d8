// The configuration of jobs that have a table on parameter servers and dense variables on workers.
#ifndef KEELSON_TESTS_SUPPORT_HYBRID_CONFIG_H_
#define KEELSON_TESTS_SUPPORT_HYBRID_CONFIG_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace keelson {

inline constexpr char kHybridPlacement[] =
    R"(placement { groups { variables: "*table*" on: PS } groups { variables: "*" on: WORKERS } })";

// Text of a TrainConfig: clicks that are generated, the table "click_table" and two dense layers; a
// step is the mean of two workers' batches. `placement`: more text, such as kHybridPlacement.
inline std::string HybridConfig(int max_steps, const std::string& placement) {
  std::string model;
  for (int field = 0; field < 8; ++field) {
    absl::StrAppend(&model, "features { name: \"field", field, "\" id {} }\n");
  }
  for (int field = 0; field < 8; ++field) {
    absl::StrAppend(&model, "layers { name: \"vector", field, "\" inputs: \"field", field,
                    "\" embedding { table: \"click_table\" } }\n");
  }
  absl::StrAppend(&model, "layers { name: \"sum\" add {}");
  for (int field = 0; field < 8; ++field) {
    absl::StrAppend(&model, " inputs: \"vector", field, "\"");
  }
  return absl::StrCat("model {", model, R"( }
      tables { name: "click_table" dim: 8 }
      layers { name: "hidden" dense { units: 16 } }
      layers { relu {} }
      layers { name: "click" dense { units: 1 } }
      loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
    }
    optimizer {
      momentum { momentum: 0.9 }
      groups { variables: "*table*" adagrad { initial_accumulator: 0.01 } }
    }
    learning_rate { base: 0.02 }
    data { generated_ctr { train_records: 1024 eval_records: 64 } }
    consistency { mode { synchronous { replicas_to_aggregate: 2 total_replicas: 2 } } }
    train { batch_size: 16 seed: 3 summary_steps: 10 max_steps: )",
                      max_steps, R"( }
    checkpoint { save_steps: 100 }
    evaluation { final_timeout_seconds: 60 metrics { auc {} } }
    )",
                      placement);
}

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_HYBRID_CONFIG_H_
