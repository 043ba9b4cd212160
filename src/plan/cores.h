/*
 * Which processes compute on the same cores: those that more of them have than there are cores
 * take turns where one alone is to be measured, and share them in a simulation
 * (LhDevice.machine_ranks).
 */
#pragma once

#include "runtime/processes.h"

typedef struct {
    uint32_t turns, turn;  /* this process is one of @turns groups, no two of which should compute
                              at the same time; it is in group @turn */
    uint32_t ranks, cores; /* so many in a row share so many, all over; 0: they share none, or not
                              so */
} LhCores;

/* @texts is what lh_cores_text() says in each of @count > 0 processes, of which this is @mine; each
 * of the processes may use @cores. */
LhCores lh_cores_of(char *const *texts, uint32_t count, uint32_t mine, uint32_t cores);

/* The same of the processes there are. */
bool lh_cores_find(const LhProcesses *processes, LhCores *cores, GError **error);
