// Formats JobStatus as text and as JSON.
#ifndef KEELSON_CLI_JOB_STATUS_TEXT_H_
#define KEELSON_CLI_JOB_STATUS_TEXT_H_

#include <string>

#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// Lines "name  value", then a table of the members and one of the servers. Ends with a line break.
std::string JobStatusText(const v1::JobStatus& status);

// One line of JSON with the names of the proto's fields, those with their default value included.
std::string JobStatusJson(const v1::JobStatus& status);

}  // namespace keelson

#endif  // KEELSON_CLI_JOB_STATUS_TEXT_H_
