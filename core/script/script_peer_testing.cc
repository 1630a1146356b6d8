#include "core/script/script_peer_testing.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace keelson {

ScriptPeer::ScriptPeer() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  fd_ = ends[0];
  agent_end_ = ends[1];
}

ScriptPeer::~ScriptPeer() {
  Close();
  if (agent_end_ >= 0) close(agent_end_);
  if (memory_ != nullptr) munmap(memory_, bytes_);
  for (const auto& [memory, bytes] : spaces_) munmap(memory, bytes);
}

int ScriptPeer::TakeAgentEnd() { return std::exchange(agent_end_, -1); }

void ScriptPeer::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void ScriptPeer::Send(ScriptMessageKind kind, std::vector<uint64_t> numbers,
                      const std::string& text) {
  ScriptMessageWriter writer(kind);
  for (const uint64_t number : numbers) writer.Number(number);
  writer.Text(text);
  const std::string& body = writer.message().body;
  std::string packet(8, '\0');
  const uint32_t header[] = {static_cast<uint32_t>(kind), static_cast<uint32_t>(body.size())};
  std::memcpy(packet.data(), header, sizeof(header));
  SendBytes(packet + body);
}

void ScriptPeer::SendBytes(const std::string& packet) {
  EXPECT_EQ(send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(packet.size()));
}

void ScriptPeer::Step(uint64_t ticket, double loss) {
  Send(ScriptMessageKind::kStep,
       {ticket, std::bit_cast<uint64_t>(loss), std::bit_cast<uint64_t>(0.25),
        std::bit_cast<uint64_t>(0.125), 0, 0});
}

std::optional<ScriptMessage> ScriptPeer::Receive() {
  std::string packet(kMostMessageBytes, '\0');
  iovec part = {packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(fd_, &message, 0);
  if (size <= 0) return std::nullopt;
  if (const cmsghdr* const attached = CMSG_FIRSTHDR(&message)) {
    std::memcpy(&passed_, CMSG_DATA(attached), sizeof(passed_));
  }
  uint32_t header[2];
  std::memcpy(header, packet.data(), sizeof(header));
  EXPECT_EQ(header[1] + sizeof(header), static_cast<size_t>(size));
  return ScriptMessage{static_cast<ScriptMessageKind>(header[0]),
                       packet.substr(sizeof(header), header[1])};
}

std::vector<uint64_t> ScriptPeer::Expect(ScriptMessageKind kind) {
  const std::optional<ScriptMessage> message = Receive();
  std::vector<uint64_t> numbers;
  if (!message.has_value() || message->kind != kind) {
    ADD_FAILURE() << "expected kind " << static_cast<uint32_t>(kind) << ", found "
                  << (message.has_value() ? static_cast<int64_t>(message->kind) : -1) << " "
                  << (message.has_value() ? message->body : "");
    return std::vector<uint64_t>(16);
  }
  ScriptMessageReader reader(*message);
  while (!reader.AtEnd() && reader.ok()) numbers.push_back(reader.Number());
  return numbers;
}

void ScriptPeer::ExpectModel() { Map(Expect(ScriptMessageKind::kModel)); }

std::vector<uint64_t> ScriptPeer::ExpectEvaluation() {
  const std::vector<uint64_t> numbers = Expect(ScriptMessageKind::kEvaluation);
  Map(numbers);
  return numbers;
}

void ScriptPeer::Map(const std::vector<uint64_t>& numbers) {
  EXPECT_EQ(numbers.at(0), kScriptProtocol);
  bytes_ = numbers.at(1);
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, passed_, 0);
  ASSERT_NE(memory_, MAP_FAILED);
  close(passed_);
  ReadDirectory(numbers.at(2));
}

char* ScriptPeer::MakeSpace(uint64_t space, uint64_t bytes) {
  Send(ScriptMessageKind::kRowSpace, {space, bytes});
  const std::vector<uint64_t> made = Expect(ScriptMessageKind::kRowMemory);
  EXPECT_EQ(made.at(0), space);
  EXPECT_EQ(made.at(1), bytes);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, passed_, 0);
  EXPECT_NE(memory, MAP_FAILED);
  close(passed_);
  spaces_.emplace_back(memory, bytes);
  return static_cast<char*>(memory);
}

void ScriptPeer::ReadDirectory(size_t bytes) {
  const ScriptMessage directory = {ScriptMessageKind::kModel,
                                   std::string(static_cast<const char*>(memory_), bytes)};
  ScriptMessageReader reader(directory);
  const uint64_t variables = reader.Number();
  for (uint64_t v = 0; v < variables; ++v) {
    const uint64_t length = reader.Number();
    std::string name;
    while (name.size() < length) {
      const uint64_t word = reader.Number();
      name.append(reinterpret_cast<const char*>(&word), sizeof(word));
    }
    names_.push_back(name.substr(0, length));
    size_t elements = 1;
    for (uint64_t extents = reader.Number(); extents > 0; --extents) elements *= reader.Number();
    elements_.push_back(elements);
    const size_t values = reader.Number();
    offsets_.push_back({values, reader.Number()});
  }
  EXPECT_TRUE(reader.AtEnd());
}

absl::Span<float> ScriptPeer::Array(size_t v, size_t which) const {
  EXPECT_EQ(offsets_[v][which] % 64, 0u);
  EXPECT_LE(offsets_[v][which] + 4 * elements_[v], bytes_);
  char* const at = static_cast<char*>(memory_) + offsets_[v][which];
  return {reinterpret_cast<float*>(at), elements_[v]};
}

}  // namespace keelson
