/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes compute on the same cores. Where they are more than these cores, they take turns
 * when kernels are measured, and share the cores in a simulation (LhDevice.machine_ranks).
 */
#pragma once

#include "runtime/process/processes.h"

typedef struct {
    uint32_t turns, turn;  /* of @turns groups no two should compute at the same time; this process
                              is in group @turn */
    uint32_t ranks, cores; /* so many in a row share so many, on every machine; 0: none are shared,
                              or not alike, and @turns is 1 */
} LhCoreSharing;

/* @texts is what lh_cores_text() says in each of @count > 0 processes, of which this is @mine; each
 * of the processes may use @cores > 0. */
LhCoreSharing lh_core_sharing_of(char *const *texts, uint32_t count, uint32_t mine, uint32_t cores);

/* The same of the processes there are, and the same turns in all of them. */
bool lh_core_sharing_find(const LhProcesses *processes, LhCoreSharing *cores, GError **error);
