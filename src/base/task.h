/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long task: its number of threads, and who gets its progress and may end it.
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdbool.h>

/* Progress of a task. Members that do not apply are 0 or NULL. All borrowed for the call. */
typedef struct {
    const char *what;     /* the current item: a schedule, a cluster, a measurement */
    uint64_t done, total; /* parts: programs, points, candidates; total 0: unknown */
    uint64_t events;      /* simulated events so far */
    LhTime now_ps;        /* simulated time so far */
    LhTime best_ps;       /* of a search: the fastest so far; LH_TIME_NEVER: none */
    const void *more;     /* defined by the header of the task */
} LhProgress;

/*
 * @progress is called now and then; if it returns false, the task ends and its result says so.
 * Unless a task states otherwise, it is called by any of its threads, one at a time, with a lock of
 * the task held: it must not call back into the task and must return soon. After returning false it
 * may be called again, by threads that do not know yet.
 */
typedef struct {
    guint jobs;                                         /* threads; 0: the task's choice */
    bool (*progress)(void *data, const LhProgress *at); /* NULL: no progress wanted */
    void *data;
} LhTask;

/* Reports progress; false if the receiver ends the task. @task may be NULL. Takes no lock: the
 * caller does, which knows what else to guard. */
static inline bool
lh_task_tell(const LhTask *task, const LhProgress *at)
{
    return task == NULL || task->progress == NULL || task->progress(task->data, at);
}
