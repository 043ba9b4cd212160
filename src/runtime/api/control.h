/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane: which processes take part in a run, and what they tell each other beside the
 * data of the program, which does not go through it. Every call is made by the thread that opened
 * it. Every call that waits for other processes gives up at the deadline and says which.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_LOCAL_MAX 4096      /* processes of a machine */
#define LH_CONTROL_NAMED_MAX 8 /* ranks that a message names */

/* Which of the ranks are this process's: [first, first + count). */
typedef struct {
    uint32_t first, count;
} LhControlPlace;

typedef struct {
    const char *name;
    /* For @ranks ranks in all, 0: one a process, however many there are; nothing waits for longer
     * than @deadline_us. NULL with @error (LH_ERROR_RUNTIME, or LH_ERROR_USAGE if there are not as
     * many processes as it takes). */
    void *(*open)(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error);
    /* Waits until all processes have called it. */
    bool (*barrier)(void *control, GError **error);
    /* Appends @bytes of every process, in the order of its ranks, to @all of the first process, and
     * nothing elsewhere. A process that has more than @limit, the most that the program expects of
     * one, is refused before it has told them. */
    bool (*gather)(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                   GError **error);
    /* The same, to @all of every process. */
    bool (*share)(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                  GError **error);
    /* Whether another process has failed, or is gone, that no call has told of. Never waits. NULL:
     * there is none. */
    bool (*failed)(void *control, GError **error);
    void (*close)(void *control);
    /* Says what this process is at, for the others to know should it never say anything again:
     * @text, such as "37 ops are complete", and, if it waits, for which ranks. NULL: nobody
     * asks.
     */
    void (*standing)(void *control, const char *text, const uint32_t *awaited, uint32_t count);
    /*
     * This process ends, because of @failure, of which those of domain LH_WAITED say what others
     * have not done. All processes find one reason, which the first one knows best: its text, which
     * names a rank and its host, and the exit status with it. May be called after close(). Caller
     * frees. NULL: there are no other processes.
     */
    char *(*conclude)(const GError *failure, int *status);
    /* After conclude(): ends all processes with exit status @status, since their launcher would
     * wait for a proper end, after the others had time to say what they know. NULL: each ends
     * itself. */
    void (*abandon)(int status);
    /* Tells the others why this process ends, while it does: in a signal handler, or without
     * memory. NULL: there are none. */
    void (*last_words)(int status, const char *text);
} LhControl;

/* One that has been opened. */
typedef struct {
    const LhControl *table;
    void *state;
    LhControlPlace place;
} LhOpenControl;

extern const LhControl lh_control_single;
extern const LhControl lh_control_mpi;
/* Over TCP, as torchrun or Slurm have started the processes (launcher_env.h). */
extern const LhControl lh_control_torchrun;
extern const LhControl lh_control_slurm;
/* One of the others, as the environment says how the processes were started. */
extern const LhControl lh_control_auto;

/* NULL-terminated: lh_control_auto, which is the default, first. The names are in the same order.
 */
extern const LhControl *const lh_controls[];
extern const char *const lh_control_names[];

/* The one that @control stands for. */
const LhControl *lh_control_resolve(const LhControl *control);

/* "rank 3", "ranks 0, 2, 3 and 5 more": of a GArray of uint32_t. Caller frees. */
char *lh_control_ranks_text(const GArray *ranks);

/* The place of this process among those of its machine; 0 if nothing says so. */
uint32_t lh_control_local(void);
