/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank ends a run. Where one fails, stops or is cut off, all that have to do with it stand
 * still, and what each of them sees is a wait: only all of it together says who it is.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_RANK_ANSWERS,
    LH_RANK_FAILED,  /* it says that it has, and why */
    LH_RANK_GONE,    /* its connection is closed, and it has not said that it ends */
    LH_RANK_ENDED,   /* it says that it has ended, while others wait for it */
    LH_RANK_MISSING, /* it has never come */
    LH_RANK_SILENT,  /* it does not answer */
} LhRankState;

/* What is known of a rank. */
typedef struct {
    LhRankState state;
    uint32_t order;    /* of failing and of going: the least came first */
    int status;        /* exit status, of a failure */
    char *host;        /* NULL: unknown; owned */
    char *text;        /* why it failed; else what it was at when last heard of; NULL: unknown;
                          owned */
    int64_t heard_us;  /* when that was, by g_get_monotonic_time(); 0: never */
    GArray *awaited;   /* of uint32_t: the ranks that it waits for; NULL: none; owned */
    bool host_answers; /* of one that is silent */
} LhRankNews;

typedef struct {
    uint32_t rank;
    int status;
    char *text; /* names the rank and its host; owned */
} LhFirstFailure;

/*
 * The verdict over ranks [0, count), by rank @own at @now_us. In this order: who failed first; who
 * went first; who never came; who is silent, which is @own if it reaches no other host; else whom
 * the others wait for, while that one waits for nobody. @waited_us: how long it has been waited for
 * those that are missing.
 */
LhFirstFailure lh_first_failure_find(const LhRankNews *news, uint32_t count, uint32_t own,
                                     int64_t now_us, int64_t waited_us);
