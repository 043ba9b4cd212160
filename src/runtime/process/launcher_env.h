/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables of launchers other than MPI's: rank of the process, number of ranks,
 * and the address of the first process. Supported: torchrun
 * (https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables) and Slurm
 * (https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_TOKEN_BYTES 32 /* SHA-256 */

typedef struct {
    uint32_t rank, size; /* rank < size, size <= LH_RANKS_MAX */
    char *host;          /* of the first process: name or address; owned */
    uint16_t port;       /* port at which it listens */
    /* Hash of what all processes of one job know: keeps jobs apart that use the same port. It is
     * sent in the clear, so it stops no eavesdropper: that takes a secret (secret.h). */
    unsigned char token[LH_TOKEN_BYTES];
} LhLauncherEnv;

/* Reads the environment. False with @error (LH_ERROR_USAGE), which names the variable that is
 * missing or wrong, and its value. Call lh_launcher_env_clear() after success. */
bool lh_launcher_env_torchrun(LhLauncherEnv *launch, GError **error);
bool lh_launcher_env_slurm(LhLauncherEnv *launch, GError **error);
void lh_launcher_env_clear(LhLauncherEnv *launch);

/* The first host of a Slurm host list: "gpu003" of "gpu[003-010,12],login1"; NULL if malformed.
 * Caller frees. */
char *lh_launcher_env_first_host(const char *list);
