#include "bench/rows/redis_row_client.h"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

constexpr int64_t kDim = 3;
constexpr size_t kRowBytes = kDim * sizeof(float);

// Understands HSET and HMGET, and answers in pieces of a few bytes.
class FakeRedis {
 public:
  FakeRedis() : listener_(*Listen(Transport::kTcp)), thread_([this] { Serve(); }) {}
  ~FakeRedis() { thread_.join(); }

  std::string address() const { return AddressOf(listener_); }
  // After the client has gone.
  const std::map<std::string, std::string>& rows() const { return rows_; }

 private:
  void Serve() {
    const Socket socket = *Accept(listener_);
    while (true) {
      const std::string words = Line(socket);
      if (words.empty()) return;
      std::vector<std::string> command;
      for (int i = 0; i < std::stoi(words.substr(1)); ++i) {
        std::string word(static_cast<size_t>(std::stoi(Line(socket).substr(1))), 0);
        socket.Receive(word.data(), word.size());
        Line(socket);
        command.push_back(std::move(word));
      }
      Send(socket, Answer(command));
    }
  }

  std::string Answer(const std::vector<std::string>& command) {
    if (command[0] == "HSET") {
      for (size_t i = 2; i < command.size(); i += 2) rows_[command[i]] = command[i + 1];
      return absl::StrCat(":", command.size() / 2 - 1, "\r\n");
    }
    std::string answer = absl::StrCat("*", command.size() - 2, "\r\n");
    for (size_t i = 2; i < command.size(); ++i) {
      const auto row = rows_.find(command[i]);
      absl::StrAppend(&answer, row == rows_.end()
                                   ? "$-1\r\n"
                                   : absl::StrCat("$", kRowBytes, "\r\n", row->second, "\r\n"));
    }
    return answer;
  }

  // Without its end; empty: the client has gone.
  static std::string Line(const Socket& socket) {
    std::string line;
    for (char c; socket.Receive(&c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  static void Send(const Socket& socket, const std::string& answer) {
    constexpr size_t kPiece = 7;
    for (size_t i = 0; i < answer.size(); i += kPiece) {
      socket.Send(answer.data() + i, std::min(kPiece, answer.size() - i));
    }
  }

  const Socket listener_;
  std::map<std::string, std::string> rows_;
  std::thread thread_;
};

std::unique_ptr<RowClient> ClientOf(const FakeRedis& redis) {
  RowTarget target;
  target.address = redis.address();
  target.dim = kDim;
  return *RedisRowClient::Create(target);
}

TEST(RedisRowClientTest, FillsPullsAndPushes) {
  FakeRedis redis;
  std::unique_ptr<RowClient> client = ClientOf(redis);
  // More than a piece.
  EXPECT_EQ(client->Fill(300), absl::OkStatus());
  EXPECT_EQ(client->Pull(BatchOfRows(20, 290)), absl::OkStatus());
  EXPECT_EQ(client->Push(BatchOfRows(0, 300)), absl::OkStatus());
  EXPECT_EQ(client->Pull(BatchOfRows(0, 300)), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnimplemented(client->PushPull(BatchOfRows(0, 1))));
}

TEST(RedisRowClientTest, ARowThatIsMissingIsAnError) {
  FakeRedis redis;
  std::unique_ptr<RowClient> client = ClientOf(redis);
  ASSERT_EQ(client->Fill(300), absl::OkStatus());
  const absl::Status status = client->Pull(BatchOfRows(100, 301));
  EXPECT_EQ(status, absl::InternalError("unexpected answer of Redis: $-1"));
}

}  // namespace
}  // namespace keelson::bench
