#ifndef KEELSON_CORE_CONFIG_TRAIN_CONFIG_DEFAULTS_H_
#define KEELSON_CORE_CONFIG_TRAIN_CONFIG_DEFAULTS_H_

#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Gives every absent field the default that train_config.proto names. The defaults of generated
// data are set also when there is a data directory, so that the hash does not depend on it.
void SetTrainConfigDefaults(v1::TrainConfig* config);

}  // namespace keelson

#endif  // KEELSON_CORE_CONFIG_TRAIN_CONFIG_DEFAULTS_H_
