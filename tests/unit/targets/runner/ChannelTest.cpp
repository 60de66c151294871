//===- ChannelTest.cpp ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
#include "targets/runner/Channel.h"
#include "gtest/gtest.h"
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace pto::targets;
namespace json = llvm::json;

namespace {
struct ChannelTest : testing::Test {
  void SetUp() override {
    ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    a = Channel(fds[0]);
    b = Channel(fds[1]);
  }
  void TearDown() override {
    ::close(fds[0]);
    ::close(fds[1]);
  }
  int fds[2];
  Channel a, b;
};
} // namespace

TEST_F(ChannelTest, linesArriveInOrder) {
  ASSERT_TRUE(a.send(json::Object{{"n", 1}, {"text", "two\nlines"}}));
  ASSERT_TRUE(a.send(json::Object{{"n", 2}}));
  auto first = b.receive();
  ASSERT_TRUE(first);
  EXPECT_EQ(1, *first->getInteger("n"));
  EXPECT_EQ("two\nlines", *first->getString("text"));
  EXPECT_EQ(2, *b.receive()->getInteger("n"));
  EXPECT_FALSE(b.next());
}

TEST_F(ChannelTest, largerThanTheSocketBuffer) {
  std::string text(5 << 20, 'x');
  std::thread sender([&] { a.send(json::Object{{"text", text}}); });
  auto message = b.receive();
  sender.join();
  ASSERT_TRUE(message);
  EXPECT_EQ(text, *message->getString("text"));
}

TEST_F(ChannelTest, sendGivesUp) {
  std::string text(5 << 20, 'x');
  EXPECT_FALSE(a.send(json::Object{{"text", text}}, 20));
}

TEST_F(ChannelTest, endAndGarbage) {
  ASSERT_EQ(5, ::write(fds[0], "huh?\n", 5));
  ASSERT_EQ(3, ::write(fds[0], "{\"a", 3));
  ::shutdown(fds[0], SHUT_WR);
  auto garbage = b.receive();
  ASSERT_TRUE(garbage);
  EXPECT_TRUE(garbage->empty());
  EXPECT_FALSE(b.receive());
}
