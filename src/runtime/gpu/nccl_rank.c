/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/nccl_rank.h"

#include "base/error.h"
#include "base/time_units.h"

#define NAMED_MAX 8

bool
lh_nccl_fail(const LhNcclRank *j, const char *what, ncclResult_t result, GError **error)
{
    const char *more = j->links->nccl->GetLastError(NULL);

    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank %u: NCCL: %s: %s%s%s%s", j->rank.rank,
                what, j->links->nccl->GetErrorString(result),
                more != NULL && more[0] != '\0' ? " (" : "", more != NULL ? more : "",
                more != NULL && more[0] != '\0' ? ")" : "");
    return false;
}

char *
lh_nccl_comm_text(const LhNcclComm *lane)
{
    GString *text = g_string_new(NULL);

    g_string_printf(text, "communicator %u of rank%s ", lane->number, lane->count == 1 ? "" : "s");
    for (uint32_t i = 0; i < MIN(lane->count, NAMED_MAX); i++)
        g_string_append_printf(text, "%s%u", i > 0 ? ", " : "", lane->members[i]);
    if (lane->count > NAMED_MAX)
        g_string_append_printf(text, " and %u more", lane->count - NAMED_MAX);
    return g_string_free(text, FALSE);
}

/* Appends the ranks of this process that lag behind this one: "; of this process, rank 2 has not
 * arrived". */
static void
append_missing(const LhNcclRank *j, GString *text)
{
    const LhNcclLinks *links = j->links;
    const LhControlPlace *place = &links->params->control->place;
    const int own = atomic_load(&links->stages[j->rank.rank - place->first]);
    unsigned named = 0;

    for (uint32_t r = 0; r < place->count; r++) {
        if (atomic_load(&links->stages[r]) >= own || r + place->first == j->rank.rank)
            continue;
        if (named++ < NAMED_MAX)
            g_string_append_printf(text, "%s rank %u", named == 1 ? "; of this process," : ",",
                                   r + place->first);
    }
    if (named > NAMED_MAX)
        g_string_append_printf(text, " and %u more", named - NAMED_MAX);
    if (named > 0)
        g_string_append(text, named == 1 ? " has not arrived" : " have not arrived");
}

typedef struct {
    const LhNcclRank *j;
    const char *what;
    int64_t since_us;
} Wait;

static Wait
wait_begin(const LhNcclRank *j, const char *what)
{
    return (Wait){ j, what, g_get_monotonic_time() };
}

/* False with an error if the wait should end: at the deadline, or when the run is being stopped. */
static bool
wait_goes_on(const Wait *w, GError **error)
{
    const int64_t waited_us = g_get_monotonic_time() - w->since_us;
    g_autoptr(GString) text = NULL;

    if (w->j->links->params->stopping(w->j->links->params->owner)) {
        g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME, "rank %u: %s: the run is being stopped",
                    w->j->rank.rank, w->what);
        return false;
    }
    if (waited_us <= w->j->links->params->deadline_us)
        return true;
    text = g_string_new(NULL);
    append_missing(w->j, text);
    g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME, "rank %u has waited for %.3g s in %s%s",
                w->j->rank.rank, (double)waited_us / LH_US_PER_S, w->what, text->str);
    return false;
}

bool
lh_nccl_settle(const LhNcclRank *j, ncclComm_t comm, const char *what, GError **error)
{
    const Wait wait = wait_begin(j, what);

    for (;;) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t result = j->links->nccl->CommGetAsyncError(comm, &state);

        if (result != ncclSuccess)
            return lh_nccl_fail(j, what, result, error);
        if (state == ncclSuccess)
            return true;
        if (state != ncclInProgress)
            return lh_nccl_fail(j, what, state, error);
        if (!wait_goes_on(&wait, error))
            return false;
        g_usleep(LH_NCCL_LOOK_US);
    }
}

bool
lh_nccl_done(const LhNcclRank *j, ncclResult_t result, const char *what, GError **error)
{
    return result == ncclSuccess || result == ncclInProgress ||
           lh_nccl_fail(j, what, result, error);
}

bool
lh_nccl_finish_host(const LhNcclRank *j, const char *what, GError **error)
{
    const LhRunDevice *device = j->links->params->device;
    const Wait wait = wait_begin(j, what);
    const LhDeviceMark mark = device->mark(j->rank.device, j->rank.host, error);
    int passed = mark == NULL ? -1 : 0;

    while (passed == 0) {
        passed = device->passed(j->rank.device, mark, error);
        if (passed == 0 && !wait_goes_on(&wait, error))
            passed = -1;
        if (passed == 0)
            g_usleep(LH_NCCL_LOOK_US);
    }
    if (mark != NULL)
        device->unmark(j->rank.device, mark);
    return passed == 1;
}

void
lh_nccl_give_back(const LhNcclRank *j, unsigned char *memory, bool finished)
{
    if (memory != NULL && finished)
        j->links->params->device->release(j->rank.device, memory);
    else if (memory != NULL)
        g_ptr_array_add(j->outgrown, memory);
}
