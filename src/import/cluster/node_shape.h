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

/* Which NICs are as near to some GPU as any: the others carry no traffic of GPUs. A GPU whose
 * nearest ones are nearer to another GPU shares these. Where all NICs are as far from all GPUs, and
 * only somewhere in the machine or too many to share them evenly, nothing tells which count; a
 * single one does. Returns their number; caller frees @near, [nics].
 */
guint lh_tool_near(const LhToolShape *shape, bool **near);

/* Adds how many NICs there are for GPUs, which GPU has which, and which are left out. */
bool lh_tool_add_nics(LhToolReader *r, const LhToolShape *shape, guint line);
