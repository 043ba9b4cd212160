/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/cudnn_device.h"

#include "runtime/gpu/cudnn_private.h"
#include "runtime/gpu/library.h"

#include <string.h>

static GPtrArray *cudnn_devices; /* owned; kept until the process ends */
static pthread_mutex_t cudnn_devices_lock = PTHREAD_MUTEX_INITIALIZER;

char *
lh_cudnn_library(GError **error)
{
    const LhCudnn *cudnn = lh_cudnn_load(error);
    g_autofree char *version = NULL;
    g_autofree char *path = NULL;
    void *function;

    if (cudnn == NULL)
        return NULL;
    memcpy(&function, &cudnn->GetVersion, sizeof(function));
    version = lh_cudnn_version_text(cudnn->version);
    path = lh_library_path(function);
    return g_strdup_printf("%s, %s", version, path);
}

static LhCudnnDevice *
device_new(int ordinal, GError **error)
{
    const LhCudnn *cudnn = lh_cudnn_load(error);
    cudnnHandle_t handle = NULL;
    LhCudnnDevice *device;

    if (cudnn == NULL || !lh_cudnn_check(cudnn, cudnn->Create(&handle), "handle", error))
        return NULL;
    device = g_new0(LhCudnnDevice, 1);
    device->ordinal = ordinal;
    device->cudnn = cudnn;
    device->handle = handle;
    device->plans = g_ptr_array_new_with_free_func((GDestroyNotify)lh_cudnn_plan_free);
    pthread_mutex_init(&device->lock, NULL);
    return device;
}

static LhCudnnDevice *
find_device(int ordinal)
{
    for (guint i = 0; i < cudnn_devices->len; i++) {
        LhCudnnDevice *device = g_ptr_array_index(cudnn_devices, i);

        if (device->ordinal == ordinal)
            return device;
    }
    return NULL;
}

LhCudnnDevice *
lh_cudnn_device(int ordinal, GError **error)
{
    LhCudnnDevice *device;

    pthread_mutex_lock(&cudnn_devices_lock);
    if (cudnn_devices == NULL)
        cudnn_devices = g_ptr_array_new();
    device = find_device(ordinal);
    if (device == NULL) {
        device = device_new(ordinal, error);
        if (device != NULL)
            g_ptr_array_add(cudnn_devices, device);
    }
    pthread_mutex_unlock(&cudnn_devices_lock);
    return device;
}

char *
lh_cudnn_why(LhCudnnDevice *device)
{
    char *why;

    pthread_mutex_lock(&device->lock);
    why = g_strdup(device->why);
    pthread_mutex_unlock(&device->lock);
    return why;
}

static bool
is_same_shape(const LhCudnnShape *a, const LhCudnnShape *b)
{
    return a->backward == b->backward && a->mask == b->mask && a->storage == b->storage &&
           a->batch == b->batch && a->heads == b->heads && a->groups == b->groups &&
           a->dim == b->dim && a->nq == b->nq && a->nk == b->nk && a->q_rows == b->q_rows &&
           a->k_rows == b->k_rows;
}

/* The caller has the lock. */
const LhCudnnPlan *
lh_cudnn_device_plan(LhCudnnDevice *device, const LhCudnnShape *shape, GError **error)
{
    const LhCudnnTarget target = { .cudnn = device->cudnn, .handle = device->handle };
    LhCudnnPlan *plan;

    for (guint i = 0; i < device->plans->len; i++) {
        plan = g_ptr_array_index(device->plans, i);
        if (is_same_shape(&plan->shape, shape))
            return plan;
    }
    plan = lh_cudnn_plan_new(&target, shape, error);
    if (plan != NULL)
        g_ptr_array_add(device->plans, plan);
    return plan;
}
