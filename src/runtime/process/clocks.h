/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One time for the processes of a run, whose clocks need not agree: when all of them begin, so that
 * what each records can be compared with what the others do.
 */
#pragma once

#include "runtime/api/control.h"

/* What a process saw of one exchange with all others, by its own clock. */
typedef struct {
    int64_t sent_ns, received_ns; /* before it told the others, and when it had heard of all */
} LhClockRound;

/*
 * By how much the clock of the first process is ahead of another's, from rounds in which all told
 * the first one and it then told all: its own time of that, first[i].received_ns, is between the
 * two that the other has. The narrowest of @count > 0 rounds decides (Cristian 1989). Fills
 * @width_ns, of which the answer may be wrong by half.
 */
int64_t lh_clocks_ahead(const LhClockRound *first, const LhClockRound *other, size_t count,
                        int64_t *width_ns);

/* Of each process's exchanges. */
#define LH_CLOCK_ROUNDS 4

/*
 * When all begin, by the clock of process @mine of @processes: the same time for all of them, but
 * for half of what their narrowest rounds took, and one that those who are told last have not
 * reached yet. @rounds[process][LH_CLOCK_ROUNDS].
 */
int64_t lh_clocks_start(const LhClockRound *rounds, size_t processes, size_t mine);

/* Nanoseconds of this process's monotonic clock. */
int64_t lh_clocks_now(void);

/*
 * Meets the other processes, and fills @start_ns, by this process's clock, with a time that is the
 * same for all and at most some round trips away. Without others it is now.
 */
bool lh_clocks_meet(const LhOpenControl *control, int64_t *start_ns, GError **error);

/* Returns at that time, or at once if it is over. */
void lh_clocks_sleep_until(int64_t until_ns);
