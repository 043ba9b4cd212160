/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of one command, opened by a control plane, and the exchanges by which all of them
 * reach the same decisions. A control plane of a single process gives one.
 */
#pragma once

#include "runtime/api/control.h"

typedef struct {
    LhOpenControl control;
    uint32_t count; /* of processes, at least 1 */
} LhProcesses;

/* Opens all processes that were started. LH_ERROR_RUNTIME. End with lh_processes_close(). */
bool lh_processes_open(LhProcesses *processes, const LhControl *control, int64_t deadline_us,
                       GError **error);
void lh_processes_close(LhProcesses *processes);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhProcesses, lh_processes_close)

/* Whether this is the first process, the only one that prints and writes files. */
bool lh_processes_first(const LhProcesses *processes);

bool lh_processes_wait(const LhProcesses *processes, GError **error);

/* All-gathers @mine of every process into @all ([count], in rank order). */
bool lh_processes_gather(const LhProcesses *processes, double mine, double *all, GError **error);

/* Broadcasts @values of the first process to all. */
bool lh_processes_tell(const LhProcesses *processes, double *values, size_t count, GError **error);

/* All-gathers the texts @mine in rank order: NULL-terminated. NULL with @error; caller frees. */
char **lh_processes_texts(const LhProcesses *processes, const char *mine, GError **error);

/* Whether @mine is the same on all processes; else LH_ERROR_RUNTIME: "rank 2 has a different @what
 * (..) from rank 0 (..)". */
bool lh_processes_agree(const LhProcesses *processes, const char *what, const char *mine,
                        GError **error);
