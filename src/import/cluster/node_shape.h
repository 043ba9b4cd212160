/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two readers conclude from links: how the GPUs of a node are joined, and which of its NICs
 * are theirs.
 */
#pragma once

#include "import/cluster/readers_private.h"

#define LH_TOOL_NVLINKS_MAX 36 /* that a GPU has: 18 up to Blackwell */

/* How far a NIC is from a GPU: less is nearer. */
#define LH_TOOL_FAR UINT32_MAX /* not reached at all */

typedef struct {
    guint gpus, nics;
    const uint32_t *links;    /* [gpus][gpus]: NVLinks that join two, 0 on the diagonal */
    const uint32_t *distance; /* [gpus][nics] */
    uint32_t apart;           /* this distance, and any larger one, says only that there is a way */
    bool used;                /* all NICs are those that GPUs use, however far they are */
    /* [gpus]: NVLinks to a switch; NULL: not known, and those of @links may be. */
    const uint32_t *switched;
    /* NVLinks of each GPU of which nothing says where they lead; 0: none. Nothing is said of what
     * joins the GPUs, then. */
    uint32_t lost;
    char *const *names; /* [nics] */
} LhToolShape;

/* Adds GPUs, what joins them, NVLinks and NICs, as found in line @line. LH_ERROR_INPUT if a
 * topology file cannot say so. */
bool lh_tool_add_shape(LhToolReader *r, const LhToolShape *shape, guint line);
