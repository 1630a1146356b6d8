// What distinguishes two configurations, setting by setting.
#ifndef KEELSON_CORE_CONFIG_CONFIG_DIFFERENCE_H_
#define KEELSON_CORE_CONFIG_CONFIG_DIFFERENCE_H_

#include <string>
#include <vector>

#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct SettingDifference {
  std::string field;  // "model.layers[1].dense.units"
  std::string expected;
  std::string found;

  // "train.batch_size: expected 64, found 32".
  std::string ToString() const;
};

// The settings of `found` that differ from those of `expected`, in the order of their numbers; both
// are final. Directories, which ConfigHash leaves out, are no settings. A value that one of them
// has not is "none".
std::vector<SettingDifference> ConfigDifference(const v1::TrainConfig& expected,
                                                const v1::TrainConfig& found);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_CONFIG_DIFFERENCE_H_
