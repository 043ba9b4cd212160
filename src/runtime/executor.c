/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executor.h"

#include "runtime/runtime_private.h"

LhRunResult *
lh_execute(const LhRunParams *params, GError **error)
{
    LhExecution x = { .params = params, .program = params->program };
    g_autoptr(LhRunResult) result = NULL;

    if (lh_execution_open(&x, &x.error)) {
        if (params->backend->links != NULL)
            lh_execution_submit(&x);
        else
            lh_execution_run_threads(&x);
        if (x.error == NULL)
            result = lh_execution_collect(&x, &x.error);
    }
    lh_execution_close(&x);
    if (x.error != NULL) {
        g_propagate_error(error, x.error);
        return NULL;
    }
    return g_steal_pointer(&result);
}
