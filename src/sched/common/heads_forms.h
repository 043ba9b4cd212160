/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and closed forms of schedules that exchange heads.
 */
#pragma once

#include "sched/common/heads.h"

/* The number of slices of query heads that @rank has by heads. */
uint32_t lh_heads_own(const LhHeadsCut *cut, uint32_t rank);

/* Sizes of a rank's tensors by tokens, with gradients in the type that is sent. */
LhPassSizes lh_heads_sizes(const LhProgramParams *p, const LhHeads *heads);

/* Flops of attention if all ranks are one group, and if groups form zigzag rings. */
uint64_t lh_heads_whole_flops(const LhProgramParams *p, const LhHeads *heads, uint32_t rank);
uint64_t lh_heads_ring_flops(const LhProgramParams *p, uint32_t rank);

/* Flops of attention of @heads query heads over all tokens, softmax or linear, in the passes
 * that run. */
uint64_t lh_heads_flops(const LhProgramParams *p, uint32_t heads);

/* Bytes a rank sends in all-to-alls. */
uint64_t lh_heads_bytes_sent(const LhProgramParams *p, const LhHeads *heads, uint32_t rank);

/* Bytes of attention's buffers in each pass; `kept` of them stay between the passes. */
typedef struct {
    uint64_t forward, backward, kept;
} LhHeadsBuffers;

/* Peak memory of a rank. @buffers NULL: attention has no buffers. */
uint64_t lh_heads_peak_bytes(const LhProgramParams *p, const LhHeads *heads,
                             const LhHeadsBuffers *buffers);

/* Defines the closed forms WORD_bytes_sent, WORD_flops and WORD_peak_bytes of a schedule of one
 * group of all ranks, whose LhHeads are HEADS_OF(params). */
#define LH_HEADS_WHOLE_FORMS(WORD, HEADS_OF)                                                       \
    static uint64_t WORD##_bytes_sent(const LhProgramParams *p, uint32_t rank)                     \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        return lh_heads_bytes_sent(p, &heads, rank);                                               \
    }                                                                                              \
                                                                                                   \
    static uint64_t WORD##_flops(const LhProgramParams *p, uint32_t rank)                          \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        return lh_heads_whole_flops(p, &heads, rank);                                              \
    }                                                                                              \
                                                                                                   \
    static uint64_t WORD##_peak_bytes(const LhProgramParams *p, uint32_t rank)                     \
    {                                                                                              \
        const LhHeads heads = HEADS_OF(p);                                                         \
                                                                                                   \
        (void)rank;                                                                                \
        return lh_heads_peak_bytes(p, &heads, NULL);                                               \
    }

/* Pads heads and groups so that @ranks ranks can share them; the hidden size stays the same.
 * With @replicate several ranks may share a key-value head. */
void lh_heads_pad(LhAttention *attention, uint32_t ranks, bool replicate);

/* "3, 4": the legal numbers of ranks nearest to @ranks, by @legal. Caller frees. */
char *lh_heads_nearest_ranks(const LhAttention *a, uint32_t ranks,
                             bool (*legal)(const LhAttention *a, uint32_t ranks));

/* Group size U of schedules with groups. The default is the largest that divides the ranks, the
 * query groups and, if known, the GPUs of a node. adapt pads heads and sets the default; check
 * rejects a size that does not divide ranks and groups. */
uint32_t lh_heads_group_size(const LhProgramParams *p);
void lh_heads_adapt_group_size(LhProgramParams *p);
bool lh_heads_check_group_size(const LhProgramParams *p, GError **error);
