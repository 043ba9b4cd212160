/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the rank that caused a run to fail. When one rank fails, stops or is cut off, all ranks
 * that depend on it stall, and each of them only sees a wait; the cause follows only from the state
 * of all ranks together.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_RANK_ANSWERS,
    LH_RANK_FAILED,  /* it reported a failure and its reason */
    LH_RANK_GONE,    /* its connection closed without an end frame */
    LH_RANK_ENDED,   /* it reported its end while others wait for it */
    LH_RANK_MISSING, /* it never connected */
    LH_RANK_SILENT,  /* it does not answer */
} LhRankState;

/* The known state of a rank. */
typedef struct {
    LhRankState state;
    uint32_t order;    /* order of failures and disconnections: the least came first */
    int status;        /* exit status, of a failure */
    char *host;        /* NULL: unknown; owned */
    char *text;        /* why it failed, else its last reported progress; NULL: unknown; owned */
    int64_t heard_us;  /* when it was last heard from, by g_get_monotonic_time(); 0: never */
    GArray *awaited;   /* of uint32_t: the ranks that it waits for; NULL: none; owned */
    bool host_answers; /* whether the host of a silent rank answers */
} LhRankNews;

typedef struct {
    uint32_t rank;
    int status;
    char *text; /* names the rank and its host; owned */
} LhFirstFailure;

/*
 * Decides which of ranks [0, count) caused the failure, as seen by rank @own at @now_us. The first
 * rule that applies: the rank that failed first; the rank that disconnected first; ranks that never
 * connected; silent ranks, or @own if it reaches no other host; otherwise the rank that others wait
 * for and that waits for none itself. @waited_us: how long missing ranks have been waited for.
 */
LhFirstFailure lh_first_failure_find(const LhRankNews *news, uint32_t count, uint32_t own,
                                     int64_t now_us, int64_t waited_us);
