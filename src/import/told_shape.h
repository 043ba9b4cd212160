/*
 * What two readers conclude from links: how the GPUs of a node are joined, and which of its NICs
 * are theirs.
 */
#pragma once

#include "import/told_private.h"

#define LH_TOLD_NVLINKS_MAX 18 /* that a GPU has */

/* How far a NIC is from a GPU: less is nearer. */
#define LH_TOLD_FAR UINT32_MAX /* not reached at all */

typedef struct {
    guint gpus, nics;
    const uint32_t *links;    /* [gpus][gpus]: NVLinks that join two, 0 on the diagonal */
    const uint32_t *distance; /* [gpus][nics] */
    /* [gpus]: NVLinks to a switch; NULL: not known, and those of @links may be. */
    const uint32_t *switched;
} LhToldShape;

/* Adds GPUs, what joins them, NVLinks and NICs, as found in line @line. LH_ERROR_INPUT if a
 * topology file cannot say so. */
bool lh_told_add_shape(LhToldReader *r, const LhToldShape *shape, guint line);

/* Which NICs are as near to some GPU as any: the others carry no traffic of GPUs. Returns their
 * number; caller frees @near, [nics]. */
guint lh_told_near(const LhToldShape *shape, bool **near);
