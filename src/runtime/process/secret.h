/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secret that the processes of a job share, if somebody has given them one: whoever joins must
 * prove to have it (handshake.h). It is never sent, and stands in no message.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define LH_SECRET_BYTES_MIN 32U
#define LH_SECRET_BYTES_MAX 1024U

typedef struct {
    gsize bytes; /* 0: there is none */
    bool given;  /* to this process, not announced to all by the first one */
    char text[LH_SECRET_BYTES_MAX];
} LhSecret;

/*
 * Reads what LONGHAUL_SECRET is, or what is in the file that LONGHAUL_SECRET_FILE names, which
 * nobody but the user of this process may own or read; without the two there is none. False with
 * @error (LH_ERROR_USAGE), which names the variable and what is wrong with it.
 */
bool lh_secret_read(LhSecret *secret, GError **error);
/* Leaves nothing of it in memory. */
void lh_secret_clear(LhSecret *secret);
