// A consistency mode as text.
#ifndef KEELSON_CLI_MODE_TEXT_H_
#define KEELSON_CLI_MODE_TEXT_H_

#include <string>

#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// As ConsistencyMode::ToString; the proto's text for a mode that this program does not know.
std::string ModeText(const v1::ConsistencyMode& proto);

// A job's: "async", or "async, then sync:2" while the steps of the old mode are under way.
std::string ModeText(const v1::JobStatus& status);

}  // namespace keelson

#endif  // KEELSON_CLI_MODE_TEXT_H_
