/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-in for NCCL in a build without its header. */
#include "runtime/api/links.h"

#include "base/error.h"

static char *
absent_library(GError **error)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "NCCL: this longhaul was built without it: install NCCL with nccl.h, then "
                        "meson setup --reconfigure -Dnccl=enabled");
    return NULL;
}

static void *
absent_open(const LhLinksParams *params, GError **error)
{
    (void)params;
    return absent_library(error);
}

const LhLinks lh_links_nccl = {
    .name = "nccl",
    .describe = absent_library,
    .open = absent_open,
};
