#include "core/base/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(SealedMemoryTest, WhoGetsTheDescriptorSeesTheSameBytes) {
  const auto made = SealedMemory::Create(4096, SealedMemory::Touch::kLater);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto opened = SealedMemory::Open(dup((*made)->fd()));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->bytes(), 4096u);
  std::memcpy((*made)->data() + 100, "there", 6);
  EXPECT_STREQ((*opened)->data() + 100, "there");
  EXPECT_NE(ftruncate((*opened)->fd(), 0), 0) << "it keeps its size";
}

TEST(SealedMemoryTest, AFileThatCanBeShrunkIsRefused) {
  const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  const absl::Status status = SealedMemory::Open(fd).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected a memfd that is sealed"));
  EXPECT_LT(fcntl(fd, F_GETFD), 0) << "it is closed";
}

TEST(SealedMemoryTest, MoreThanThereIsIsRefused) {
  const auto made = SealedMemory::Create(size_t{1} << 62, SealedMemory::Touch::kLater);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace keelson
