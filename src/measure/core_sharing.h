/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes compute on the same cores. If they outnumber the cores, they take turns when
 * kernels are measured, and the simulation shares the cores among them (LhDevice.machine_ranks).
 */
#pragma once

#include "runtime/process/processes.h"

typedef struct {
    /* Processes are split into @turns groups that measure one after another; this one is in
     * group @turn. */
    uint32_t turns, turn;
    /* On every machine, each group of @ranks consecutive processes shares @cores cores; 0: no
     * cores are shared, or machines differ, and then @turns is 1. */
    uint32_t ranks, cores;
} LhCoreSharing;

/* Finds the sharing. @texts has lh_cores_text() of each of @count > 0 processes; this process is
 * @mine; each may use @cores > 0. */
LhCoreSharing lh_core_sharing_of(char *const *texts, uint32_t count, uint32_t mine, uint32_t cores);

/* Finds the sharing of the running processes; @turns is the same in all of them. */
bool lh_core_sharing_find(const LhProcesses *processes, LhCoreSharing *cores, GError **error);
