/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that one command runs in, by a control plane, and what they tell each other so that
 * all of them decide alike. A control plane of one process has one.
 */
#pragma once

#include "runtime/api/control.h"

typedef struct {
    LhOpenControl control;
    uint32_t count; /* of processes, at least 1 */
} LhProcesses;

/* As many as there are. LH_ERROR_RUNTIME. Ends with lh_processes_close(). */
bool lh_processes_open(LhProcesses *processes, const LhControl *control, int64_t deadline_us,
                       GError **error);
void lh_processes_close(LhProcesses *processes);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhProcesses, lh_processes_close)

/* Whether this is the first one, which alone prints and writes. */
bool lh_processes_first(const LhProcesses *processes);

bool lh_processes_wait(const LhProcesses *processes, GError **error);

/* @mine of every process: [count], in the order of ranks. */
bool lh_processes_gather(const LhProcesses *processes, double mine, double *all, GError **error);

/* What the first process has in @values, to all of them. */
bool lh_processes_tell(const LhProcesses *processes, double *values, size_t count, GError **error);

/* @mine of every process, in the order of ranks: NULL-terminated. NULL with @error; caller frees.
 */
char **lh_processes_texts(const LhProcesses *processes, const char *mine, GError **error);

/* Whether all say the same; else LH_ERROR_RUNTIME: "rank 2 has another @what (..) than rank 0
 * (..)". */
bool lh_processes_agree(const LhProcesses *processes, const char *what, const char *mine,
                        GError **error);
