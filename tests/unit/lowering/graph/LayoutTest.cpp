//===- LayoutTest.cpp - Layouts through reshapes ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lowering/graph/LayoutAssignment.h"
#include "gtest/gtest.h"

using namespace pto::lowering;

namespace {

using Groups = llvm::SmallVector<llvm::SmallVector<int64_t, 2>>;

// NxCxHxW stored as NxHxWxC, collapsed to NxCxHW: stored as NxHWxC.
TEST(LayoutThroughReshape, ImageCollapses) {
  auto perm = layoutThroughReshape(Groups{{0}, {1}, {2, 3}}, {1, 8, 4, 5},
                                   {0, 2, 3, 1}, /*fromLarge=*/true);
  ASSERT_TRUE(perm);
  EXPECT_EQ(*perm, (Permutation{0, 2, 1}));
}

// NxCxHxW to NxCHW mixes channels and image: not free.
TEST(LayoutThroughReshape, FlattenOfAnImageIsNotFree) {
  EXPECT_FALSE(layoutThroughReshape(Groups{{0}, {1, 2, 3}}, {1, 8, 4, 5},
                                    {0, 2, 3, 1}, /*fromLarge=*/true));
}

TEST(LayoutThroughReshape, FlattenAfterGlobalPoolIsFree) {
  auto perm = layoutThroughReshape(Groups{{0}, {1, 2, 3}}, {2, 8, 1, 1},
                                   {0, 2, 3, 1}, /*fromLarge=*/true);
  ASSERT_TRUE(perm);
  EXPECT_EQ(*perm, (Permutation{0, 1}));
}

// Channels split into groups: NxGxCxHxW is stored as NxHxWxGxC.
TEST(LayoutThroughReshape, ChannelsSplit) {
  auto perm = layoutThroughReshape(Groups{{0}, {1, 2}, {3}, {4}},
                                   {1, 2, 4, 5, 5}, {0, 2, 3, 1},
                                   /*fromLarge=*/false);
  ASSERT_TRUE(perm);
  EXPECT_EQ(*perm, (Permutation{0, 3, 4, 1, 2}));
}

TEST(Permutation, InverseUndoes) {
  Permutation perm{0, 2, 3, 1};
  EXPECT_EQ(inverse(perm), (Permutation{0, 3, 1, 2}));
  EXPECT_TRUE(isIdentity(inverse(Permutation{0, 1, 2})));
  EXPECT_FALSE(isIdentity(perm));
}

} // namespace
