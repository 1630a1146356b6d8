// The bytes of a connection over which HTTP is spoken.
#ifndef KEELSON_CORE_HTTP_BYTE_STREAM_H_
#define KEELSON_CORE_HTTP_BYTE_STREAM_H_

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace keelson {

// For one thread.
class HttpStream {
 public:
  virtual ~HttpStream() = default;

  // Waits for bytes, writes at most `size` of them to `out`, and returns their number. 0: no more
  // will come, or not in time.
  virtual size_t Read(char* out, size_t size) = 0;

  // Writes all bytes. False: the client has gone, or has not taken them in time.
  virtual bool Write(absl::string_view bytes) = 0;

  // Another part of the exchange begins: the client's timeout starts again.
  virtual void RestartTimeout() {}
};

// Reads ahead, so that single bytes cost no system call.
class BufferedStream : public HttpStream {
 public:
  // Does not own `stream`.
  explicit BufferedStream(HttpStream* stream) : stream_(stream) {}

  size_t Read(char* out, size_t size) override {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = stream_->Read(buffer_, sizeof(buffer_));
    }
    const size_t count = std::min(size, end_ - begin_);
    std::copy_n(buffer_ + begin_, count, out);
    begin_ += count;
    return count;
  }

  bool Write(absl::string_view bytes) override { return stream_->Write(bytes); }

  void RestartTimeout() override { stream_->RestartTimeout(); }

 private:
  HttpStream* const stream_;
  char buffer_[4096];
  size_t begin_ = 0;  // of the bytes that were read ahead and not yet consumed
  size_t end_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_BYTE_STREAM_H_
