/* In place of NCCL where its header was not there when longhaul was built. */
#include "runtime/links.h"

#include "base/error.h"

static void *
absent_open(const LhLinksParams *params, GError **error)
{
    (void)params;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "NCCL: this longhaul was built without it (nccl.h was not found)");
    return NULL;
}

const LhLinks lh_links_nccl = {
    .name = "nccl",
    .open = absent_open,
};
