// The settings of a run by which TensorBoard compares it with others. Nothing says what all runs of
// a directory have in common: TensorBoard takes the first such record that it meets for all of
// them, while without one it finds the settings that differ and the metrics by itself. Format:
// tensorboard/plugins/hparams/plugin_data.proto.
#ifndef KEELSON_CORE_SUMMARY_HPARAMS_H_
#define KEELSON_CORE_SUMMARY_HPARAMS_H_

#include <map>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

struct Hparams {
  using Value = std::variant<bool, double, std::string>;

  // By name. Numbers are finite.
  std::map<std::string, Value> values;
};

// The summary that the plugin "hparams" expects for a run that starts `now`.
v1::Summary HparamsSummary(const Hparams& hparams, absl::Time now);
// The one that it expects for a run that ends `now`; without it, the run counts as going on.
v1::Summary SessionEndSummary(bool success, absl::Time now);

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_HPARAMS_H_
