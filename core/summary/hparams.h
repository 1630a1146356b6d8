// The data by which TensorBoard compares runs: settings of a run, and the place of its results.
#ifndef KEELSON_CORE_SUMMARY_HPARAMS_H_
#define KEELSON_CORE_SUMMARY_HPARAMS_H_

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

struct Hparams {
  using Value = std::variant<bool, double, std::string>;
  // A scalar of the run.
  struct Metric {
    // Folder of its event files below those that have the hparams: "eval". Empty: the same.
    std::string group;
    std::string tag;
  };

  // By name. Numbers are finite.
  std::map<std::string, Value> values;
  std::vector<Metric> metrics;
};

// The summary that the plugin "hparams" expects for an experiment with such runs, and for a run
// that starts `now`.
v1::Summary HparamsSummary(const Hparams& hparams, absl::Time now);

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_HPARAMS_H_
