/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that takes long: on how many threads it goes, who is told how far it is, and may end it.
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdbool.h>

/* How far work is. What a kind of work has nothing to say of is 0 or NULL. All of it is borrowed,
 * for the call. */
typedef struct {
    const char *what;     /* what it is at: a schedule, a cluster, what is measured */
    uint64_t done, total; /* parts of it: programs, points, candidates; total 0: not told */
    uint64_t events;      /* of a simulation: so far */
    LhTime now_ps;        /* and its simulated time */
    LhTime best_ps;       /* of a search: the fastest so far; LH_TIME_NEVER: none */
    const void *more;     /* what the header of the work says */
} LhProgress;

/*
 * @progress is called now and then; false ends the work, and what came of it says so. Unless the
 * field says otherwise, any thread of the work calls it, but one at a time, with a lock of the work
 * held: it asks for nothing of that work, and does not take long. Once it was false it may be
 * called again, by runs that have not heard of that.
 */
typedef struct {
    guint jobs;                                         /* threads; 0: as the work chooses */
    bool (*progress)(void *data, const LhProgress *at); /* NULL: nobody is told */
    void *data;
} LhTask;

/* False if whom @task tells ends it. @task may be NULL. Takes no lock: that is the caller's, which
 * knows what else it guards. */
static inline bool
lh_task_tell(const LhTask *task, const LhProgress *at)
{
    return task == NULL || task->progress == NULL || task->progress(task->data, at);
}
