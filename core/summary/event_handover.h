// Hands events of one process to another, which writes them into the event file of its run:
// TensorBoard shows each directory with event files as a run, and may follow the newest file of a
// directory alone. So what several processes have to say about one run goes into one file.
#ifndef KEELSON_CORE_SUMMARY_EVENT_HANDOVER_H_
#define KEELSON_CORE_SUMMARY_EVENT_HANDOVER_H_

#include <string>

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "core/summary/event_writer.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

// Puts an event into `directory`, which is created, for whoever takes events there. It is there as
// a whole or not at all; one of the same step is replaced. Errors of file_system.h.
absl::Status HandOverEvent(const v1::Event& event, const std::string& directory,
                           FileSystem* file_system);

// Moves the events of `directory` into `writer`, in the order of their steps. No directory: none.
// What is no event is removed. An event may come twice when the process ends in between. Errors of
// file_system.h and of `writer`; events that were not moved stay.
absl::Status TakeEvents(const std::string& directory, FileSystem* file_system, EventWriter* writer);

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_EVENT_HANDOVER_H_
