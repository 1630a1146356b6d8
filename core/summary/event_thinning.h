// Bounds what Keelson's event files in a directory take on the disk in a job of weeks. Those of
// other programs, which may have events that are none of Keelson's, are neither counted nor
// touched.
#ifndef KEELSON_CORE_SUMMARY_EVENT_THINNING_H_
#define KEELSON_CORE_SUMMARY_EVENT_THINNING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/base/file_system.h"

namespace keelson {

// What the first event of a file names as its writer (SourceMetadata), if it is Keelson's.
inline constexpr char kEventFileWriter[] = "keelson";

// All of Keelson's event files of one kind in a directory take at most total_bytes + 2 *
// file_bytes, and half of total_bytes more while they are thinned; an event may exceed file_bytes
// by its own size.
struct EventLimits {
  int64_t file_bytes = int64_t{16} << 20;    // a file that has as many is followed by another
  int64_t total_bytes = int64_t{128} << 20;  // of the files that may be thinned
  size_t files = 64;                         // that may be thinned
};

// Where the files exceed `limits`, replaces all but the newest two by one, "<newest>.thinned", of
// at most half of total_bytes. The newest is being written, and readers have the time of a whole
// file to read the one before it to its end. Kept are, in their order:
// - of scalars and of histograms, which are told apart by the kind and tag of an event's first
//   value: the last event, and the first in each range of 2^k steps that begins at a multiple of
//   2^k. k is the smallest that makes them fit, for scalars and for histograms by itself: of the
//   two the larger in bytes is thinned, so histograms are usually thinner;
// - of other summaries (texts, hparams) the first and the last of each tag;
// - all events without a summary. After the start of a session the ranges begin anew.
// What follows damage in a file is dropped: no reader can read it.
//
// Reads the files twice, and holds one of them at a time and 32 bytes for each event.
//
// The new file is durable before an older one is removed. Where the process ends in between, the
// next call removes them; until then readers find some events twice.
//
// `kind` is the beginning of the files' names, "<kind>.<unix seconds>.…", which sort by age. One
// process at a time thins a directory. Errors of file_system.h; no event is lost by one.
absl::Status ThinEventFiles(const std::string& directory, const std::string& kind,
                            const EventLimits& limits, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_EVENT_THINNING_H_
