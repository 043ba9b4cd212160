/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conclusions of two readers from links: how the GPUs of a node are joined, and which NICs serve
 * them.
 */
#pragma once

#include "import/cluster/readers_private.h"

#define LH_TOOL_NVLINKS_MAX 36 /* per GPU: 18 up to Blackwell */

/* Distance of a NIC that a GPU does not reach; smaller distances are nearer. */
#define LH_TOOL_FAR UINT32_MAX

typedef struct {
    guint gpus, nics;
    /* [gpus][gpus]: number of NVLinks between two GPUs, 0 on the diagonal. */
    const uint32_t *links;
    const uint32_t *distance; /* [gpus][nics] */
    uint32_t apart;           /* from this distance on, only some path is known to exist */
    bool used;                /* all NICs serve GPUs, whatever their distance */
    /* [gpus]: NVLinks to a switch; NULL: unknown, those of @links may lead to one. */
    const uint32_t *switched;
    /* NVLinks of each GPU whose other end is unknown; 0: none. If there are any, nothing is
     * concluded about what joins the GPUs. */
    uint32_t lost;
    char *const *names; /* [nics] */
} LhToolShape;

/* Adds the GPUs, what joins them, their NVLinks and NICs, as found in line @line. LH_ERROR_INPUT if
 * a topology file cannot describe the shape. */
bool lh_tool_add_shape(LhToolReader *r, const LhToolShape *shape, guint line);
