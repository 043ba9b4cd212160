/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an attention kernel of a library takes by its tiles: the row of a device file that is
 * chosen, how much the tiles are, and the rate at which they are done. Formulas:
 * docs/reference/model.md, "Tiles on SMs".
 */
#pragma once

#include "sim/cost/device.h"

/* What one call comes to, whatever the rates are. */
typedef struct {
    double flops; /* of all SMs from the first to the last tile's end, busy or not */
    double busy;  /* share of that in which they are busy, (0, 1]; 0: no tiles */
    /* Of serving systems alone; else 0. */
    double append_bytes;    /* keys and values */
    double query_bytes;     /* queries, and as much output */
    double append_elements; /* of a block for each token, at most LH_APPEND_ELEMENTS of it */
    double partial_bytes;   /* outputs of split keys */
    double spilled_bytes;   /* what is beyond half of the L2 */
} LhAttentionLoad;

#define LH_APPEND_ELEMENTS 512

/* Of a call with @args, whose rows stand in @q_parts and @k_parts parts, on @sms SMs; @serving: as
 * serving systems call it. */
LhAttentionLoad lh_attention_load(const LhAttentionRow *row, uint64_t sms, const LhKernelArgs *args,
                                  uint32_t q_parts, uint32_t k_parts, bool serving);

/* Seconds of the tiles: at the sustained rate, or @cool, of a device that comes to it cool. */
double lh_attention_tiles_seconds(const LhAttentionRow *row, double flops, bool cool);

/* Seconds of the call; @serving: the only one, of a serving system, with all that it needs beside
 * the kernel. */
double lh_attention_seconds(const LhAttentionRow *row, const LhAttentionLoad *load, bool serving);

/* What a call that takes @seconds is good to by the row's quantiles; 0: it has none. */
double lh_attention_quantile(const LhAttentionRow *row, double seconds);

/*
 * The row of @library (NULL: the first that there is) for @bwd passes and @head_dim under a mask;
 * NULL if there is none. Borrowed.
 */
const LhAttentionRow *lh_attention_find(const LhDevice *device, const char *library, bool bwd,
                                        uint32_t head_dim, bool causal);

/* Whether the device has any row of @library. */
bool lh_attention_has(const LhDevice *device, const char *library);
