/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane: the processes of a run, and what they exchange besides the data of the
 * program, which the transport carries. All calls are made by the thread that opened it. A call
 * that waits for other processes fails at the deadline and names those that are missing.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_LOCAL_MAX 4096      /* processes on one machine */
#define LH_CONTROL_NAMED_MAX 8 /* ranks that a message names */

/* The ranks of this process: [first, first + count). */
typedef struct {
    uint32_t first, count;
} LhControlPlace;

typedef struct {
    const char *name;
    /* Opens it for @ranks ranks in total, or for one rank per process if @ranks is 0, whatever the
     * number of processes. No call waits longer than @deadline_us. NULL with @error
     * (LH_ERROR_RUNTIME; LH_ERROR_USAGE if the number of processes is wrong). */
    void *(*open)(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error);
    /* Waits until all processes have called it. */
    bool (*barrier)(void *control, GError **error);
    /* Appends the @bytes of every process, in rank order, to @all of the first process, and nothing
     * elsewhere. @limit is the most that the program expects of one process; a process with more is
     * rejected before it sends. */
    bool (*gather)(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                   GError **error);
    /* Likewise, to @all of every process. */
    bool (*share)(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                  GError **error);
    /* Whether another process has failed or disappeared without any call having reported it. Never
     * waits. NULL: there is no other process. */
    bool (*failed)(void *control, GError **error);
    void (*close)(void *control);
    /* Publishes the progress of this process, which the others report if it falls silent: @text,
     * such as "37 ops are complete", and the ranks it waits for, if any. NULL: nobody reads it. */
    void (*standing)(void *control, const char *text, const uint32_t *awaited, uint32_t count);
    /*
     * Agrees with the other processes on one cause of failure, which the first process decides as
     * long as it answers. @failure is why this process ends; its errors of domain LH_WAITED say
     * what other processes have not done. Returns the text of the cause, which names a rank and its
     * host (caller frees), and sets the exit status. May be called after close(). NULL: there are
     * no other processes.
     */
    char *(*conclude)(const GError *failure, int *status);
    /* After conclude(): ends all processes with exit status @status, once the others have had time
     * to report, because their launcher would otherwise wait for a proper end. NULL: each process
     * ends itself. */
    void (*abandon)(int status);
    /* Tells the others why this process ends, from a signal handler or when memory is exhausted.
     * NULL: there are no others. */
    void (*last_words)(int status, const char *text);
} LhControl;

/* An open control plane. */
typedef struct {
    const LhControl *table;
    void *state;
    LhControlPlace place;
} LhOpenControl;

extern const LhControl lh_control_single;
extern const LhControl lh_control_mpi;
/* Over TCP, for processes started by torchrun or Slurm (launcher_env.h). */
extern const LhControl lh_control_torchrun;
extern const LhControl lh_control_slurm;
/* One of the others, chosen by the environment variables of the launcher. */
extern const LhControl lh_control_auto;

/* NULL-terminated; the default, lh_control_auto, is first. The names are in the same order. */
extern const LhControl *const lh_controls[];
extern const char *const lh_control_names[];

/* The control plane that lh_control_auto chooses, or @control itself. */
const LhControl *lh_control_resolve(const LhControl *control);

/* "rank 3" or "ranks 0, 2, 3 and 5 more", from a GArray of uint32_t. Caller frees. */
char *lh_control_ranks_text(const GArray *ranks);

/* Index of this process on its machine, as the launcher says; 0 if it does not. */
uint32_t lh_control_local(void);
