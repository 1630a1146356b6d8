#include "core/cluster/task_proto.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

TEST(TaskProtoTest, RoundTrip) {
  for (Role role : {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    const Task task{role, 3};
    const auto back = TaskFromProto(TaskToProto(task));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, task);
  }
}

TEST(TaskProtoTest, RefusesWhatIsNoTask) {
  v1::TaskId proto;
  EXPECT_EQ(TaskFromProto(proto).status().message(),
            "task.role: expected chief, ps, worker or evaluator, found 0");
  proto.set_role(static_cast<v1::Role>(9));
  EXPECT_THAT(TaskFromProto(proto).status().message(), HasSubstr("found 9"));
  proto.set_role(v1::ROLE_PS);
  proto.set_index(1u << 31);
  EXPECT_EQ(TaskFromProto(proto).status().message(),
            "task.index: expected < 2147483648, found 2147483648");
  EXPECT_EQ(TaskFromProto(proto).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(VariableSpecProtoTest, RoundTrip) {
  for (const Initializer& initializer : {Initializer{Initializer::Kind::kConstant, 2, 0},
                                         Initializer{Initializer::Kind::kUniform, -1, 1},
                                         Initializer{Initializer::Kind::kNormal, 0, 0.5f},
                                         Initializer{Initializer::Kind::kTruncatedNormal, 1, 2}}) {
    const VariableSpec spec{"layer/kernel", Shape({3, 4}), initializer};
    const auto back = VariableSpecFromProto(VariableSpecToProto(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->name, spec.name);
    EXPECT_EQ(back->shape, spec.shape);
    EXPECT_EQ(back->initializer.kind, initializer.kind);
    EXPECT_EQ(back->initializer.a, initializer.a);
    EXPECT_EQ(back->initializer.b, initializer.b);
  }
}

TEST(VariableSpecProtoTest, ScalarWithoutInitializerIsZero) {
  v1::VariableSpec proto;
  proto.set_name("s");
  const auto spec = VariableSpecFromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->shape, Shape());
  EXPECT_EQ(spec->initializer.kind, Initializer::Kind::kConstant);
  EXPECT_EQ(spec->initializer.a, 0);
}

TEST(VariableSpecProtoTest, RefusesNoNameAndBadShapes) {
  v1::VariableSpec proto;
  EXPECT_EQ(VariableSpecFromProto(proto).status().message(),
            "variable.name: expected a name, found none");
  proto.set_name("w");
  proto.add_shape(0);
  EXPECT_THAT(VariableSpecFromProto(proto).status().message(),
              HasSubstr("variable \"w\": shape: expected extents >= 1"));
  proto.set_shape(0, int64_t{1} << 40);
  EXPECT_TRUE(VariableSpecFromProto(proto).ok());
  proto.add_shape(int64_t{1} << 40);
  EXPECT_EQ(VariableSpecFromProto(proto).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(VariableSpecProtoTest, KeepsTheDecayOfAnAverage) {
  VariableSpec spec{"norm/moving_mean", Shape({3}), {}};
  EXPECT_FALSE(VariableSpecToProto(spec).has_average_decay());
  EXPECT_TRUE(VariableSpecFromProto(VariableSpecToProto(spec))->trained());
  for (const float decay : {0.0f, 0.99f}) {
    spec.average_decay = decay;
    const auto back = VariableSpecFromProto(VariableSpecToProto(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_FALSE(back->trained());
    EXPECT_EQ(back->average_decay, decay);
  }
}

TEST(VariableSpecProtoTest, RefusesADecayThatIsNone) {
  v1::VariableSpec proto;
  proto.set_name("w");
  for (const float decay : {-0.5f, 1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    proto.set_average_decay(decay);
    EXPECT_EQ(VariableSpecFromProto(proto).status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "variable \"w\": average_decay: expected >= 0 and < 1, found ", decay)));
  }
}

TEST(VariableSpecProtoTest, RefusesALongName) {
  v1::VariableSpec proto;
  proto.set_name(std::string(1024, 'n'));
  EXPECT_TRUE(VariableSpecFromProto(proto).ok());
  proto.set_name(std::string(1025, 'n'));
  EXPECT_EQ(VariableSpecFromProto(proto).status(),
            absl::InvalidArgumentError("variable.name: expected at most 1024 bytes, found 1025"));
}

TEST(TableSpecProtoTest, RoundTrip) {
  TableSpec spec{"users", 1024, {Initializer::Kind::kTruncatedNormal, 0, 0.25f}};
  spec.max_rows = 1000;
  spec.evict = true;
  spec.expire_after_steps = 7;
  spec.admit_after = 3;
  spec.absent_zeros = true;
  const auto back = TableSpecFromProto(TableSpecToProto(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->name, "users");
  EXPECT_EQ(back->dim, 1024);
  EXPECT_EQ(back->initializer.kind, Initializer::Kind::kTruncatedNormal);
  EXPECT_EQ(back->initializer.b, 0.25f);
  EXPECT_EQ(back->max_rows, 1000);
  EXPECT_TRUE(back->evict);
  EXPECT_EQ(back->expire_after_steps, 7);
  EXPECT_EQ(back->admit_after, 3);
  EXPECT_TRUE(back->absent_zeros);
}

TEST(TableSpecProtoTest, RefusesNoNameAndNoElements) {
  v1::TableSpec proto;
  EXPECT_EQ(TableSpecFromProto(proto).status(),
            absl::InvalidArgumentError("table.name: expected a name, found none"));
  proto.set_name("users");
  EXPECT_EQ(TableSpecFromProto(proto).status(),
            absl::InvalidArgumentError("table \"users\": dim: expected 1..1024, found 0"));
}

}  // namespace
}  // namespace keelson
