/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces nsys.c in builds without SQLite. */
#include "base/error.h"
#include "import/trace/nsys.h"

bool
lh_nsys_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    (void)run;
    g_set_error(
        error, LH_ERROR, LH_ERROR_INPUT,
        "%s: an SQLite database, but longhaul was built without SQLite; allowed: traces in JSON",
        path);
    return false;
}
