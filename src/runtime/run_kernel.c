/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run_kernel.h"

#include "base/error.h"
#include "runtime/bind.h"

static bool
fail_kernel(const LhRunStream *s, const LhItem *item, enum lh_status status)
{
    static const char *const messages[] = {
#define LH_STATUS_MESSAGE(code, name, message) message,
        LH_STATUS_MAP(LH_STATUS_MESSAGE)
#undef LH_STATUS_MESSAGE
    };
    const LhRunParams *params = s->rank->execution->params;
    g_autofree char *why = s->at.device->why != NULL ? s->at.device->why(s->at.state) : NULL;

    return lh_execution_fail_op(
        s->rank, &item->op, status == LH_STATUS_UNSUPPORTED ? LH_ERROR_NO : LH_ERROR_RUNTIME,
        "kernels \"%s\": %s%s%s", s->at.device->kernel_sets[params->kernel_set], messages[status],
        why != NULL ? ": " : "", why != NULL ? why : "");
}

/* Grows the stream's scratch memory to at least @bytes; it never shrinks. The old memory is freed
 * with the op, when the stream has finished with it. */
static bool
reserve_scratch(LhRunStream *s, LhItem *item, uint64_t bytes)
{
    GError *error = NULL;

    if (bytes <= s->scratch_bytes)
        return true;
    if (s->scratch != NULL)
        lh_item_keep(item, s->scratch);
    s->scratch_bytes = bytes;
    s->scratch = s->at.device->alloc(s->at.state, bytes, &error);
    if (s->scratch != NULL)
        return true;
    s->scratch_bytes = 0;
    lh_execution_fail(s->rank->execution, error);
    return false;
}

bool
lh_run_kernel(LhRunStream *s, LhItem *item, LhKernelId kernel, LhCall *call)
{
    const LhRunHooks *hooks = s->rank->execution->params->hooks;
    const LhRunDevice *device = s->at.device;
    const uint64_t scratch_bytes = device->scratch_bytes(s->at.state, kernel, call);
    const bool is_op = item->op.kind == LH_OP_COMPUTE && hooks != NULL && hooks->call != NULL;
    enum lh_status status;

    if (!reserve_scratch(s, item, scratch_bytes))
        return false;
    call->scratch = scratch_bytes > 0 ? s->scratch : NULL;
    status = is_op ? hooks->call(hooks->data, s->rank->index, &item->op, &s->at, call)
                   : device->call(s->at.state, kernel, call, s->at.stream);
    return status == LH_STATUS_OK || fail_kernel(s, item, status);
}
