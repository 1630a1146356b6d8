#include "worker/server_news.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ServerNewsTest : public testing::Test {
 protected:
  void Note(uint64_t version, const std::vector<std::string>& addresses) {
    google::protobuf::RepeatedPtrField<std::string> proto;
    for (const std::string& address : addresses) *proto.Add() = address;
    news_.Note(version, proto);
  }
  void Watch() {
    news_.Watch([this](const ServerNews::Addresses& told) { told_.push_back(told); });
  }

  ServerNews news_;
  std::vector<ServerNews::Addresses> told_;
};

TEST_F(ServerNewsTest, ChangesAreToldOnce) {
  news_.Begin(3);
  Watch();
  Note(3, {});
  EXPECT_THAT(told_, IsEmpty());
  Note(4, {"a", "b"});
  Note(4, {});
  EXPECT_THAT(told_, ElementsAre(ElementsAre("a", "b")));
  EXPECT_EQ(news_.version(), 4u);
}

TEST_F(ServerNewsTest, WhatCameBeforeTheWatcherIsToldToIt) {
  news_.Begin(1);
  Note(2, {"a"});
  Note(3, {"b"});
  Watch();
  EXPECT_THAT(told_, ElementsAre(ElementsAre("b")));
}

TEST_F(ServerNewsTest, WhatCameBeforeTheModelIsLeftToLaterAnswers) {
  Watch();
  Note(2, {"a"});
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(news_.version(), 0u);
  news_.Begin(1);
  Note(2, {"a"});
  EXPECT_THAT(told_, ElementsAre(ElementsAre("a")));
}

TEST_F(ServerNewsTest, AnAnswerThatWasOvertakenIsIgnored) {
  news_.Begin(1);
  Watch();
  Note(3, {"new"});
  Note(2, {"old"});
  EXPECT_THAT(told_, ElementsAre(ElementsAre("new")));
  EXPECT_EQ(news_.version(), 3u);
}

TEST_F(ServerNewsTest, AnotherChiefsVersionsCountFromTheirBeginning) {
  news_.Begin(7);
  Watch();
  news_.Forget();
  EXPECT_EQ(news_.version(), 0u);
  Note(1, {"a"});
  EXPECT_THAT(told_, ElementsAre(ElementsAre("a")));
  EXPECT_EQ(news_.version(), 1u);
}

TEST_F(ServerNewsTest, NobodyIsToldAfterTheWatchHasEnded) {
  news_.Begin(1);
  Watch();
  news_.Watch(nullptr);
  Note(2, {"a"});
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace keelson
