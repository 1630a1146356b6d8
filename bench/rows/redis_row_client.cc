#include "bench/rows/redis_row_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/gradients.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

constexpr float kRedisLearningRate = 1e-6f;
constexpr absl::string_view kNewline = "\r\n";
constexpr absl::string_view kIdStart = "$8\r\n";

// Fields of one hash need no key's bookkeeping each: HMGET and HSET are as fast as MGET and MSET or
// up to a fifth faster, here. Smaller and larger pieces, and more under way, were not faster.
constexpr size_t kPieceIds = 128;
constexpr size_t kPiecesUnderWay = 16;

template <typename T>
void AppendBytes(const T* from, size_t count, std::string* to) {
  to->append(reinterpret_cast<const char*>(from), count * sizeof(T));
}

}  // namespace

RedisRowClient::RedisRowClient(RedisConnection connection, int64_t dim)
    : connection_(std::move(connection)),
      dim_(static_cast<size_t>(dim)),
      row_start_(absl::StrCat("$", dim_ * sizeof(float), kNewline)),
      gradients_(kPieceIds * dim_) {
  FillGradient(absl::MakeSpan(gradients_));
}

absl::StatusOr<std::unique_ptr<RedisRowClient>> RedisRowClient::Create(const RowTarget& target) {
  ASSIGN_OR_RETURN(RedisConnection connection, RedisConnection::Open(target.address));
  return std::unique_ptr<RedisRowClient>(new RedisRowClient(std::move(connection), target.dim));
}

absl::Status RedisRowClient::Fill(uint64_t rows) {
  for (uint64_t next = 0; next < rows; next += kFillIds) {
    const RowBatch batch = BatchOfRows(next, std::min(next + kFillIds, rows));
    rows_.resize(batch->front().size() * dim_);
    FillGradient(absl::MakeSpan(rows_));
    RETURN_IF_ERROR(Walk(batch, /*read=*/false, /*update=*/false));
  }
  return absl::OkStatus();
}

absl::Status RedisRowClient::Pull(const RowBatch& batch) {
  return Walk(batch, /*read=*/true, /*update=*/false);
}

absl::Status RedisRowClient::Push(const RowBatch& batch) {
  return Walk(batch, /*read=*/true, /*update=*/true);
}

absl::Status RedisRowClient::PushPull(const RowBatch&) {
  return absl::UnimplementedError("Redis: no call updates rows and reads others");
}

absl::Status RedisRowClient::Walk(const RowBatch& batch, bool read, bool update) {
  ids_ = &batch->front();
  rows_.resize(ids_->size() * dim_);
  size_t begun = 0;
  while (begun < ids_->size() || !awaited_.empty()) {
    while (begun < ids_->size() && awaited_.size() < kPiecesUnderWay) {
      const size_t count = std::min(kPieceIds, ids_->size() - begun);
      Start(read, begun, count);
      begun += count;
    }
    RETURN_IF_ERROR(connection_.Exchange());
    while (!awaited_.empty()) {
      ASSIGN_OR_RETURN(const bool complete, TakeAnswer());
      if (!complete) break;
      const Awaited done = awaited_.front();
      awaited_.pop_front();
      if (!done.get || !update) continue;
      Update(done.first, done.count);
      Start(/*get=*/false, done.first, done.count);
    }
  }
  return absl::OkStatus();
}

void RedisRowClient::Start(bool get, size_t first, size_t count) {
  std::string* const to = connection_.commands();
  absl::StrAppend(to, "*", get ? count + 2 : 2 * count + 2,
                  get ? "\r\n$5\r\nHMGET" : "\r\n$4\r\nHSET", "\r\n$5\r\n", kBenchTable, kNewline);
  for (size_t i = first; i < first + count; ++i) {
    to->append(kIdStart.data(), kIdStart.size());
    AppendBytes(&(*ids_)[i], 1, to);
    to->append(kNewline.data(), kNewline.size());
    if (get) continue;
    to->append(row_start_);
    AppendBytes(&rows_[i * dim_], dim_, to);
    to->append(kNewline.data(), kNewline.size());
  }
  awaited_.push_back({get, first, count});
}

size_t RedisRowClient::LineEnd() const {
  const size_t end = connection_.received().find(kNewline);
  return end == absl::string_view::npos ? 0 : end + kNewline.size();
}

absl::Status RedisRowClient::Unexpected() const {
  const absl::string_view received = connection_.received();
  return absl::InternalError(
      absl::StrCat("unexpected answer of Redis: ", received.substr(0, received.find(kNewline))));
}

absl::StatusOr<bool> RedisRowClient::TakeAnswer() {
  const Awaited awaited = awaited_.front();
  if (!in_rows_) {
    const size_t end = LineEnd();
    if (end == 0) return false;
    if (connection_.received()[0] != (awaited.get ? '*' : ':')) return Unexpected();
    connection_.Take(end);
    if (!awaited.get) return true;
    in_rows_ = true;
    taken_ = 0;
  }
  return TakeRows(awaited);
}

absl::StatusOr<bool> RedisRowClient::TakeRows(const Awaited& awaited) {
  const size_t row_bytes = dim_ * sizeof(float);
  const size_t bytes = row_start_.size() + row_bytes + kNewline.size();
  for (; taken_ < awaited.count; ++taken_) {
    const absl::string_view received = connection_.received();
    // Also of a row that does not exist: "$-1\r\n".
    if (received.size() < row_start_.size()) return false;
    if (received.substr(0, row_start_.size()) != row_start_) return Unexpected();
    if (received.size() < bytes) return false;
    std::memcpy(&rows_[(awaited.first + taken_) * dim_], received.data() + row_start_.size(),
                row_bytes);
    connection_.Take(bytes);
  }
  in_rows_ = false;
  return true;
}

void RedisRowClient::Update(size_t first, size_t count) {
  float* const rows = &rows_[first * dim_];
  for (size_t i = 0; i < count * dim_; ++i) rows[i] -= kRedisLearningRate * gradients_[i];
}

}  // namespace keelson::bench
