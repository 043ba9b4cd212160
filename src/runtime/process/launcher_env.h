/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What those who start processes say to them in their environment, where there is no MPI: which
 * rank a process is, of how many, and where the first one is to be met. torchrun
 * (https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables) and Slurm
 * (https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES) are known.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_TOKEN_BYTES 32 /* SHA-256 */

typedef struct {
    uint32_t rank, size; /* rank < size, size <= LH_RANKS_MAX */
    char *host;          /* of the first process: a name or an address; owned */
    uint16_t port;       /* where that listens */
    /* Of what the processes of one job know alike: it keeps jobs apart that meet at one port. It
     * is sent as it is, and so keeps out no one who listens: a secret does (secret.h). */
    unsigned char token[LH_TOKEN_BYTES];
} LhLauncherEnv;

/* Reads the environment. False with @error (LH_ERROR_USAGE), which names the variable that is
 * missing or wrong, and what it says. Call lh_launcher_env_clear() after success. */
bool lh_launcher_env_torchrun(LhLauncherEnv *launch, GError **error);
bool lh_launcher_env_slurm(LhLauncherEnv *launch, GError **error);
void lh_launcher_env_clear(LhLauncherEnv *launch);

/* The first host of a list as Slurm writes it: "gpu003" of "gpu[003-010,12],login1"; NULL if it is
 * none. Caller frees. */
char *lh_launcher_env_first_host(const char *list);
