/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A common start time for the processes of a run, whose clocks differ, so that the times recorded
 * by different processes can be compared.
 */
#pragma once

#include "runtime/api/control.h"

/* Times of one exchange with all other processes, by the process's own clock. */
typedef struct {
    int64_t sent_ns, received_ns; /* before it sent, and when it had received from all */
} LhClockRound;

/*
 * Estimates the offset of the first process's clock from another's: how far it is ahead. In each
 * round all send to the first process, which then sends to all at its own time
 * first[i].received_ns; that time lies between the two times of the other process. The narrowest of
 * @count > 0 rounds decides (Cristian 1989). Sets @width_ns; the error of the estimate is at most
 * half of it.
 */
int64_t lh_clocks_ahead(const LhClockRound *first, const LhClockRound *other, size_t count,
                        int64_t *width_ns);

/* Rounds of each process. */
#define LH_CLOCK_ROUNDS 4

/*
 * The common start time by the clock of process @mine of @processes, from
 * @rounds[process][LH_CLOCK_ROUNDS]. It is the same moment for all, up to half the width of their
 * narrowest rounds, and late enough that those who learn of it last have not passed it.
 */
int64_t lh_clocks_start(const LhClockRound *rounds, size_t processes, size_t mine);

/* This process's monotonic clock, in nanoseconds. */
int64_t lh_clocks_now(void);

/*
 * Agrees on a start time with the other processes. Sets @start_ns, by this process's clock, to a
 * moment common to all, at most a few round trips away; without other processes, to now.
 */
bool lh_clocks_meet(const LhOpenControl *control, int64_t *start_ns, GError **error);

/* Sleeps until that time; returns at once if it has passed. */
void lh_clocks_sleep_until(int64_t until_ns);
