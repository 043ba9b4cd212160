/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a library's attention kernel by its tiles: the row of a device file that applies, the
 * work of the tiles, and the rate at which it is done. Formulas: docs/reference/model.md, "Tiles on
 * SMs".
 */
#pragma once

#include "sim/cost/device.h"

/* Work of one call, independent of rates. */
typedef struct {
    double flops; /* of all SMs until the end of the last tile, busy or not */
    double busy;  /* fraction of that in which they are busy, (0, 1]; 0: no tiles */
    /* For serving systems only; else 0. */
    double append_bytes; /* keys and values appended to the cache */
    double query_bytes;  /* queries; the output is as large */
    double
        append_elements;  /* elements of keys per token, at most LH_APPEND_ELEMENTS, times tokens */
    double partial_bytes; /* outputs of split keys */
    double spilled_bytes; /* beyond half of the L2 */
} LhAttentionLoad;

#define LH_APPEND_ELEMENTS 512

/* The work of a call with @args, whose rows are in @q_parts and @k_parts parts, on @sms SMs;
 * @serving: as serving systems call it. */
LhAttentionLoad lh_attention_load(const LhAttentionRow *row, uint64_t sms, const LhKernelArgs *args,
                                  uint32_t q_parts, uint32_t k_parts, bool serving);

/* Seconds of the tiles, at the sustained rate; @cool: on a device that is cool at the start. */
double lh_attention_tiles_seconds(const LhAttentionRow *row, double flops, bool cool);

/* Seconds of the call; @serving: of a single call of a serving system, including its work around
 * the kernel. */
double lh_attention_seconds(const LhAttentionRow *row, const LhAttentionLoad *load, bool serving);

/* Relative error of a call of @seconds, from the row's quantiles; 0: unknown. */
double lh_attention_quantile(const LhAttentionRow *row, double seconds);

/*
 * The row of @library (NULL: the first one) for @bwd passes and @head_dim under a mask; NULL if
 * there is none. Borrowed.
 */
const LhAttentionRow *lh_attention_find(const LhDevice *device, const char *library, bool bwd,
                                        uint32_t head_dim, bool causal);

/* Whether the device has any row of @library. */
bool lh_attention_has(const LhDevice *device, const char *library);
