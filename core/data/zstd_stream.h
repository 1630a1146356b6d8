// The content of a file that is packed by Zstandard (RFC 8878).
#ifndef KEELSON_CORE_DATA_ZSTD_STREAM_H_
#define KEELSON_CORE_DATA_ZSTD_STREAM_H_

#include <memory>

#include "core/base/file_system.h"
#include "core/data/byte_stream.h"

namespace keelson {

// Frames one after the other are one content; those that are to be skipped are. A frame whose
// window is larger than 128 MiB ("zstd --long=28" and more) is refused. Needs memory for one window
// of what frames claim.
std::unique_ptr<ByteStream> NewZstdStream(std::unique_ptr<RandomAccessFile> file);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_ZSTD_STREAM_H_
