#include "chief/coordination/stored_versions.h"

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(StoredVersionsTest, NothingIsUrgentAtFirst) {
  const StoredVersions versions;
  EXPECT_FALSE(versions.urgent());
  EXPECT_EQ(versions.stored(), 0u);
}

TEST(StoredVersionsTest, WhatIsRequestedIsUrgentUntilItIsStored) {
  StoredVersions versions;
  versions.Request(5);
  EXPECT_TRUE(versions.urgent());
  versions.NoteStored(4);
  EXPECT_TRUE(versions.urgent());
  versions.NoteStored(5);
  EXPECT_FALSE(versions.urgent());
  versions.Request(6);
  EXPECT_TRUE(versions.urgent());
}

TEST(StoredVersionsTest, ALateAnswerOfAServerTakesNothingBack) {
  StoredVersions versions;
  versions.Request(5);
  versions.NoteStored(7);
  versions.NoteStored(4);
  EXPECT_EQ(versions.stored(), 7u);
  EXPECT_FALSE(versions.urgent());
}

}  // namespace
}  // namespace keelson
