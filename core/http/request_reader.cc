#include "core/http/request_reader.h"

#include <utility>

namespace keelson {

void RequestReader::Add(absl::string_view bytes) {
  if (ended_) return;
  if (!has_head()) bytes = AddToHead(bytes);
  if (has_head()) AddToBody(bytes);
}

absl::string_view RequestReader::AddToHead(absl::string_view bytes) {
  const size_t before = head_.size();
  const absl::string_view taken = bytes.substr(0, kMaxHeadBytes - before);
  head_.append(taken.data(), taken.size());
  const size_t end = FindHeadEnd();
  if (end == 0) {
    ended_ = head_.size() == kMaxHeadBytes;
    return {};
  }
  head_.resize(end);
  const RequestHead head = ReadHead(head_, max_body_bytes_);
  awaits_continue_ = head.expects_continue;
  if (head.status == 200) {
    body_.emplace(head.framing, max_body_bytes_);
  } else {
    ended_ = true;
  }
  return bytes.substr(end - before);
}

size_t RequestReader::FindHeadEnd() {
  for (size_t end = head_.find('\n', scanned_); end != std::string::npos;
       end = head_.find('\n', line_)) {
    const absl::string_view line = absl::string_view(head_).substr(line_, end + 1 - line_);
    const bool is_crlf = line.size() >= 2 && line[line.size() - 2] == '\r';
    // The library refuses a first line with another end, and skips others.
    if (line_ == 0 ? !is_crlf : line == "\r\n") return end + 1;
    line_ = end + 1;
  }
  scanned_ = head_.size();
  return 0;
}

void RequestReader::AddToBody(absl::string_view bytes) {
  body_->Add(bytes);
  ended_ = body_->ended();
  whole_ = ended_ && body_->status() == 200;
}

ReceivedRequest RequestReader::Take() {
  ReceivedRequest request;
  request.head = std::move(head_);
  if (has_head()) {
    request.body_status = body_->status();
    request.body = std::move(body_->bytes());
  }
  return request;
}

}  // namespace keelson
