/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared secret of a job's processes, if the user set one: a process that joins must prove that
 * it has it (handshake.h). It is never sent or printed.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define LH_SECRET_BYTES_MIN 32U
#define LH_SECRET_BYTES_MAX 1024U

typedef struct {
    gsize bytes; /* 0: no secret */
    bool given;  /* by the user, not announced by the first process */
    char text[LH_SECRET_BYTES_MAX];
} LhSecret;

/*
 * Reads the secret from LONGHAUL_SECRET, or from the file named by LONGHAUL_SECRET_FILE, which only
 * this process's user may own or access; with neither there is no secret. False with @error
 * (LH_ERROR_USAGE), which names the variable and the reason.
 */
bool lh_secret_read(LhSecret *secret, GError **error);
/* Erases it from memory. */
void lh_secret_clear(LhSecret *secret);
