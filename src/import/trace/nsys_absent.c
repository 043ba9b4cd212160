/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for nsys.c where there is no SQLite. */
#include "base/error.h"
#include "import/trace/nsys.h"

bool
lh_nsys_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    (void)run;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: a database of SQLite, which this longhaul was built without; allowed: traces "
                "in JSON",
                path);
    return false;
}
